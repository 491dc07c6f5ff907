"""
split-sums: a sum becomes a chain of stages: one for each plane, two halves, or one for each column.

Before (`form=rows`), a 9-point box:
```
%u1 = tile.apply @cell(%u0[-1,-1], ..., %u0[1,1]) else %h1 : !tile.queue<f64, lag 1>
```
After:
```
%p1 = tile.apply @cell_rows0(%u0[-1,-1], %u0[-1,0], %u0[-1,1])           : !tile.queue<f64, lag -1>
%s1 = tile.apply @cell_rows1(%p1[0,0], %u0[0,-1], %u0[0,0], %u0[0,1])    : !tile.queue<f64, lag 0>
%u1 = tile.apply @cell_rows2(%s1[0,0], %u0[1,-1], ...) else %h1          : !tile.queue<f64, lag 1>
```
Every plane is tapped when it arrives, and its cells are shuffled once; partial sums are kept
instead of planes (the scatter form). After `form=halves`, a star of radius 4, streamed along z:
```
%f = tile.apply @cell_halves0(%u0[-4,0,0], ..., %u0[-1,0,0])           : !tile.queue<f64, lag -1>
%u1 = tile.apply @cell_halves1(%f[0,0,0], %u0[0,0,0], ...) else %h1     : !tile.queue<f64, lag 4>
```
The planes before the cell's own enter its sum together when the last of them arrives, the other
planes when all have arrived (the semi-stencil: forward and backward halves). Each half spans about
half of the planes. After `form=lanes`, the box again, for a body with one column after the other:
```
%p1 = tile.apply @cell_lanes0(%u0[-1,0], %u0[0,0], %u0[1,0])             : !tile.queue<f64, lag 1>
%s1 = tile.apply @cell_lanes1(%p1[0,-1], %u0[-1,0], %u0[0,0], %u0[1,0])  : !tile.queue<f64, lag 1>
%t1 = tile.apply @cell_lanes2(%s1[0,-1], %u0[-1,0], %u0[0,0], %u0[1,0])  : !tile.queue<f64, lag 1>
%u1 = tile.apply @cell_lanes3(%t1[0,1]) else %h1                         : !tile.queue<f64, lag 1>
```
Partial sums travel along the row, from lane to lane. Each lane adds cells of its own column, and
the total returns to its cell. Only sums are shuffled, for any number of planes (SSAM, section 4).

A sum is cut only between terms, and keeps their order. The body must add planes from the oldest to
the newest, or columns from the first to the last. From part to part no more partial sums pass than
the cell has results, or than the option `carried` says: a cell with several second differences
carries a sum for each. Without the option, up to `MOST_CARRIED` for each result pass where more
cells beside the own column have entered:
```
%p, %q = tile.apply @cell_rows0(%u0[-1,-1], %u0[-1,1]) : !tile.queue<f64, lag -1>, ...
%u1 = tile.apply @cell_rows1(%p[0,0], %q[0,0], %u0[1,0], %again[0,0], %k[0,0]) : ...
```
The last part then takes the coefficients, so that no product with a coefficient is carried, and own
cells of a field needed by a later part are loaded again. Constants, scalars, coordinates and values
computed from these alone are copied into the parts (coordinates do not travel along rows). Other
sums stay whole, with a remark. All sums stay whole in a kernel without a streaming axis, and for
`form=lanes` in a kernel whose rows lie along the stream or belong to several warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.taps import Tap
from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, queue_type
from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.queues import made_queue_type
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.point_stages import stages_with_points
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.diagnostics import check_options, remark
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.patterns import rewrite_once
from timetile.passes.tiling.sum_parts import (
    SumFunction,
    SumPart,
    held,
    latest_plane,
    part_function,
    split_body,
)

MOST_CARRIED = 4
"""Most values carried from part to part for each result of a sum with several partial sums."""

PARTS = {Form.ROWS: "planes", Form.HALVES: "planes", Form.LANES: "columns"}
"""What a form splits a sum into, one after the other."""


def part_of(offset: int, offsets: Sequence[int], form: Form) -> int:
    """
    The last plane of the part around a plane: the plane itself, or the last of the half. For
    `lanes`, the column itself.
    """
    if form is not Form.HALVES:
        return offset
    return max(other for other in offsets if (other < 0) == (offset < 0))


def one_warp_holds_rows(kernel: KernelOp) -> bool:
    """Whether lanes of one warp hold the rows of a tile. True without a layout."""
    return kernel.layout is None or kernel.layout.axis_layouts[-1].tile_warps == 1


def why_none(kernel: KernelOp, form: Form) -> str | None:
    """Why no sum of a kernel can be split; None where some may be."""
    if stages_with_points(kernel):
        return "points are added to whole sums; the sums stay whole"
    if kernel.beyond is not None and not {Kind.KEEP, Kind.PERIODIC}.issuperset(kernel.beyond.kinds):
        return (
            "cells outside the bounds are mirrored or a value, and parts of a sum are not; its "
            "sums stay whole"
        )
    if kernel.stream_axis is None:
        return (
            "nothing is streamed, and planes do not arrive one after the other; its sums stay whole"
        )
    if form is Form.LANES and kernel.stream_axis == kernel.rank - 1:
        return (
            "its rows lie along the stream, and no lanes along them; its sums stay whole; stream "
            "another axis"
        )
    if form is Form.LANES and not one_warp_holds_rows(kernel):
        return (
            "several warps hold a row, and sums travel within a warp only; its sums stay whole; "
            "give device-tiling one warp along the row"
        )
    return None


def places_of(apply: ApplyOp, form: Form) -> list[int]:
    """
    The place of each tap of a stage along the cut axis: the part taking the tap. Sums are cut along
    the axis of the lanes, or along the stream.
    """
    # Taps with equal offsets along the cut axis belong to one part, whichever queue a tap reads.
    offsets = [tap.offset for tap in apply.tap_list]
    places = [o[-1] if form == "lanes" else apply.kernel.along_stream(o) for o in offsets]
    return [part_of(place, places, form) for place in places]


def late_places(apply: ApplyOp, form: Form) -> list[int]:
    """
    The places of the taps, with coefficients taken last: a field read at the own cell alone is
    loaded when the last part needs the cell, and no product with it is carried.
    """
    places, taps = places_of(apply, form), apply.tap_list
    beside = {tap.operand for tap in taps if any(tap.offset)}
    return [
        place if tap.operand in beside else max(places)
        for tap, place in zip(taps, places, strict=True)
    ]


def carries_little(apply: ApplyOp, parts: Sequence[SumPart], places: Sequence[int]) -> bool:
    """Parts carry no more values than cells beside have entered, and read no such cell again."""
    read: set[int] = set()
    for part in parts:
        beside = {k for k in part.taps if is_beside(apply, k)}
        if any(places[k] < part.offset for k in beside):
            return False
        read |= beside
        if part is not parts[-1] and len(part.results) > len(read):
            return False
    return True


def is_beside(apply: ApplyOp, number: int) -> bool:
    """Whether a tap reads a cell beside the own column."""
    offset, axis = apply.tap_list[number].offset, apply.kernel.stream_axis
    return any(distance for k, distance in enumerate(offset) if k != axis)


def can_split(apply: ApplyOp, form: Form) -> bool:
    """The taps of a stage lie in several parts."""
    return len(set(places_of(apply, form))) > 1


Cuts = dict[tuple[str, Form, tuple[int, ...]], list[SumFunction]]
"""The parts of a cell function, by the cuts of taps: all levels share the parts, made once."""


class Splitter:
    """Replaces one apply by a chain of stages."""

    def __init__(
        self, apply: ApplyOp, module: ModuleOp, form: Form, cuts: Cuts, carried: int | None
    ):
        self.apply, self.module, self.cuts = apply, module, cuts
        self.carried = carried
        self.form: Form = form
        self.function = cell_function(module, apply)
        self.loaded_again: dict[int, SSAValue] = {}

    def split(self, rewriter: PatternRewriter) -> bool:
        """Replace the apply by stages. Returns False if the body has another form."""
        apply, form = self.apply, self.form
        if form is Form.LANES and apply.index_axes:
            return False
        offsets = places_of(apply, form)
        parts = split_body(self.function, offsets, self.carried)
        if parts is None and form is not Form.LANES and self.carried is None:
            offsets = late_places(apply, form)
            most = MOST_CARRIED * len(apply.res)
            parts = split_body(self.function, offsets, most, again=True)
            if parts is not None and not carries_little(apply, parts, offsets):
                parts = None
        if parts is None:
            return False
        functions = self.functions(parts, offsets)
        self.places = offsets
        self.load_again(parts, rewriter)
        stages: list[ApplyOp] = []
        partial: Sequence[SSAValue] = ()
        # Cells between the lane holding a travelling sum and the cell of the sum.
        travelled = 0
        for part, function in zip(parts, functions):
            before, travelled = travelled, part.offset if form is Form.LANES else 0
            ends = part is parts[-1] and travelled == 0
            stages.append(self.stage(part, function, partial, before - travelled, travelled, ends))
            partial = stages[-1].res
        if travelled:
            stages.append(self.returning(partial, travelled, len(parts)))
        rewriter.replace(apply, stages)
        return True

    def load_again(self, parts: Sequence[SumPart], rewriter: PatternRewriter) -> None:
        """
        Load own cells of fields once more for parts that need the cells planes later: a load from
        the second-level cache costs less than registers for all planes between.
        """
        loads: dict[SSAValue, SSAValue] = {}
        for part in parts:
            for k in part.taps:
                tap = self.apply.tap_list[k]
                queue = self.apply.queues[tap.operand]
                early = self.places[k] < part.offset
                if not early or not isinstance(load := queue.owner, LoadOp) or any(tap.offset):
                    continue
                if queue not in loads:
                    again = load.clone()
                    rewriter.insert(again)
                    loads[queue] = again.result
                self.loaded_again[k] = loads[queue]

    def functions(self, parts: Sequence[SumPart], offsets: Sequence[int]) -> list[SumFunction]:
        """The functions of the parts, made once for all stages with equal cuts."""
        name = self.function.sym_name.data
        cut = (name, self.form, tuple(offsets))
        if cut not in self.cuts:
            latest = latest_plane(self.function, offsets)
            self.cuts[cut] = [
                part_function(
                    self.module, self.function, part, f"{name}_{self.form}{number}", latest
                )
                for number, part in enumerate(parts)
            ]
        return self.cuts[cut]

    def stage(
        self,
        part: SumPart,
        function: SumFunction,
        partial: Sequence[SSAValue],
        moved: int,
        travelled: int,
        ends: bool,
    ) -> ApplyOp:
        """
        The stage of one part, added to the partial sums so far. The last stage has the bounds of
        the whole.
        """
        apply, first = self.apply, len(partial)
        queues = [*partial, *apply.queues]
        taps = [Tap(k, along_row(apply, moved)) for k in range(first)]
        for k in part.taps:
            tap = apply.tap_list[k]
            operand = tap.operand + first
            if self.places[k] < part.offset and k in self.loaded_again:
                queues.append(self.loaded_again[k])
                operand = len(queues) - 1
            taps.append(Tap(operand, moved_along_row(tap.offset, -travelled)))
        used = [k for k in range(len(queues)) if any(tap.operand == k for tap in taps)]
        scalars = len(apply.scalars)
        return ApplyOp(
            function.name,
            [queues[k] for k in used],
            [Tap(used.index(tap.operand), tap.offset) for tap in taps],
            apply.kernel.rank,
            [made_queue_type(value.type, 0) for value in part.results],
            apply.outside if ends else (),
            [apply.scalars[k] for k in function.others if k < scalars],
            [apply.index_axes[k - scalars] for k in function.others if k >= scalars],
            box=apply.box if ends else None,
        )

    def returning(self, totals: Sequence[SSAValue], place: int, number: int) -> ApplyOp:
        """
        The stage returning the totals of travelling sums to their cell, from `place` cells along
        the row.
        """
        apply, kinds = self.apply, [queue_type(total).element for total in totals]
        block = Block(arg_types=kinds)
        block.add_op(ReturnOp(*block.args))
        name = f"{self.function.sym_name.data}_{self.form}{number}"
        made = FuncOp(name, (kinds, kinds), Region(block), visibility="private")
        return ApplyOp(
            held(self.module, self.function, made),
            totals,
            [Tap(k, along_row(apply, place)) for k in range(len(totals))],
            apply.kernel.rank,
            [made_queue_type(kind, 0) for kind in kinds],
            apply.outside,
            box=apply.box,
        )


def moved_along_row(offset: Sequence[int], distance: int) -> tuple[int, ...]:
    """An offset moved along the row by `distance` cells."""
    return (*offset[:-1], offset[-1] + distance)


def along_row(apply: ApplyOp, distance: int) -> tuple[int, ...]:
    """The offset of a cell `distance` cells further along the row."""
    return moved_along_row((0,) * apply.kernel.rank, distance)


def why_whole(apply: ApplyOp, form: Form) -> str:
    """Why a sum was not split."""
    if form is Form.LANES and apply.index_axes:
        return (
            "its cell takes coordinates, which do not travel with a sum; it stays whole; use "
            "form=rows"
        )
    return f"its sum does not take the {PARTS[form]} one after the other; it stays whole"


@dataclass(frozen=True)
class SplitSum(RewritePattern):
    """
    A sum becomes a chain of stages, with at most `carried` sums from part to part. `whole` takes
    the sums that stay.
    """

    module: ModuleOp
    form: Form
    cuts: Cuts
    whole: list[ApplyOp]
    carried: int | None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ApplyOp, rewriter: PatternRewriter, /) -> None:
        if not can_split(op, self.form):
            return
        splitter = Splitter(op, self.module, self.form, self.cuts, self.carried)
        if not splitter.split(rewriter):
            self.whole.append(op)


def split_stages(
    kernel: KernelOp, module: ModuleOp, form: Form, cuts: Cuts, carried: int | None = None
) -> list[ApplyOp]:
    """
    Split the sums of a kernel, with at most `carried` sums from part to part, or as many as a cell
    has results. Returns the sums of several parts that stay whole.
    """
    whole: list[ApplyOp] = []
    rewrite_once(kernel.stages, {ApplyOp: SplitSum(module, form, cuts, whole, carried)})
    assign_lags(kernel)
    return whole


def split_kernel(kernel: KernelOp, module: ModuleOp, form: Form) -> bool:
    """Split all sums of a kernel. False if some sum cannot be split, or if no sum needs to be."""
    if why_none(kernel, form) is not None:
        return False
    sums = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    possible = bool(sums) and all(can_split(stage, form) for stage in sums)
    return not split_stages(kernel, module, form, {}) and possible


@dataclass(frozen=True)
class SplitSumsPass(EnumOptionsPass):
    """Split sums into stages; see the module's documentation."""

    name = "split-sums"

    form: Form | None = None
    carried: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, carried=1)
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        cuts: Cuts = {}
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            form = self.form or kernel.decisions.form
            if form is Form.NONE:
                continue
            if (why := why_none(kernel, form)) is not None:
                remark(kernel, why)
                continue
            for stage in split_stages(kernel, op, form, cuts, self.carried):
                remark(stage, why_whole(stage, form))
