"""
cut-domain: the time loops of a rank, on fields that hold the rank's part of the domain and a ghost
zone.

Before:
```
func.func @heat(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
  } : ...
```
After, with `rank=1 parts=4 steps=2`:
```
func.func @loop0(%n: index, %A: !stencil.field<[14,34]xf64>, %B: !stencil.field<[14,34]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0]
      part #temporal.part<rank 1 of [0, 16, 32, 48, 64], ghosts [2, 2], steps 2> {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[15], [33]>
  } : ...
```
1. The domain is the box around all cells written by loops of the most axes. Loops of fewer axes are
   small, and run as a whole on each rank.
2. `passes/analysis/ghosts.py` computes the ghost zone of `steps` steps.
3. Along a cut axis that all updates continue periodically, places go on beyond the ends: fields
   and boxes are widened by the ghost zone. Other reads beyond fields become boxes (`split-edges`).
4. Fields are cut to the cells held by the rank, and boxes to the cells with all reads in the
   fields. Updates without such a cell are dropped. Coordinates stay those of the program. Lists of
   points stay whole: an update leaves out entries outside its box.

Each loop becomes a function of its own, with the loop's fields and scalars as arguments, and so
does each sweep (`passes/loops/part_sweeps.py`): the host's operations around are equal on all
ranks. Steps after `steps` need fresh ghosts; the runtime exchanges them between runs of the
loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, repeat
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition, Ghosts
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp, PartAttr, SweepOp, UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, Side
from timetile.passes.analysis.ghosts import StepMargins, wider, zones_of_turns
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.diagnostics import check_options, refuse
from timetile.passes.loops.part_sweeps import (
    check_whole_lines,
    cut_sweep,
    name_of_rank_sweep,
    reach_of_sweep,
    sweep_function,
    sweeps_of_module,
    whole_bounds,
)
from timetile.passes.loops.split_edges import SplitEdgesPass


@dataclass(frozen=True)
class Domain:
    """
    The cells written by the time loops and sweeps of a module with the most axes, and these loops
    and sweeps.
    """

    box: CellBox
    loops: tuple[LoopOp, ...]
    sweeps: tuple[SweepOp, ...] = ()

    @staticmethod
    def of(module: ModuleOp) -> Domain | None:
        """The domain of a module; None without a time loop and a sweep."""
        loops = [op for op in module.walk() if isinstance(op, LoopOp) and op.updates]
        sweeps = sweeps_of_module(module)
        ranks = [loop.updates[0].rank for loop in loops] + [op.rank for op in sweeps]
        most = max(ranks, default=0)
        cut = tuple(loop for loop in loops if loop.updates[0].rank == most)
        swept = tuple(op for op in sweeps if op.rank == most)
        written = [written_bounds(loop) for loop in cut] + [op.box for op in swept]
        if not written:
            return None
        box = reduce(lambda one, other: one | other, map(CellBox.of, written))
        return Domain(box, cut, swept)

    @property
    def first(self) -> Operation:
        """The first loop, or the first sweep."""
        return (*self.loops, *self.sweeps)[0]

    @property
    def swept_axes(self) -> tuple[int, ...]:
        """The axes that sweeps go along: no cut crosses them."""
        return tuple(sorted({op.axis.data for op in self.sweeps}))

    def is_periodic(self, axis: int) -> bool:
        """Whether places along an axis may go on beyond the ends: cells repeat there."""
        return all(
            self.repeats(update, axis) for loop in self.loops for update in loop.updates
        ) and any(
            Kind.PERIODIC in boundary.of_axis(axis)
            for loop in self.loops
            for update in loop.updates
            for boundary in update.continued
        )

    def repeats(self, update: UpdateOp, axis: int) -> bool:
        """Whether an update computes equal cells from equal cells, a domain farther along."""
        span = self.box.lower[axis], self.box.upper[axis]
        spans = [(tuple(update.box.lb)[axis], tuple(update.box.ub)[axis])]
        for field in (*update.sources, *update.targets):
            bounds = field_bounds(field)
            spans.append((tuple(bounds.lb)[axis], tuple(bounds.ub)[axis]))
            owner = field.owner
            if isinstance(owner, BroadcastOp) and axis in owner.axis_list:
                return False
        if any(other != span for other in spans) or axis in update.index_axes or update.points:
            return False
        return all(
            Kind.PERIODIC in update.continued[tap.operand].of_axis(axis)
            for tap in update.tap_list
            if tap.offset[axis]
        )

    def periodic(self, counts: Sequence[int]) -> tuple[int, ...]:
        """The cut axes whose places go on beyond the ends."""
        return tuple(
            axis for axis, count in enumerate(counts) if count > 1 and self.is_periodic(axis)
        )

    @property
    def runs_one_loop(self) -> bool:
        """A single loop runs, and runs once."""
        return [type(loop.parent_op()) for loop in self.loops] == [FuncOp] and not self.sweeps

    def zones(self, unrolled: tuple[int, ...]) -> Iterator[Ghosts]:
        """The ghost zones of 1, 2, 3, ... steps of any loop; a sweep makes one step."""
        none: Ghosts = ((0, 0),) * len(self.box.lower)
        swept = reduce(wider, map(reach_of_sweep, self.sweeps), none)
        if not self.loops:
            yield from repeat(swept)
        elif self.runs_one_loop:
            yield from StepMargins(self.loops[0], unrolled).zones()
        else:
            for zone in zones_of_turns(self.loops, unrolled):
                yield wider(swept, zone)

    def ghosts(self, steps: int, unrolled: tuple[int, ...]) -> Ghosts:
        """The ghost zone of some steps, 1 or more, of any loop."""
        return next(islice(self.zones(unrolled), steps - 1, None))


def unroll(update: UpdateOp, axis: int, field: CellBox) -> None:
    """
    Widen the box of an update along a periodic axis to all cells with reads inside fields of these
    bounds, and read no farther.
    """
    taps = [tap.offset[axis] for tap in update.tap_list]
    box = CellBox.of(update.box)
    low, high = field.lower[axis] - min(taps, default=0), field.upper[axis] - max(taps, default=0)
    low, high = max(low, field.lower[axis]), min(high, field.upper[axis])
    update.box = CellBox(
        (*box.lower[:axis], low, *box.lower[axis + 1 :]),
        (*box.upper[:axis], high, *box.upper[axis + 1 :]),
    ).bounds()
    kept: list[BoundaryAttr] = []
    for boundary in update.continued:
        sides: list[Side] = []
        for other in range(update.rank):
            sides += (Kind.KEEP, Kind.KEEP) if other == axis else boundary.of_axis(other)
        kept.append(BoundaryAttr(*sides))
    continues = any(not boundary.keeps_all for boundary in kept)
    update.beyond = update.beyond.__class__(kept) if update.beyond and continues else None


def held_box(bounds: CellBox, part: PartAttr) -> CellBox:
    """
    The cells held by a rank of a field with these bounds. A field far from the part keeps one cell,
    the nearest: no array is empty.
    """
    zone = part.decomposition.held(part.rank.data, bounds, part.zone)
    lower, upper = list(zone.lower), list(zone.upper)
    for axis, (low, high) in enumerate(zip(zone.lower, zone.upper)):
        if low >= high:
            first = bounds.lower[axis] if high <= bounds.lower[axis] else bounds.upper[axis] - 1
            lower[axis], upper[axis] = first, first + 1
    return CellBox(tuple(lower), tuple(upper))


def cut_box(update: UpdateOp, bounds: dict[SSAValue, CellBox]) -> CellBox:
    """The cells of an update with all reads and writes in fields of these bounds."""
    box = CellBox.of(update.box)
    for target in update.targets:
        box &= bounds[target]
    for tap in update.tap_list:
        there = bounds[update.sources[tap.operand]]
        box &= there.moved([-distance for distance in tap.offset])
    return box


def arguments_of(loop: LoopOp) -> Iterator[SSAValue]:
    """
    The values taken by the function of a loop: the number of steps, buffers, captured fields and
    scalars. Of a field spread along more axes, the field itself.
    """
    yield loop.steps
    yield from loop.buffers
    for field in loop.captures:
        yield field.owner.source if isinstance(field.owner, BroadcastOp) else field
    yield from loop.scalars


def function_of(loop: LoopOp, name: str) -> FuncOp:
    """A function with a copy of a loop, on the loop's fields and scalars."""
    given = list(dict.fromkeys(arguments_of(loop)))
    block = Block(arg_types=[value.type for value in given])
    mapping: dict[SSAValue, SSAValue] = dict(zip(given, block.args))
    for old, new in zip(given, block.args):
        new.name_hint = old.name_hint
    for field in loop.captures:
        if isinstance(field.owner, BroadcastOp):
            block.add_op(field.owner.clone(mapping))
    block.add_op(loop.clone(mapping))
    block.add_op(ReturnOp())
    return FuncOp(name, ([value.type for value in given], []), Region(block))


