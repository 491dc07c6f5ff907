"""split-regions: updates of a step with layers are split into the inside and the layers' boxes.

Before (a field with absorbing layers of 8 cells, kept in memory variables):
```
temporal.loop %n (%u = %U, %v = %V, %m = %M, %k = %K) rotate [...] {
  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
  temporal.update %k = @fade(%m[0]) in <[1], [9]>
  temporal.update %v = @add(%v[0], %k[0]) in <[1], [9]>
}
```
After:
```
  temporal.update %v = @cell(%u[-1], %u[1]) in <[9], [63]>
  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [9]>
  temporal.update %k = @fade(%m[0]) in <[1], [9]>
  temporal.update %v = @add(%v[0], %k[0]) in <[1], [9]>
```
A cell passes through the memory once for all updates of a kernel, and updates of one region can
share a kernel: a layer's kernel loads a field once, and the inside has no code of the layers.

1. *Large* updates write at least LEAST_BOX of the step's cells. Large updates of one box make a
   *sub-step* if none waits for another. All other updates are *layers*.
2. The *inside* of a sub-step is the largest box without cells of layers of the sub-step's targets.
   Taps from the inside read results of an earlier sub-step inside the earlier inside alone. Along
   rows the inside begins and ends with lines of memory.
3. The box around the inside has up to 26 regions. Updates of a sub-step are split at the sides of
   the inside, together with the layers of the sub-step: layers of the targets, and layers with
   results for such layers at the own cell.
4. Insides come first if nothing makes them wait, so that sub-steps may share a kernel. Layers
   without a sub-step follow, and then regions, with updates of one region beside each other, the
   large updates first.

An update reads its own targets at the own cell alone: pieces of an update may come in any order.
Steps stay unchanged if some sub-step has no inside. Loops of parts of a domain stay unchanged, too:
parts launch their kernels together, and have different regions. The cost is a comparison for each
pair of updates, and, if one of a pair waits, for each pair of pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations, product

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.footprints import MOST_UPDATES, Footprint
from timetile.passes.loops.group_updates import has_known_cells, has_layers
from timetile.passes.rewriting import copied_with_module

LEAST_BOX = 0.5
"""The least share of a step's cells in a large update."""

LINE_BYTES = 128
"""
Bytes of memory moved at once: in FP32, a row of 10 cells takes as long as one of 50 (on an H200,
layers of rows 10 cells long ran at 0.17 to 0.27 of a copy's speed, layers along other axes at 0.7
to 0.8).
"""

RegionPlace = tuple[int, ...]
"""A region: for each axis 0 below the inside, 1 in the inside, 2 above."""


def largest_beside(box: CellBox, layer: CellBox) -> CellBox:
    """The largest part of a box without cells of a layer: a box."""
    if (box & layer).is_empty:
        return box
    found: list[CellBox] = []
    for axis in range(len(box.lower)):
        low, high = list(box.lower), list(box.upper)
        low[axis] = layer.upper[axis]
        high[axis] = layer.lower[axis]
        found += [CellBox(tuple(low), box.upper), CellBox(box.lower, tuple(high))]
    return max(found, key=cells_of)


@dataclass(eq=False)
class SubStep:
    """Large updates of one box without waits for each other, and the inside."""

    updates: list[Footprint]
    inside: CellBox
    layers: list[Footprint] = field(default_factory=list[Footprint])

    @property
    def box(self) -> CellBox:
        """The cells written by each of the updates."""
        return self.updates[0].box

    @property
    def targets(self) -> set[SSAValue]:
        """The buffers written by the updates."""
        return {target for each in self.updates for target in each.writes}

    def regions(self) -> Iterator[tuple[RegionPlace, CellBox]]:
        """The regions with cells, by place."""
        edges = [
            (self.box.lower[k], self.inside.lower[k], self.inside.upper[k], self.box.upper[k])
            for k in range(len(self.box.lower))
        ]
        for place in product(range(3), repeat=len(edges)):
            lower = tuple(edge[k] for edge, k in zip(edges, place))
            upper = tuple(edge[k + 1] for edge, k in zip(edges, place))
            box = CellBox(lower, upper)
            if not box.is_empty:
                yield place, box


@dataclass(frozen=True, eq=False)
class RegionPiece:
    """A sub-step's update in one region, or a whole update outside of sub-steps."""

    origin: Footprint
    box: CellBox
    sub_step: SubStep | None = None
    place: RegionPlace = ()

    @property
    def is_inside(self) -> bool:
        """Whether the piece lies in the inside of its sub-step."""
        return self.sub_step is not None and all(k == 1 for k in self.place)

    @property
    def is_large(self) -> bool:
        """Whether the piece belongs to a large update."""
        return self.sub_step is not None and self.origin in self.sub_step.updates

    def is_beside(self, other: RegionPiece) -> bool:
        """Whether two pieces lie in one region."""
        if self.sub_step is None or other.sub_step is None:
            return self.sub_step is other.sub_step and self.box == other.box
        return self.sub_step is other.sub_step and self.place == other.place


