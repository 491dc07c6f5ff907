"""Sweeps: a cell function along an axis, that reads its own results of the places before."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    FlatSymbolRefAttr,
    FlatSymbolRefAttrConstr,
    IntAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.directives import Number, Taps, Values
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    encode_integers,
    field_bounds,
)
from timetile.dialects.taps import Tap, decode_taps, encode_taps, verify_taps
from timetile.dialects.temporal.cells import verify_cell

PART_PLACES = 16
"""
A sweep in parts has 16 places in a part, 16 parts in a group, and 16 groups in the next larger
group.
"""


class Direction(StrEnum):
    """The order of the places of a sweep: from the first on, or from the last back."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


@irdl_attr_definition
class DirectionAttr(EnumAttribute[Direction], SpacedOpaqueSyntaxAttribute):
    """
    The order of the places of a sweep.

    Example: `#temporal<direction ascending>`
    """

    name = "temporal.direction"


class SweepEffects(MemoryEffect):
    """A sweep reads the sources and writes the targets."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, SweepOp)
        return {EffectInstance(MemoryEffectKind.READ, s) for s in op.sources} | {
            EffectInstance(MemoryEffectKind.WRITE, t) for t in op.targets
        }


@irdl_op_definition
class SweepOp(IRDLOperation):
    """
    For every place along the axis, in order, and for every cell c of the box at the place:
    `target[c] = cell(taps at c, scalars, coordinates of c)`. A tap of a target reads the cell as it
    is then: written by the sweep at places before, and the value from before the sweep at the
    place, at places behind, and outside the box.

    Taps of targets stay on the line of the cell along the axis: lines do not depend on each other,
    and run side by side. Other fields are read at any offset inside the field.

    The cell function is a private `func.func` on scalars, as for `temporal.update`: the taps in
    order, then the scalars, then an `index` per axis in `indices`.

    A line in `parts` goes on side by side: parts of 16 places begin with a value made from the
    sums of the places before, summed by parts, by groups of 16 parts, and so on. The order of these
    sums is fixed (`passes/analysis/cells/recurrences.py`), another than place after place.

    Example:
    ```
    temporal.sweep %c, %d = @thomas(%c[-1, 0], %d[-1, 0], %u[0, 0]) scalars(%r)
      along 0 ascending in <[1, 0], [8, 8]>
    ```
    """

    name = "temporal.sweep"

    targets = var_operand_def(FieldType)
    sources = var_operand_def(FieldType)
    scalars = var_operand_def()
    cell = prop_def(FlatSymbolRefAttrConstr)
    taps = prop_def(INTEGERS)
    indices = opt_prop_def(INTEGERS)
    axis = prop_def(IntAttr)
    direction = prop_def(DirectionAttr)
    box = prop_def(StencilBoundsAttr)
    parts = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(SweepEffects())

    custom_directives = (Values, Taps, Number)
    assembly_format = (
        "custom<Values>($targets, type($targets)) `=` $cell "
        "custom<Taps>($sources, type($sources), $taps) "
        "(`scalars` `(` custom<Values>($scalars, type($scalars))^ `)`)? (`indices` $indices^)? "
        "`along` custom<Number>($axis) $direction (`parts` $parts^)? `in` $box "
        "attr-dict-with-keyword"
    )

    def __init__(
        self,
        targets: Sequence[SSAValue],
        cell: str | FlatSymbolRefAttr,
        sources: Sequence[SSAValue],
        taps: Sequence[Tap],
        axis: int,
        direction: Direction,
        box: StencilBoundsAttr,
        scalars: Sequence[SSAValue] = (),
        indices: Sequence[int] = (),
    ):
        super().__init__(
            operands=[targets, sources, scalars],
            properties={
                "cell": SymbolRefAttr(cell) if isinstance(cell, str) else cell,
                "taps": encode_taps(taps),
                "indices": encode_integers(indices) if indices else None,
                "axis": IntAttr(axis),
                "direction": DirectionAttr(direction),
                "box": box,
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

    @property
    def is_ascending(self) -> bool:
        """Whether the first place along the axis comes first."""
        return self.direction.data is Direction.ASCENDING

    @property
    def line_axes(self) -> list[int]:
        """The axes other than the axis of the sweep, the outermost first."""
        return [axis for axis in range(self.rank) if axis != self.axis.data]

    @property
    def places(self) -> range:
        """The places along the axis, in order."""
        along = self.axis.data
        counted = range(tuple(self.box.lb)[along], tuple(self.box.ub)[along])
        return counted if self.is_ascending else counted[::-1]

    def age(self, tap: Tap) -> int:
        """The places between a tap and the cell: 1 for the place before, negative behind."""
        offset = tap.offset[self.axis.data]
        return -offset if self.is_ascending else offset

    def is_result(self, tap: Tap) -> bool:
        """Whether a tap reads a cell that the sweep has written before."""
        return self.sources[tap.operand] in self.targets and self.age(tap) > 0

    def verify_(self) -> None:
        verify_taps(self.taps, self.rank, len(self.sources))
        self.verify_parts()
        if not 0 <= self.axis.data < self.rank:
            raise VerifyException(f"axis {self.axis.data} of a sweep of rank {self.rank}")
        for value in (*self.sources, *self.targets):
            bounds = field_bounds(value)
            if len(bounds.lb) != self.rank:
                raise VerifyException(
                    f"field of rank {len(bounds.lb)} in a sweep of rank {self.rank}"
                )
        if len(set(self.targets)) != len(self.targets):
            raise VerifyException("a sweep writes each target once")
        for axis in self.index_axes:
            if not 0 <= axis < self.rank:
                raise VerifyException(f"index axis {axis} of a sweep of rank {self.rank}")
        for tap in self.tap_list:
            self.verify_place(self.sources[tap.operand], tap.offset)
        for target in self.targets:
            self.verify_place(target, (0,) * self.rank)
        tapped = [self.sources[tap.operand] for tap in self.tap_list]
        verify_cell(self, self.cell, tapped, self.scalars, self.index_axes, self.targets)

    def verify_parts(self) -> None:
        """
        VerifyException unless a sweep in parts has one line and one target, and reads of the target
        the place before, and the own cell at most.
        """
        if self.parts is None:
            return
        if self.rank != 1 or len(self.targets) != 1:
            raise VerifyException(
                f"a sweep in parts has one axis and one target, got {self.rank} axes and "
                f"{len(self.targets)} targets"
            )
        own = [tap for tap in self.tap_list if self.sources[tap.operand] in self.targets]
        if [self.age(tap) for tap in own if self.age(tap)] != [1]:
            raise VerifyException(
                "a sweep in parts reads its result of the place before once, and no other place of "
                "its target"
            )

    def verify_place(self, field: SSAValue, offset: tuple[int, ...]) -> None:
        """
        VerifyException where an offset from the box lies outside a field, and for a target away
        from the line of the cell.
        """
        bounds = field_bounds(field)
        for axis, shift in enumerate(offset):
            low, high = tuple(self.box.lb)[axis] + shift, tuple(self.box.ub)[axis] + shift
            if low < tuple(bounds.lb)[axis] or high > tuple(bounds.ub)[axis]:
                raise VerifyException(
                    f"box and offset {list(offset)} reach [{low}, {high}) along axis {axis}, "
                    f"outside the field's [{tuple(bounds.lb)[axis]}, {tuple(bounds.ub)[axis]})"
                )
            if shift and axis != self.axis.data and field in self.targets:
                raise VerifyException(
                    f"a sweep along axis {self.axis.data} reads its own targets on the line of the "
                    f"cell, got {list(offset)}"
                )