def loop_name(number: int) -> str:
    """The name of the function with a loop, by the loop's number in the program."""
    return f"loop{number}"


def loops_alone(module: ModuleOp) -> ModuleOp:
    """
    A module with the cell functions of a module and a function for each of its time loops and
    sweeps.
    """
    made = module.clone()
    loops = [op for op in made.walk() if isinstance(op, LoopOp)]
    sweeps = sweeps_of_module(made)
    functions = [function_of(loop, loop_name(number)) for number, loop in enumerate(loops)]
    functions += [
        sweep_function(op, name_of_rank_sweep(number)) for number, op in enumerate(sweeps)
    ]
    around = {around_function(op) for op in (*loops, *sweeps)}
    for function in list(made.ops):
        if function in around:
            function.detach()
            function.erase(safe_erase=False)
    made.body.block.add_ops(functions)
    return made


def around_function(inner: Operation) -> FuncOp:
    """The function around a loop or a sweep."""
    op = inner.parent_op()
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    if op is None:
        refuse(inner, "the loop stands in no function; write the loop in a func.func")
    return op


def give_bounds(loop: LoopOp, bounds: dict[SSAValue, CellBox]) -> None:
    """
    Give the buffers and captured fields of a loop in a function of its own other bounds, by the
    argument of the loop's body or by the captured field.
    """
    args = loop.body.block.args
    for arg, buffer, result in zip(args, loop.buffers, loop.res):
        kind = FieldType(bounds[arg].bounds(), element_type(arg))
        for value in (arg, buffer, result):
            Rewriter.replace_value_with_new_type(value, kind)
    for field in loop.captures:
        kind = FieldType(bounds[field].bounds(), element_type(field))
        Rewriter.replace_value_with_new_type(field, kind)
    function = around_function(loop)
    function.update_function_type()


