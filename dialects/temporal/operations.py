"""The operations of the temporal dialect: time loops and updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IndexType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasParent,
    MemoryEffect,
    MemoryEffectKind,
    NoTerminator,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    element_type,
    encode_integers,
    field_bounds,
    parse_bounds,
    parse_integers,
    parse_value,
    parse_values,
)
from timetile.dialects.taps import (
    Tap,
    decode_taps,
    encode_taps,
    parse_taps,
    print_taps,
    verify_taps,
)
from timetile.dialects.temporal.boundary import BoundaryAttr, layers

MOST_DEPTH = 256
"""Most steps of a kernel. Deeper kernels would compute more cells around tiles than inside, and take minutes to plan."""


class LoopEffects(MemoryEffect):
    """A time loop reads and writes the buffers, so that no cleanup erases the loop."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, LoopOp)
        return {
            EffectInstance(kind, buffer)
            for buffer in op.buffers
            for kind in (MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        }


class UpdateEffects(MemoryEffect):
    """An update reads the sources and writes the targets."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, UpdateOp)
        return {EffectInstance(MemoryEffectKind.READ, s) for s in op.sources} | {
            EffectInstance(MemoryEffectKind.WRITE, t) for t in op.targets
        }


@irdl_op_definition
class LoopOp(IRDLOperation):
    """
    Run the region `steps` times. After each step argument k names the former buffer of argument `rotate[k]`.
    Result k is the buffer of argument k after the last step.

    A `sweep` is a loop of a single step outside the program's time loops: a number of steps given by a caller does
    not apply to a sweep.

    `common_halos` is a promise: the buffers of a cycle of the rotation have equal cells outside the cells written by
    updates. Passes use the promise where the buffers of a cycle hold a single live version by turns.

    `depths` lists the temporal depths of the kernels, `schedule` holds the decisions of `choose-schedule`, `kernels`
    names the kernels. The last kernel advances a single step and stores all cells written by the step; the others
    store the cells read by later steps. A step in parts has a kernel for each part, in the order of launches, and no
    others.

    Example:
    ```
    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [4, 2, 1] {
      temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
    } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
    ```
    """

    name = "temporal.loop"

    steps = operand_def(IndexType)
    buffers = var_operand_def(FieldType)
    res = var_result_def(FieldType)
    rotate = prop_def(INTEGERS)
    sweep = opt_prop_def(UnitAttr)
    common_halos = opt_prop_def(UnitAttr)
    depths = opt_prop_def(INTEGERS)
    schedule = opt_prop_def(DictionaryAttr)
    kernels = opt_prop_def(ArrayAttr[FlatSymbolRefAttr])
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), LoopEffects())

    def __init__(
        self,
        steps: SSAValue,
        buffers: Sequence[SSAValue],
        rotate: Sequence[int],
        body: Region | None = None,
        depths: Sequence[int] | None = None,
        *,
        sweep: bool = False,
    ):
        types = [b.type for b in buffers]
        super().__init__(
            operands=[steps, buffers],
            result_types=[types],
            properties={
                "rotate": encode_integers(rotate),
                "depths": None if depths is None else encode_integers(depths),
                "sweep": UnitAttr() if sweep else None,
            },
            regions=[body or Region(Block(arg_types=types))],
        )

    @property
    def rotation(self) -> tuple[int, ...]:
        """`rotation[k]`: the argument from which argument k takes the buffer after a step."""
        return decode_integers(self.rotate)

    @property
    def depth_list(self) -> tuple[int, ...]:
        """The temporal depths to make kernels for, deepest first; (1,) if none was asked for."""
        return decode_integers(self.depths) or (1,)

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The symbols of the loop's kernels; empty before device-tiling."""
        return () if self.kernels is None else tuple(k.string_value() for k in self.kernels)

    @property
    def captures(self) -> tuple[SSAValue, ...]:
        """The fields of the enclosing function read by a step, in the order of first use."""
        own = self.body.block.args
        sources = (s for update in self.updates for s in update.sources)
        return tuple(dict.fromkeys(s for s in sources if s not in own))

    @property
    def scalars(self) -> tuple[SSAValue, ...]:
        """The scalars of the enclosing function used by a step, in the order of first use."""
        return tuple(dict.fromkeys(s for update in self.updates for s in update.scalars))

    @property
    def updates(self) -> tuple[UpdateOp, ...]:
        """The updates of a step, in program order."""
        return tuple(op for op in self.body.block.ops if isinstance(op, UpdateOp))

    def verify_(self) -> None:
        count = len(self.buffers)
        if sorted(self.rotation) != list(range(count)):
            raise VerifyException(
                f"rotate must be a permutation of 0 to {count - 1}, got {list(self.rotation)}"
            )
        if len(set(self.buffers)) != count:
            raise VerifyException("every buffer of the loop must be a different value")
        types = tuple(b.type for b in self.buffers)
        if self.body.block.arg_types != types or tuple(r.type for r in self.res) != types:
            raise VerifyException("arguments and results must have the types of the buffers")
        for k, source in enumerate(self.rotation):
            if types[source] != types[k]:
                raise VerifyException(
                    f"rotation gives argument {k} of type {types[k]} a buffer of type {types[source]}"
                )
        if not all(1 <= depth <= MOST_DEPTH for depth in self.depth_list):
            raise VerifyException(
                f"depths must be from 1 to {MOST_DEPTH}, got {list(self.depth_list)}"
            )
        for op in self.body.block.ops:
            if not isinstance(op, UpdateOp):
                raise VerifyException(f"a time loop holds temporal.update only, got {op.name}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.steps)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(
                zip(self.body.block.args, self.buffers),
                lambda pair: (
                    printer.print_ssa_value(pair[0]),
                    printer.print_string(" = "),
                    printer.print_operand(pair[1]),
                ),
            )
        printer.print_string(f" rotate {list(self.rotation)}")
        if self.sweep is not None:
            printer.print_string(" sweep")
        if self.common_halos is not None:
            printer.print_string(" common_halos")
        if self.depths is not None:
            printer.print_string(f" depths {list(self.depth_list)}")
        if self.schedule is not None:
            printer.print_string(" schedule ")
            printer.print_attribute(self.schedule)
        if self.kernels is not None:
            printer.print_string(" kernels ")
            printer.print_attribute(self.kernels)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        if self.buffers:
            printer.print_string(" : ")
            printer.print_list((b.type for b in self.buffers), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        steps = parse_value(parser)
        names: list[Parser.UnresolvedArgument] = []
        buffers: list[SSAValue] = []

        def parse_buffer() -> None:
            names.append(parser.parse_argument(expect_type=False))
            parser.parse_punctuation("=")
            buffers.append(parse_value(parser))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_buffer)
        parser.parse_keyword("rotate")
        rotate = parse_integers(parser)
        sweep = parser.parse_optional_keyword("sweep")
        common_halos = parser.parse_optional_keyword("common_halos")
        depths = parse_integers(parser) if parser.parse_optional_keyword("depths") else None
        schedule = parser.parse_attribute() if parser.parse_optional_keyword("schedule") else None
        kernels = parser.parse_attribute() if parser.parse_optional_keyword("kernels") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region([n.resolve(b.type) for n, b in zip(names, buffers)])
        if buffers:
            parser.parse_punctuation(":")
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        loop = cls(steps, buffers, rotate, region, depths, sweep=sweep is not None)
        if common_halos:
            loop.common_halos = UnitAttr()
        if schedule is not None:
            loop.properties["schedule"] = schedule
        if kernels is not None:
            loop.properties["kernels"] = kernels
        if attributes is not None:
            loop.attributes.update(attributes.data)
        return loop


@irdl_op_definition
class UpdateOp(IRDLOperation):
    """
    For every cell c of the box: `target[c] = cell(taps at c, scalars, coordinates of c)`.
    All cells are read before any is written. Cells outside the box stay as they are; with `outside` the update
    writes cells outside the box last, from cells inside.

    The cell function is a private `func.func` on scalars. The function's arguments are the taps in order, then the
    scalars, then an `index` per axis in `indices`.

    Example:
    ```
    temporal.update %b = @cell(%a[-1, 0], %a[0, 0]) scalars(%dt) indices [1] in <[0, 0], [8, 8]>
      outside #temporal.boundary<periodic>
    ```
    """

    name = "temporal.update"

    targets = var_operand_def(FieldType)
    sources = var_operand_def(FieldType)
    scalars = var_operand_def()
    cell = prop_def(FlatSymbolRefAttrConstr)
    taps = prop_def(INTEGERS)
    indices = opt_prop_def(INTEGERS)
    box = prop_def(StencilBoundsAttr)
    outside = opt_prop_def(BoundaryAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(HasParent(LoopOp), UpdateEffects())

    SCALARS: ClassVar[str] = "scalars"

    def __init__(
        self,
        targets: Sequence[SSAValue],
        cell: str | FlatSymbolRefAttr,
        sources: Sequence[SSAValue],
        taps: Sequence[Tap],
        box: StencilBoundsAttr,
        scalars: Sequence[SSAValue] = (),
        indices: Sequence[int] = (),
        outside: BoundaryAttr | None = None,
    ):
        super().__init__(
            operands=[targets, sources, scalars],
            properties={
                "cell": SymbolRefAttr(cell) if isinstance(cell, str) else cell,
                "taps": encode_taps(taps),
                "indices": encode_integers(indices) if indices else None,
                "box": box,
                "outside": outside,
            },
        )

    @property
    def rank(self) -> int:
        """The number of axes of the domain."""
        return len(self.box.lb)

    @property
    def tap_list(self) -> tuple[Tap, ...]:
        """The taps, in the order of the cell function's arguments."""
        return decode_taps(self.taps, self.rank)

    @property
    def index_axes(self) -> tuple[int, ...]:
        """The axes of the coordinates among the cell function's arguments, in order."""
        return decode_integers(self.indices)

    def verify_(self) -> None:
        verify_taps(self.taps, self.rank, len(self.sources))
        for value in (*self.sources, *self.targets):
            bounds = field_bounds(value)
            if len(bounds.lb) != self.rank:
                raise VerifyException(
                    f"field of rank {len(bounds.lb)} in an update of rank {self.rank}"
                )
        if len(set(self.targets)) != len(self.targets):
            raise VerifyException("an update writes each target once")
        for axis in self.index_axes:
            if not 0 <= axis < self.rank:
                raise VerifyException(f"index axis {axis} of a domain of rank {self.rank}")
        zero = (0,) * self.rank
        reads = [(self.sources[tap.operand], tap.offset) for tap in self.tap_list]
        for value, offset in [*reads, *((t, zero) for t in self.targets)]:
            bounds = field_bounds(value)
            for axis, shift in enumerate(offset):
                low, high = tuple(self.box.lb)[axis] + shift, tuple(self.box.ub)[axis] + shift
                if low < tuple(bounds.lb)[axis] or high > tuple(bounds.ub)[axis]:
                    raise VerifyException(
                        f"box and offset {list(offset)} reach [{low}, {high}) along axis {axis}, "
                        f"outside the field's [{tuple(bounds.lb)[axis]}, {tuple(bounds.ub)[axis]})"
                    )
            if value in self.targets and offset != zero:
                raise VerifyException(
                    f"an update may read its own target at offset 0 only, got {list(offset)}"
                )
        self.verify_outside()
        self.verify_cell()

    def verify_outside(self) -> None:
        """VerifyException unless the boundary has a kind for each side, and enough cells inside the box."""
        if self.outside is None:
            return
        if len(self.outside.kinds) not in (1, 2 * self.rank):
            raise VerifyException(
                f"a boundary of {len(self.outside.kinds)} sides for a box of rank {self.rank}"
            )
        for target in self.targets:
            field = CellBox.of(field_bounds(target))
            for _ in layers(self.outside, CellBox.of(self.box), field):
                pass

    def verify_cell(self) -> None:
        """The cell function, if found, has the arguments and results of the update."""
        root: Operation = self
        while (parent := root.parent_op()) is not None:
            root = parent
        if not isinstance(root, ModuleOp):
            return
        cell = SymbolTable.lookup_symbol(root, self.cell)
        if cell is None:
            return
        if not isinstance(cell, FuncOp):
            raise VerifyException(f"expected a func.func named {self.cell}, got {cell.name}")
        inputs: list[Attribute] = []
        for tap in self.tap_list:
            inputs.append(element_type(self.sources[tap.operand]))
        inputs += [s.type for s in self.scalars]
        inputs += [IndexType()] * len(self.index_axes)
        expected = FunctionType.from_lists(inputs, [element_type(t) for t in self.targets])
        if cell.function_type != expected:
            raise VerifyException(
                f"cell {self.cell} has type {cell.function_type}, expected {expected}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.targets, printer.print_operand)
        printer.print_string(" = ")
        printer.print_symbol_name(self.cell.string_value())
        print_taps(printer, self.tap_list, self.sources)
        print_scalars_and_indices(printer, self.scalars, self.index_axes)
        printer.print_string(" in ")
        self.box.print_parameters(printer)
        if self.outside is not None:
            printer.print_string(" outside ")
            printer.print_attribute(self.outside)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> UpdateOp:
        targets = parse_values(parser, parser.Delimiter.NONE)
        parser.parse_punctuation("=")
        cell: StringAttr = parser.parse_symbol_name()
        sources, taps = parse_taps(parser)
        scalars, indices = parse_scalars_and_indices(parser)
        parser.parse_keyword("in")
        box = parse_bounds(parser)
        outside = parser.parse_attribute() if parser.parse_optional_keyword("outside") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        update = cls(targets, SymbolRefAttr(cell), sources, taps, box, scalars, indices)
        if outside is not None:
            update.properties["outside"] = outside
        if attributes is not None:
            update.attributes.update(attributes.data)
        return update


def print_scalars_and_indices(
    printer: Printer, scalars: Sequence[SSAValue], indices: Sequence[int]
) -> None:
    """Print ` scalars(%dt) indices [1]`; nothing for an update without scalars and indices."""
    if scalars:
        printer.print_string(" scalars")
        with printer.in_parens():
            printer.print_list(scalars, printer.print_operand)
    if indices:
        printer.print_string(f" indices {list(indices)}")


def parse_scalars_and_indices(parser: Parser) -> tuple[list[SSAValue], list[int]]:
    """Inverse of `print_scalars_and_indices`."""
    scalars: list[SSAValue] = []
    indices: list[int] = []
    if parser.parse_optional_keyword("scalars"):
        scalars = parse_values(parser, parser.Delimiter.PAREN)
    if parser.parse_optional_keyword("indices"):
        indices = parse_integers(parser)
    return scalars, indices
