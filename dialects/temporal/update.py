"""Updates: a cell function over a box."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttr,
    FlatSymbolRefAttrConstr,
    SymbolRefAttr,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import (
    EffectInstance,
    HasCanonicalizationPatternsTrait,
    HasParent,
    MemoryEffect,
    MemoryEffectKind,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import stored_number
from timetile.dialects.directives import Taps, Values
from timetile.dialects.making import make_segmented, with_known_segments
from timetile.dialects.series import is_series, number_type, verify_series
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    element_type,
    encode_integers,
    field_bounds,
)
from timetile.dialects.taps import (
    Tap,
    decode_taps,
    encode_taps,
    verify_taps,
)
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, keeping, layers
from timetile.dialects.temporal.cells import verify_cell
from timetile.dialects.temporal.points import (
    PointKind,
    PointsAttr,
    PointSet,
    point_sets,
    verify_points,
)


def in_loop() -> HasParent:
    """The trait of updates: the parent is a time loop."""
    from timetile.dialects.temporal.loop import LoopOp

    return HasParent(LoopOp)


class UpdateEffects(MemoryEffect):
    """An update reads the sources and writes the targets."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, UpdateOp)
        sampled = [made.table for made in op.point_sets if made.kind is PointKind.SAMPLE]
        return {EffectInstance(MemoryEffectKind.READ, s) for s in (*op.sources, *op.points[1:])} | {
            EffectInstance(MemoryEffectKind.WRITE, t) for t in (*op.targets, *sampled)
        }