def widen(loop: LoopOp, axis: int, ghosts: Ghosts) -> None:
    """Let the places of a loop's fields and boxes go on beyond the ends of a periodic axis."""
    below, above = ghosts[axis]
    wide: dict[SSAValue, CellBox] = {}
    for field in (*loop.body.block.args, *loop.captures):
        box = CellBox.of(field_bounds(field))
        lower, upper = list(box.lower), list(box.upper)
        lower[axis], upper[axis] = lower[axis] - below, upper[axis] + above
        wide[field] = CellBox(tuple(lower), tuple(upper))
    for update in loop.updates:
        unroll(update, axis, wide[update.targets[0]])
    give_bounds(loop, wide)


def cut_loop(loop: LoopOp, part: PartAttr) -> None:
    """Cut the fields and boxes of a loop to the part of a rank."""
    fields = (*loop.body.block.args, *loop.captures)
    bounds = {field: CellBox.of(field_bounds(field)) for field in fields}
    lists = loop.point_fields
    bounds |= {field: held_box(bounds[field], part) for field in fields if field not in lists}
    for update in loop.updates:
        box = cut_box(update, bounds)
        if box.is_empty:
            Rewriter.erase_op(update)
        else:
            update.box = box.bounds()
    give_bounds(loop, bounds)
    loop.part = part


def cut(module: ModuleOp, decomposition: Decomposition, rank: int, steps: int) -> ModuleOp:
    """
    The loops of a module as functions of their own, cut to the part of a rank, for runs of `steps`
    steps between two exchanges. Raises CompileError for a loop with a schedule or kernels.
    """
    for loop in (op for op in module.walk() if isinstance(op, LoopOp)):
        if loop.kernel_names or loop.schedule is not None:
            refuse(
                loop,
                "schedule and kernels belong to the whole domain; run cut-domain before "
                "choose-schedule",
            )
    alone = loops_alone(module)
    whole, domain = Domain.of(module), Domain.of(alone)
    if whole is None or domain is None:
        return alone
    unrolled = decomposition.periodic
    ghosts = whole.ghosts(steps, unrolled)
    for loop in domain.loops:
        for axis in unrolled:
            widen(loop, axis, ghosts)
    SplitEdgesPass(everywhere=True).apply(Context(), alone)
    part = PartAttr(rank, decomposition, ghosts, steps)
    for loop in domain.loops:
        cut_loop(loop, part)
    for op in domain.sweeps:
        cut_sweep(op, part, {f: held_box(box, part) for f, box in whole_bounds(op).items()})
    return alone


@dataclass(frozen=True)
class CutDomainPass(ModulePass):
    """The loops of one rank, with nearly equal parts; see the module's documentation."""

    name = "cut-domain"

    parts: tuple[int, ...] = (1,)
    rank: int = 0
    steps: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, rank=0, steps=1)
        domain = Domain.of(op)
        if domain is None:
            return
        counts = (*self.parts, *(1 for _ in domain.box.lower))[: len(domain.box.lower)]
        check_whole_lines(domain.sweeps, len(counts), prod(counts), counts)
        try:
            decomposition = Decomposition.evenly(domain.box, counts, domain.periodic(counts))
            decomposition.place(self.rank)
        except ValueError as error:
            refuse(domain.first, str(error))
        made = cut(op, decomposition, self.rank, self.steps)
        block: Block = made.body.block
        for old in list(op.ops):
            old.detach()
            old.erase(safe_erase=False)
        for new in list(block.ops):
            new.detach()
            op.body.block.add_op(new)