def sub_steps_of(every: Sequence[Footprint]) -> list[SubStep]:
    """The sub-steps of a step, with the box of their updates as the inside."""
    around = cells_of(reduce(CellBox.__or__, (each.box for each in every)))
    sub_steps: list[SubStep] = []
    for each in every:
        if cells_of(each.box) < LEAST_BOX * around:
            continue
        last = sub_steps[-1] if sub_steps else None
        alike = last is not None and last.box == each.box
        if alike and not any(each.waits_for(other) for other in sub_steps[-1].updates):
            sub_steps[-1].updates.append(each)
        else:
            sub_steps.append(SubStep([each], each.box))
    return sub_steps


def take_layers(sub_steps: Sequence[SubStep], every: Sequence[Footprint]) -> None:
    """Give each layer to its sub-step, if any: see the module's documentation."""
    large = {each for sub_step in sub_steps for each in sub_step.updates}
    owners: dict[Footprint, SubStep] = {}
    for number in reversed(range(len(every))):
        layer = every[number]
        if layer in large:
            continue
        owner = next((p for p in sub_steps if not p.targets.isdisjoint(layer.writes)), None)
        if owner is None:
            owner = sub_step_of_readers(layer, every[number + 1 :], owners)
        if owner is not None and layer.box in owner.box:
            owners[layer] = owner
            owner.layers.insert(0, layer)


def sub_step_of_readers(
    layer: Footprint, later: Sequence[Footprint], owners: dict[Footprint, SubStep]
) -> SubStep | None:
    """The sub-step of the first later reader, if all readers read at the own cell; else None."""
    found: SubStep | None = None
    for other in later:
        update = other.update
        offsets = [
            tap.offset for tap in update.tap_list if update.sources[tap.operand] in layer.writes
        ]
        if not offsets or (other.box & layer.box).is_empty:
            continue
        if any(map(any, offsets)):
            return None
        found = found or owners.get(other)
    return found


def shrink(sub_steps: Sequence[SubStep], layers: Sequence[Footprint]) -> None:
    """Find the inside of each sub-step, of earlier sub-steps first."""
    for number, sub_step in enumerate(sub_steps):
        for layer in layers:
            if not sub_step.targets.isdisjoint(layer.writes):
                sub_step.inside = largest_beside(sub_step.inside, layer.box)
        sub_step.inside = with_whole_lines(sub_step)
        for earlier in sub_steps[:number]:
            for offset in offsets_between(sub_step, earlier):
                back = earlier.inside.moved(tuple(-d for d in offset))
                sub_step.inside = sub_step.inside & back


def with_whole_lines(sub_step: SubStep) -> CellBox:
    """
    The inside, smaller along rows by the cells to the next lines of memory if layers lie there, and
    half of the rows is left: a layer's kernel then reads and writes whole lines.
    """
    inside, box = sub_step.inside, sub_step.box
    target = sub_step.updates[0].update.targets[0]
    first, line = field_bounds(target).lb, LINE_BYTES // CELL_BYTES[element_type(target)]
    if len(box.lower) == 1 or inside.is_empty:
        return inside
    start = tuple(first)[-1]
    low, high = inside.lower[-1], inside.upper[-1]
    if low > box.lower[-1]:
        low += (start - low) % line
    if high < box.upper[-1]:
        high -= (high - start) % line
    if 2 * (high - low) < box.upper[-1] - box.lower[-1]:
        return inside
    return CellBox((*inside.lower[:-1], low), (*inside.upper[:-1], high))


def offsets_between(sub_step: SubStep, earlier: SubStep) -> Iterator[RegionPlace]:
    """The taps of a sub-step that read results of an earlier sub-step."""
    targets = earlier.targets
    for each in sub_step.updates:
        for tap in each.update.tap_list:
            if each.update.sources[tap.operand] in targets:
                yield tap.offset


def split_pieces(every: Sequence[Footprint], sub_steps: Sequence[SubStep]) -> list[RegionPiece]:
    """All pieces, in the program's order of updates."""
    of_sub_step = {each: p for p in sub_steps for each in (*p.updates, *p.layers)}
    pieces: list[RegionPiece] = []
    for each in every:
        sub_step = of_sub_step.get(each)
        if sub_step is None:
            pieces.append(RegionPiece(each, each.box))
            continue
        boxes = ((place, box & each.box) for place, box in sub_step.regions())
        pieces += [
            RegionPiece(each, box, sub_step, place) for place, box in boxes if not box.is_empty
        ]
    return pieces


