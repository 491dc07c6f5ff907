"""Points: values added to single cells of a field in every step, and cells noted in every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntAttr, f32, f64, i32
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.boxes import CellBox
from timetile.dialects.directives import Number, Value
from timetile.dialects.point_lists import PointLayout
from timetile.dialects.syntax import element_type, field_bounds


class PointKind(StrEnum):
    """The use of a list of points: values are added to cells (INJECT), or cells noted (SAMPLE)."""

    INJECT = "inject"
    SAMPLE = "sample"


@irdl_attr_definition
class PointKindAttr(EnumAttribute[PointKind], SpacedOpaqueSyntaxAttribute):
    """
    The use of a list of points.

    Example: `#temporal<point_kind inject>`
    """

    name = "temporal.point_kind"


@irdl_attr_definition
class PointsAttr(ParametrizedAttribute):
    """
    The use of a list of points by an update, or by a stage: `inject` or `sample`, the number of the
    target, the columns of the table, which has a row for each step, and the cells of the field.

    Example: `#temporal.points<inject 0 columns 3 of <[0, 0], [8, 8]>>`
    """

    name = "temporal.points"
    kind: PointKindAttr
    target: IntAttr
    columns: IntAttr
    cells: StencilBoundsAttr

    def __init__(self, kind: PointKind, target: int, columns: int, cells: StencilBoundsAttr):
        super().__init__(PointKindAttr(kind), IntAttr(target), IntAttr(columns), cells)

    @classmethod
    def parse_parameters(
        cls, parser: AttrParser
    ) -> tuple[PointKindAttr, IntAttr, IntAttr, StencilBoundsAttr]:
        with parser.in_angle_brackets():
            kind, target = parser.parse_str_enum(PointKind), parser.parse_integer()
            parser.parse_keyword("columns")
            columns = parser.parse_integer()
            parser.parse_keyword("of")
            cells = StencilBoundsAttr.new(StencilBoundsAttr.parse_parameters(parser))
            return PointKindAttr(kind), IntAttr(target), IntAttr(columns), cells

    def print_parameters(self, printer: Printer) -> None:
        numbers = f"{self.kind.data} {self.target.data} columns {self.columns.data}"
        printer.print_string(f"<{numbers} of ")
        self.cells.print_parameters(printer)
        printer.print_string(">")


MOST_NUMBERS = (1 << 31) - 1
"""Most numbers of a list, and of a table: threads count them by 32 bits."""

PARTS_OF_SET = 3
"""The fields of a set of points: the list, the weights, and the table."""


@dataclass(frozen=True)
class PointSet:
    """
    A use of a list of points: the list's integers, the weights of the entries, and the table of
    numbers, a row of `columns` for each step.
    """

    kind: PointKind
    target: int
    columns: int
    bounds: StencilBoundsAttr
    """The cells of the field."""
    places: SSAValue
    weights: SSAValue
    table: SSAValue

    @property
    def layout(self) -> PointLayout:
        """The parts of the list."""
        box = CellBox.of(self.bounds)
        shape = box.extents
        return PointLayout(shape, cells_of_line(self.weights))


def cells_of_line(field: SSAValue) -> int:
    """How many cells a field with one axis has."""
    (low,), (high,) = field_bounds(field).lb, field_bounds(field).ub
    return high - low


def point_sets(uses: Sequence[PointsAttr], points: Sequence[SSAValue]) -> tuple[PointSet, ...]:
    """The sets of points of an operation, whose operands `points` begin with the step's number."""
    return tuple(
        PointSet(
            use.kind.data, use.target.data, use.columns.data, use.cells,
            *points[1 + PARTS_OF_SET * k : 1 + PARTS_OF_SET * (k + 1)],
        )
        for k, use in enumerate(uses)
    )  # fmt: skip


def verify_points(
    uses: Sequence[PointsAttr], points: Sequence[SSAValue], targets: Sequence[Attribute]
) -> None:
    """
    VerifyException unless each use has its fields, of types and sizes for a target of some element.
    """
    if len(points) != (1 + PARTS_OF_SET * len(uses) if uses else 0):
        raise VerifyException(
            f"{len(uses)} uses of points take the step and {PARTS_OF_SET} fields each, got "
            f"{len(points)} operands"
        )
    for made in point_sets(uses, points):
        if not 0 <= made.target < len(targets):
            raise VerifyException(f"points of target {made.target}, and there are {len(targets)}")
        verify_set(made, targets[made.target])


