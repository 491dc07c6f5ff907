"""The stage by which a kernel computes cells, and the taps of queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttr,
    FlatSymbolRefAttrConstr,
    SymbolRefAttr,
)
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.directives import Taps, Values
from timetile.dialects.making import make_segmented, with_known_segments
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    encode_integers,
)
from timetile.dialects.taps import (
    Tap,
    decode_taps,
    encode_taps,
    verify_taps,
)
from timetile.dialects.temporal.points import PointsAttr, PointSet, point_sets, verify_points
from timetile.dialects.tile.exchange import ExchangeOp
from timetile.dialects.tile.homes import HomeAttr, RegistersAttr, SharedAttr
from timetile.dialects.tile.integers import ints
from timetile.dialects.tile.kinds import Reader
from timetile.dialects.tile.load import LoadOp
from timetile.dialects.tile.queues import QueueType
from timetile.dialects.tile.stages import (
    NeededCells,
    in_kernel,
    queue_lag,
    queue_type,
)

if TYPE_CHECKING:
    from timetile.dialects.tile.kernel import KernelOp


@with_known_segments
@irdl_op_definition
class ApplyOp(IRDLOperation):
    """
    The next plane of each result: the cell function on the taps. The box is the kernel's bounds, or
    the box after `in`. Outside the box result k takes the plane of `else` operand k; without `else`
    cells outside are computed like cells inside, as far as needed by readers.

    `points` are the number of the step, and three fields for each use in `uses`: cells of the box
    take values, or are noted, as by `temporal.update`. Each cell of the tile takes its values, and
    the tile that stores a cell notes the cell.

    Example: `%v = tile.apply @cell(%u[-1, 0], %u[0, 0]) else %h : !tile.queue<f64, lag 1>`
    """

    name = "tile.apply"

    queues = var_operand_def(QueueType)
    scalars = var_operand_def()
    outside = var_operand_def(QueueType)
    points = var_operand_def()
    cell = prop_def(FlatSymbolRefAttrConstr)
    taps = prop_def(INTEGERS)
    indices = opt_prop_def(INTEGERS)
    box = opt_prop_def(StencilBoundsAttr)
    home = opt_prop_def(RegistersAttr | SharedAttr)
    uses = opt_prop_def(ArrayAttr[PointsAttr])
    res = var_result_def(QueueType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = lazy_traits_def(lambda: (in_kernel(), Pure()))

    custom_directives = (Taps, Values)
    assembly_format = (
        "$cell custom<Taps>($queues, type($queues), $taps) "
        "(`scalars` `(` custom<Values>($scalars, type($scalars))^ `)`)? (`indices` $indices^)? "
        "(`else` custom<Values>($outside, type($outside))^)? (`in` $box^)? "
        "(`points` `(` custom<Values>($points, type($points))^ `)` `uses` $uses)? (`home` $home^)? "
        "attr-dict-with-keyword `:` type($res)"
    )

    def __init__(
        self,
        cell: str | FlatSymbolRefAttr,
        queues: Sequence[SSAValue],
        taps: Sequence[Tap],
        rank: int,
        result_types: Sequence[QueueType],
        outside: Sequence[SSAValue] = (),
        scalars: Sequence[SSAValue] = (),
        indices: Sequence[int] = (),
        box: StencilBoundsAttr | None = None,
        points: Sequence[SSAValue] = (),
        uses: Sequence[PointsAttr] = (),
    ):
        assert all(len(tap.offset) == rank for tap in taps)
        given = {
            "cell": SymbolRefAttr(cell) if isinstance(cell, str) else cell,
            "taps": encode_taps(taps),
            "indices": encode_integers(indices) if indices else None,
            "box": box,
            "uses": ArrayAttr(uses) if uses else None,
        }
        make_segmented(self, [queues, scalars, outside, points], given, result_types)

    @property
    def kernel(self) -> KernelOp:
        """The enclosing kernel."""
        return cast("KernelOp", self.parent_op())

    @property
    def replaces_cells(self) -> bool:
        """Cells outside the kernel's bounds are not computed by the cell function."""
        return self.box is None and bool(self.outside)

    @property
    def tap_list(self) -> tuple[Tap, ...]:
        """The taps, in the order of the cell function's arguments."""
        return decode_taps(self.taps, self.kernel.rank)

    @property
    def point_uses(self) -> tuple[PointsAttr, ...]:
        """How the stage uses lists of points."""
        return () if self.uses is None else self.uses.data

    @property
    def point_sets(self) -> tuple[PointSet, ...]:
        """The uses of lists of points, each with its fields."""
        return point_sets(self.point_uses, self.points)

    def queue_of(self, tap: Tap) -> SSAValue:
        """The tapped queue. The queues are the first operands."""
        return self.operands[tap.operand]

    @property
    def index_axes(self) -> tuple[int, ...]:
        """The axes of the coordinates among the cell function's arguments."""
        return decode_integers(self.indices)

    @property
    def lag(self) -> int:
        """The lag of the results, in stream steps."""
        return queue_lag(self.results[0])

    def age(self, tap: Tap) -> int:
        """The age of the tapped plane, in stream steps; 0 is the plane of the present step."""
        offset = self.kernel.along_stream(tap.offset)
        return self.lag - queue_lag(self.queue_of(tap)) - offset

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queues read, with the cells needed for the cells `made` of the results."""
        parts = [made[result] for result in self.res if result in made]
        if not parts:
            return
        computed = reduce(CellBox.__or__, parts)
        if self.outside:
            bounds = CellBox.of(self.kernel.bounds if self.box is None else self.box)
            computed &= self.kernel.continued(computed, bounds)
        for tap in () if computed.is_empty else self.tap_list:
            yield self.queue_of(tap), computed.moved(tap.offset)
        for queue, result in zip(self.outside, self.res):
            if result in made and made[result] not in computed:
                yield queue, made[result]

    def verify_(self) -> None:
        kernel = self.kernel
        verify_taps(self.taps, kernel.rank, len(self.queues))
        if not self.res:
            raise VerifyException("an apply has at least one result")
        elements = [queue_type(result).element for result in self.res]
        verify_points(self.point_uses, self.points, elements)
        if len({queue_lag(r) for r in self.res}) != 1:
            raise VerifyException("the results of an apply have one lag")
        if self.outside and len(self.outside) != len(self.res):
            raise VerifyException(f"{len(self.outside)} else operands for {len(self.res)} results")
        for queue, result in zip(self.outside, self.res):
            if queue_type(queue).element != queue_type(result).element:
                raise VerifyException("an else operand has the element type of its result")
        for queue in self.outside:
            load = queue.owner
            if isinstance(load, LoadOp) and load.is_read_at_use:
                raise VerifyException("a load with at or along is tapped, and read by no else")
            if self.box is not None and isinstance(load, LoadOp) and load.data is None:
                raise VerifyException(
                    "a stage with a box of its own takes cells inside the bounds from else, and a "
                    "load of a halo has no cells inside"
                )
            if self.lag < queue_lag(queue):
                raise VerifyException(
                    f"else reads a plane that has not arrived: lag {self.lag} must be at least "
                    f"{queue_lag(queue)}"
                )
        for tap in self.tap_list:
            if self.age(tap) < 0:
                raise VerifyException(
                    f"tap {list(tap.offset)} reads a plane that has not arrived: lag {self.lag} "
                    f"must be at least {self.lag - self.age(tap)}"
                )
            self.verify_tap_distance(tap)
            self.verify_own_cell(tap)

    def verify_own_cell(self, tap: Tap) -> None:
        """VerifyException for a tap beside the own cell of a load with an offset."""
        load = self.queue_of(tap).owner
        if isinstance(load, LoadOp) and load.offset is not None and any(tap.offset):
            raise VerifyException("a load with at is tapped at the own cell")

    def verify_tap_distance(self, tap: Tap) -> None:
        """VerifyException for a tap across warps, unless within the edges of an exchange."""
        kernel = self.kernel
        if kernel.layout is None:
            return
        queue = self.queue_of(tap)
        home = queue_home(queue)
        if isinstance(home, SharedAttr) and home.reader.data is Reader.TILE:
            return
        if isinstance(queue.owner, LoadOp) and queue.owner.is_read_at_use:
            return
        edges = ints(queue_type(queue).edges) or (0,) * len(kernel.plane_axes)
        for axis, layout, edge in zip(kernel.plane_axes, kernel.layout.axis_layouts, edges):
            if layout.warps * layout.blocks > 1 and abs(tap.offset[axis]) > edge:
                raise VerifyException(
                    f"tap {list(tap.offset)} crosses warps along axis {axis}; tap an exchange of "
                    f"the queue with edges of at least {abs(tap.offset[axis])}, not of {edge}"
                )


def queue_home(queue: SSAValue) -> HomeAttr | None:
    """Where the planes of a queue are kept; None before homes are chosen."""
    stage = queue.owner
    return stage.home if isinstance(stage, LoadOp | ApplyOp | ExchangeOp) else None


def taps_of(queue: SSAValue) -> Iterator[tuple[ApplyOp, Tap]]:
    """The taps of a queue, with the applies."""
    for reader in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(reader, ApplyOp):
            named = {k for k, operand in enumerate(reader.queues) if operand is queue}
            for tap in reader.tap_list:
                if tap.operand in named:
                    yield reader, tap