class UpdateCanonicalization(HasCanonicalizationPatternsTrait):
    """Boundaries with a shorter name, and updates without effect."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.temporal.canonicalize import (
            EraseOverwritten,
            EraseSelfUpdate,
            EraseUnread,
            SimplifyBoundary,
        )

        return SimplifyBoundary(), EraseSelfUpdate(), EraseOverwritten(), EraseUnread()


@with_known_segments
@irdl_op_definition
class UpdateOp(IRDLOperation):
    """
    For every cell c of the box: `target[c] = cell(taps at c, scalars, coordinates of c)`. All cells
    are read before any is written. Cells outside the box stay as they are; with `outside` the
    update writes cells outside the box last, from cells inside.

    A tap stays inside its field. With `beyond`, a boundary for each source, a tap outside the cells
    of the field reads the field as continued by the boundary; a corner takes the last axis first.
    With `inner` fields end with the box along axes that go on: fields are continued beyond the box,
    and no cell outside the box is read there.

    A scalar that is a memref of one axis is a series: step t of the loop takes entry t.

    The cell function is a private `func.func` on scalars. The function's arguments are the taps in
    order, then the scalars, then an `index` per axis in `indices`.

    `points` are the step's number, a series, and three fields for each use in `uses`: a list of
    points, weights and a table. Written cells of the box take the values of injections, in the
    order of the uses and of the lists, as by `temporal.inject`; samples note the cells as they are
    then, as by `temporal.sample`.

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
    points = var_operand_def()
    cell = prop_def(FlatSymbolRefAttrConstr)
    taps = prop_def(INTEGERS)
    indices = opt_prop_def(INTEGERS)
    box = prop_def(StencilBoundsAttr)
    outside = opt_prop_def(BoundaryAttr)
    beyond = opt_prop_def(ArrayAttr[BoundaryAttr])
    inner = opt_prop_def(UnitAttr)
    uses = opt_prop_def(ArrayAttr[PointsAttr])

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = lazy_traits_def(lambda: (in_loop(), UpdateEffects(), UpdateCanonicalization()))

    custom_directives = (Values, Taps)
    assembly_format = (
        "custom<Values>($targets, type($targets)) `=` $cell "
        "custom<Taps>($sources, type($sources), $taps) "
        "(`scalars` `(` custom<Values>($scalars, type($scalars))^ `)`)? (`indices` $indices^)? "
        "`in` $box (`outside` qualified($outside)^)? (`beyond` $beyond^)? (`inner` $inner^)? "
        "(`points` `(` custom<Values>($points, type($points))^ `)` `uses` $uses)? "
        "attr-dict-with-keyword"
    )

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
        beyond: Sequence[BoundaryAttr] = (),
        points: Sequence[SSAValue] = (),
        uses: Sequence[PointsAttr] = (),
        *,
        inner: bool = False,
    ):
        given = {
            "cell": SymbolRefAttr(cell) if isinstance(cell, str) else cell,
            "taps": encode_taps(taps),
            "indices": encode_integers(indices) if indices else None,
            "box": box,
            "outside": outside,
            "beyond": ArrayAttr(beyond) if beyond else None,
            "inner": UnitAttr() if beyond and inner else None,
            "uses": ArrayAttr(uses) if uses else None,
        }
        make_segmented(self, [targets, sources, scalars, points], given)

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
    def continued(self) -> tuple[BoundaryAttr, ...]:
        """For each source, the boundary that continues the field beyond its cells."""
        if self.beyond is None:
            return (keeping(),) * len(self.sources)
        return self.beyond.data

    def known_cells(self, number: int) -> CellBox:
        """The cells of a source that taps read; beyond these the source goes on."""
        field = CellBox.of(field_bounds(self.sources[number]))
        if self.inner is None:
            return field
        sides = map(self.continued[number].of_axis, range(self.rank))
        kept = [Kind.KEEP in pair for pair in sides]
        ends = zip(kept, zip(field.lower, field.upper), zip(self.box.lb, self.box.ub), strict=True)
        return CellBox(*zip(*(whole if keeps else inner for keeps, whole, inner in ends)))

    @property
    def point_uses(self) -> tuple[PointsAttr, ...]:
        """How the update uses lists of points."""
        return () if self.uses is None else self.uses.data

    @property
    def point_sets(self) -> tuple[PointSet, ...]:
        """The uses of lists of points, each with its fields."""
        return point_sets(self.point_uses, self.points)

    def verify_(self) -> None:
        verify_taps(self.taps, self.rank, len(self.sources))
        self.verify_beyond()
        verify_points(self.point_uses, self.points, [element_type(t) for t in self.targets])
        for made in self.point_sets:
            held = field_bounds(self.targets[made.target])
            if CellBox.of(held) not in CellBox.of(made.bounds):
                raise VerifyException(f"points of a field of {held}, got {made.bounds}")
        for step in self.points[:1]:
            if not is_series(step) or number_type(step) != i64:
                raise VerifyException(f"the step's number is a series of i64, got {step.type}")
        for scalar in self.scalars:
            verify_series(scalar)
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
        keep = keeping()
        sources, continued, taps = self.sources, self.continued, self.tap_list
        reads = [(sources[tap.operand], tap.offset, continued[tap.operand]) for tap in taps]
        box = CellBox.of(self.box)
        for value, offset, boundary in [*reads, *((t, zero, keep) for t in self.targets)]:
            read, field = box.moved(offset), CellBox.of(field_bounds(value))
            for axis in () if read in field else range(self.rank):
                low, high = read.lower[axis], read.upper[axis]
                below, above = (side is Kind.KEEP for side in boundary.of_axis(axis))
                if (below and low < field.lower[axis]) or (above and high > field.upper[axis]):
                    raise VerifyException(
                        f"box and offset {list(offset)} reach [{low}, {high}) along axis {axis}, "
                        f"outside the field's [{field.lower[axis]}, {field.upper[axis]})"
                    )
            if value in self.targets and offset != zero:
                raise VerifyException(
                    f"an update may read its own target at offset 0 only, got {list(offset)}"
                )
        self.verify_outside()
        tapped = [sources[tap.operand] for tap in taps]
        verify_cell(self, self.cell, tapped, self.scalars, self.index_axes, self.targets)

    def verify_beyond(self) -> None:
        """
        VerifyException unless each source has a boundary with a kind for each side, and a reflected
        field has two cells.
        """
        if self.beyond is None:
            if self.inner is not None:
                raise VerifyException(
                    "inner fields end with the box where they go on, and no field goes on"
                )
            return
        if len(self.beyond.data) != len(self.sources):
            raise VerifyException(
                f"{len(self.beyond.data)} boundaries for {len(self.sources)} sources"
            )
        for number, boundary in enumerate(self.beyond.data):
            if len(boundary.kinds) not in (1, 2 * self.rank):
                raise VerifyException(
                    f"a boundary of {len(boundary.kinds)} sides for a field of rank {self.rank}"
                )
            verify_numbers(boundary, self.sources[number])
            cells = self.known_cells(number)
            for axis, (low, high) in enumerate(zip(cells.lower, cells.upper)):
                if high - low < 2 and Kind.REFLECT in boundary.of_axis(axis):
                    raise VerifyException(
                        f"{Kind.REFLECT} needs two cells along axis {axis}, and the field has one"
                    )

    def verify_outside(self) -> None:
        """
        VerifyException unless the boundary has a kind for each side, and enough cells inside the
        box.
        """
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


def verify_numbers(boundary: BoundaryAttr, field: SSAValue) -> None:
    """VerifyException for a number beyond a narrow field that no cell of the field can hold."""
    element = element_type(field)
    for side in boundary.kinds:
        if element in (f32, f64) or isinstance(side, Kind) or side != side:
            continue
        if (nearest := stored_number(side, element)) != side:
            raise VerifyException(f"{side} is no number of {element}; write {nearest}")