def pieces_before(pieces: Sequence[RegionPiece]) -> list[set[int]]:
    """For each piece, the earlier pieces to wait for."""
    prints = [Footprint(each.origin.update, each.box) for each in pieces]
    of_update: dict[Footprint, list[int]] = {}
    for number, piece in enumerate(pieces):
        of_update.setdefault(piece.origin, []).append(number)
    found: list[set[int]] = [set() for _ in pieces]
    for (earlier, befores), (later, afters) in combinations(of_update.items(), 2):
        if later.waits_for(earlier):
            for after, before in product(afters, befores):
                if prints[after].waits_for(prints[before]):
                    found[after].add(before)
    return found


def arranged(pieces: Sequence[RegionPiece]) -> list[RegionPiece]:
    """The pieces with insides first, and with pieces of one region beside each other."""
    left = pieces_before(pieces)
    readers: list[list[int]] = [[] for _ in pieces]
    for number, others in enumerate(left):
        for other in others:
            readers[other].append(number)
    ready = [number for number, others in enumerate(left) if not others]
    done: list[RegionPiece] = []
    while ready:

        def rank(number: int) -> tuple[bool, bool, bool, bool, int]:
            piece = pieces[number]
            alike = bool(done) and piece.is_beside(done[-1])
            in_region = piece.sub_step is not None
            return not alike, not piece.is_inside, in_region, not piece.is_large, number

        chosen = min(ready, key=rank)
        ready.remove(chosen)
        for reader in readers[chosen]:
            left[reader].discard(chosen)
            if not left[reader]:
                ready.append(reader)
        done.append(pieces[chosen])
    return done


def regions_of(loop: LoopOp) -> list[RegionPiece] | None:
    """The pieces of a step in regions, in order; None for an unchanged step."""
    few = 1 < len(loop.updates) <= MOST_UPDATES
    if not few or loop.part is not None or not has_known_cells(loop) or not has_layers(loop):
        return None
    every = [Footprint(update) for update in loop.updates]
    if any(each.update.outside is not None for each in every):
        return None
    sub_steps = sub_steps_of(every)
    take_layers(sub_steps, every)
    large = {each for sub_step in sub_steps for each in sub_step.updates}
    shrink(sub_steps, [each for each in every if each not in large])
    if any(p.inside.is_empty for p in sub_steps):
        return None
    pieces = split_pieces(every, sub_steps)
    if len(pieces) == len(every):
        return None
    found = arranged(pieces)
    return found if names_alike(found, every) else None


def names_alike(pieces: Sequence[RegionPiece], every: Sequence[Footprint]) -> bool:
    """
    Whether fields and scalars from outside the loop are first used in the order of the updates:
    kernels know them by number.
    """
    ordered = [piece.origin.update for piece in pieces]
    before = [each.update for each in every]
    return first_used(ordered) == first_used(before)


def first_used(updates: Sequence[UpdateOp]) -> tuple[list[SSAValue], list[SSAValue]]:
    """The sources and the scalars of updates, in the order of first use."""
    sources = dict.fromkeys(
        source for each in updates for source in each.sources if not is_buffer_of_loop(source)
    )
    scalars = dict.fromkeys(scalar for each in updates for scalar in each.scalars)
    return list(sources), list(scalars)


def is_buffer_of_loop(source: SSAValue) -> bool:
    """Whether a source is a buffer of the loop."""
    return isinstance(source.owner, Block) and isinstance(source.owner.parent_op(), LoopOp)


@dataclass(frozen=True)
class StepInRegions:
    """
    A loop, and its split step, made once for all questions of a choice. Updates of the loop stay
    unchanged meanwhile.
    """

    loop: LoopOp

    @cached_property
    def split(self) -> LoopOp | None:
        """The loop with a split step, in a copy of the module; None for an unchanged step."""
        copy = copied_with_module(self.loop)
        return copy if split_step(copy) else None

    def of(self, *, regions: bool) -> LoopOp:
        """The loop, with a split step where regions are asked for and there are any."""
        return self.split or self.loop if regions else self.loop


def split_step(loop: LoopOp) -> bool:
    """Split the updates of a step with layers. Returns whether the step changed."""
    pieces = regions_of(loop)
    if pieces is None:
        return False
    made: list[UpdateOp] = []
    for piece in pieces:
        update = piece.origin.update.clone()
        update.box = piece.box.bounds()
        made.append(update)
    for update in list(loop.updates):
        update.detach()
        update.erase()
    loop.body.block.add_ops(made)
    return True


@dataclass(frozen=True)
class SplitRegionsPass(ModulePass):
    """Split the updates of steps with layers; see the module's documentation."""

    name = "split-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            split_step(loop)