def verify_set(made: PointSet, element: Attribute) -> None:
    """VerifyException unless the fields of a set fit a field with cells of some element."""
    if element not in (f32, f64):
        raise VerifyException(f"points of a field of f32 or f64, got {element}")
    for field, kind in ((made.places, i32), (made.weights, element), (made.table, element)):
        found: Attribute = field.type
        if len(field_bounds(field).lb) != 1:
            raise VerifyException(f"a field of one axis, got {found}")
        if element_type(field) != kind or tuple(field_bounds(field).lb) != (0,):
            raise VerifyException(f"a field of {kind} from cell 0 on, got {found}")
    size = made.layout.size
    if cells_of_line(made.places) != size:
        raise VerifyException(f"a list of {size} integers, got {cells_of_line(made.places)}")
    if max(size, cells_of_line(made.table)) > MOST_NUMBERS:
        raise VerifyException(f"lists and tables of at most {MOST_NUMBERS} numbers")
    if made.columns < 1 or cells_of_line(made.table) % made.columns:
        raise VerifyException(
            f"a table of rows of {made.columns} numbers, got {cells_of_line(made.table)}"
        )
    if made.kind is PointKind.SAMPLE and made.columns != cells_of_line(made.weights):
        raise VerifyException(
            f"samples have a column for each of {cells_of_line(made.weights)} entries, got "
            f"{made.columns}"
        )


class PointEffects(MemoryEffect):
    """Points read their lists; an injection writes the field, a sample writes the table."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, PointOp)
        fields = (op.field, op.places, op.weights, op.table)
        return {EffectInstance(MemoryEffectKind.READ, field) for field in fields} | {
            EffectInstance(MemoryEffectKind.WRITE, op.written)
        }


class PointOp(IRDLOperation):
    """Base of the operations at points. A cell outside the box is left out."""

    field = operand_def(FieldType)
    places = operand_def(FieldType)
    weights = operand_def(FieldType)
    table = operand_def(FieldType)
    step = operand_def(I64)
    columns = prop_def(IntAttr)
    box = prop_def(StencilBoundsAttr)

    traits = traits_def(PointEffects())
    custom_directives = (Number, Value)
    assembly_format = (
        "custom<Value>($field, type($field)) `at` custom<Value>($places, type($places)) `weights` "
        "custom<Value>($weights, type($weights)) `table` custom<Value>($table, type($table)) "
        "`columns` custom<Number>($columns) `step` $step `in` $box attr-dict-with-keyword"
    )
    KIND: ClassVar[PointKind]

    def __init__(
        self,
        field: SSAValue,
        parts: tuple[SSAValue, SSAValue, SSAValue],
        step: SSAValue,
        columns: int,
        box: StencilBoundsAttr,
    ):
        super().__init__(
            operands=[field, *parts, step], properties={"columns": IntAttr(columns), "box": box}
        )

    @property
    def set(self) -> PointSet:
        """The use of the list."""
        return PointSet(
            self.KIND, 0, self.columns.data, field_bounds(self.field), self.places, self.weights,
            self.table,
        )  # fmt: skip

    @property
    def written(self) -> SSAValue:
        """The written field."""
        return self.field if self.KIND is PointKind.INJECT else self.table

    def verify_(self) -> None:
        if len(self.box.lb) != len(field_bounds(self.field).lb):
            raise VerifyException(
                f"box of rank {len(self.box.lb)} in a field of rank "
                f"{len(field_bounds(self.field).lb)}"
            )
        verify_set(self.set, element_type(self.field))


@irdl_op_definition
class InjectOp(PointOp):
    """
    For every entry of a list of points, in order, with its cell c in the box: `field[c] = field[c]
    + weight * table[step, column]`. Product and sum are rounded.

    Example:
    ```
    temporal.inject %u at %places weights %w table %f columns 2 step %t in <[1, 1], [7, 7]>
    ```
    """

    name = "temporal.inject"
    KIND: ClassVar[PointKind] = PointKind.INJECT


@irdl_op_definition
class SampleOp(PointOp):
    """
    For every entry k of a list of points with its cell c in the box: `table[step, k] = weight *
    field[c]`, rounded.

    Example:
    ```
    temporal.sample %u at %places weights %w table %out columns 8 step %t in <[1, 1], [7, 7]>
    ```
    """

    name = "temporal.sample"
    KIND: ClassVar[PointKind] = PointKind.SAMPLE
