"""A time loop of the host that may run as kernels with lists of points."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, FlatSymbolRefAttr, IntAttr, SymbolRefAttr
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.syntax import INTEGERS, decode_integers, encode_integers
from timetile.dialects.temporal.loop import LoopOp
from timetile.dialects.temporal.points import PointKind, PointKindAttr

FUNCTIONS = ("lists", "places", "values", "steps", "after")
"""The functions of a time loop with points, in the order of the operation."""


@irdl_attr_definition
class PointListAttr(ParametrizedAttribute):
    """
    One list of points in a time loop: how the loop uses the list; which field, counted through the
    carried fields and then the operands; how many steps after the writing step a cell is read; the
    box of written cells; and the field's cells.

    Example: `#temporal.point_list<sample 1 later 1 in <[0], [8]> of <[-1], [9]>>`
    """

    name = "temporal.point_list"
    kind: PointKindAttr
    field: IntAttr
    later: IntAttr
    box: StencilBoundsAttr
    cells: StencilBoundsAttr

    def __init__(
        self,
        kind: PointKind,
        field: int,
        later: int,
        box: StencilBoundsAttr,
        cells: StencilBoundsAttr,
    ):
        super().__init__(PointKindAttr(kind), IntAttr(field), IntAttr(later), box, cells)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind, field = parser.parse_str_enum(PointKind), parser.parse_integer()
            parser.parse_keyword("later")
            later = parser.parse_integer()
            parser.parse_keyword("in")
            box = StencilBoundsAttr.new(StencilBoundsAttr.parse_parameters(parser))
            parser.parse_keyword("of")
            cells = StencilBoundsAttr.new(StencilBoundsAttr.parse_parameters(parser))
            return PointKindAttr(kind), IntAttr(field), IntAttr(later), box, cells

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.kind.data} {self.field.data} later {self.later.data} in ")
        self.box.print_parameters(printer)
        printer.print_string(" of ")
        self.cells.print_parameters(printer)
        printer.print_string(">")


class NoEffects(MemoryEffect):
    """The loop behind the operation has all effects; the operation itself has none."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return set()


@irdl_op_definition
class PointRunOp(IRDLOperation):
    """
    The time loop behind the operation may run as kernels of several steps: `lists` makes the lists'
    fields, `places` computes the cell of every entry, `values` the numbers for some steps, `steps`
    advances, and `after` works on the noted cells. The operands are the
    values from outside the loop, taken by each function behind its own arguments.

    Example:
    ```
    temporal.point_run [@lists, @places, @values, @steps, @after]
      [#temporal.point_list<inject 1 later 0 in <[0], [8]> of <[-1], [9]>>] rotate [1, 0]
      (%n) : index
    ```
    """

    name = "temporal.point_run"
    given = var_operand_def()
    functions = prop_def(ArrayAttr[FlatSymbolRefAttr])
    lists = prop_def(ArrayAttr[PointListAttr])
    rotate = prop_def(INTEGERS)

    traits = traits_def(NoEffects())
    assembly_format = (
        "$functions $lists `rotate` $rotate `(` $given `)` `:` type($given) attr-dict-with-keyword"
    )

    def __init__(
        self,
        functions: Sequence[str],
        lists: Sequence[PointListAttr],
        rotation: Sequence[int],
        given: Sequence[SSAValue],
    ):
        names = [SymbolRefAttr(name) for name in functions]
        super().__init__(
            operands=[given],
            properties={
                "functions": ArrayAttr(names),
                "lists": ArrayAttr(lists),
                "rotate": encode_integers(rotation),
            },
        )

    def function(self, part: str) -> str:
        """The name of a function by its part."""
        return self.functions.data[FUNCTIONS.index(part)].string_value()

    @property
    def rotation(self) -> tuple[int, ...]:
        """The rotation of the loop's carried fields, as of a `temporal.loop`."""
        return decode_integers(self.rotate)

    @property
    def uses(self) -> tuple[PointListAttr, ...]:
        """The lists, in order."""
        return self.lists.data

    def verify_(self) -> None:
        if len(self.functions.data) != len(FUNCTIONS):
            raise VerifyException(
                f"functions {', '.join(FUNCTIONS)}, got {len(self.functions.data)}"
            )


def point_run_before(op: Operation) -> PointRunOp | None:
    """The functions of a time loop with points, if any: named before the loop, in its block."""
    before = op.prev_op
    while before is not None and not isinstance(before, PointRunOp | scf.ForOp | LoopOp):
        before = before.prev_op
    return before if isinstance(before, PointRunOp) else None
