"""
Edge cells: cells outside the box of a step, written by updates that copy cells of the box. Where
edge cells hold at every read what a boundary says (`dialects/temporal/boundary.py`), kernels of
several steps continue the fields themselves, and no step writes an edge cell.

A step runs twice on names of cells (`cell_symbols.py`): as written, and without copies, with fields
continued by the boundary. Both must read equal cells in every update, and leave equal cells in the
box. Buffers with edge cells equal to their images are *filled*. Updates may copy before the box is
updated or afterwards, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, Side, image
from timetile.passes.analysis.cell_symbols import (
    CellPlace,
    CellSymbol,
    CopyUpdate,
    PlaceClasses,
    StepCells,
    copy_of,
    number_symbol,
)
from timetile.passes.analysis.launches.liveness import is_own_scratch, loop_rotation

Roles = frozenset[int]
"""Arguments of a loop's body, by number."""


class NoImagesError(Exception):
    """The cells that updates copy are no edge cells of a boundary; the text is the reason."""


@dataclass(frozen=True)
class EdgeSteps:
    """
    How a loop with edge cells runs, for `fewest` steps or more: `first` steps as written, until all
    edge cells that are read are images; then steps of `updates`, on fields continued by `boundary`;
    then `last` steps as written. Before the last steps the edge cells
    of the roles in `fills` are written, by copies stated for a role of equal type. Updates are
    numbers in the step, and `continued` are the roles with edge cells.
    """

    boundary: BoundaryAttr
    updates: tuple[int, ...]
    continued: Roles
    first: int
    last: int
    fewest: int
    fills: dict[int, tuple[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Look:
    """A step, seen from filled roles: the roles filled after the step, and whether reads agree."""

    filled: Roles
    agrees: bool


class EdgeCopies:
    """The edge cells of one loop. Methods raise NoImagesError if its copies make none."""

    def __init__(self, loop: LoopOp, copies: Sequence[CopyUpdate]):
        self.loop, self.args = loop, list(loop.body.block.args)
        self.copies = {copy.update: copy for copy in copies}
        self.mains = [update for update in loop.updates if update not in self.copies]
        self.rotation = loop_rotation(loop)
        self.box = CellBox.of(self.mains[0].box)
        self.scratch = {a for k, a in enumerate(self.args) if is_own_scratch(loop, k)}
        updates = loop.updates
        fields = [CellBox.of(field_bounds(f)) for u in updates for f in (*u.sources, *u.targets)]
        around = reduce(CellBox.__or__, fields)
        ends = zip(self.box.lower, self.box.upper, around.lower, around.upper)
        near = max(max(low - first, last - high) for low, high, first, last in ends)
        taps = [abs(d) for main in self.mains for tap in main.tap_list for d in tap.offset]
        self.classes = PlaceClasses(self.box, around, max([near, *taps]) + 1)

    def check_boxes(self) -> None:
        """All updates that compute have one box, and all boxes consist of whole classes."""
        if any(CellBox.of(main.box) != self.box for main in self.mains):
            raise NoImagesError("the updates that compute cells have several boxes")
        boxes = [CellBox.of(update.box) for update in self.loop.updates]
        if not self.classes.few or not all(map(self.classes.divides, boxes)):
            raise NoImagesError("a box ends far inside the box of another update")
        for cycle in self.rotation.cycles:
            if len({self.args[role].type for role in cycle}) > 1:
                raise NoImagesError("buffers that take turns have different types")

    def is_inside(self, place: CellPlace) -> bool:
        """Whether a place lies in the box."""
        spans = zip(self.box.lower, place, self.box.upper, strict=True)
        return all(low <= at < high for low, at, high in spans)

    @cached_property
    def around(self) -> dict[int, list[CellPlace]]:
        """For each role, the classes outside the box that copies write to buffers of its cycle."""
        found: dict[int, list[CellPlace]] = {}
        for cycle in self.rotation.cycles:
            targets = {self.args[role] for role in cycle} - self.scratch
            places: dict[CellPlace, None] = {}
            for update in self.copies:
                if not targets.isdisjoint(update.targets):
                    written = self.classes.within(CellBox.of(update.box))
                    places.update((p, None) for p in written if not self.is_inside(p))
            found.update((role, list(places)) for role in cycle)
        return found

    # The boundary.

    @cached_property
    def boundary(self) -> BoundaryAttr:
        """The boundary stated by the copies of one step, beside the middle of each side."""
        cells = StepCells(self.classes)
        for update in self.loop.updates:
            self.run(cells, update)
        sides: list[Side] = []
        for axis in range(len(self.box.lower)):
            sides += (self.side(cells, axis, above=False), self.side(cells, axis, above=True))
        if all(side is Kind.KEEP for side in sides):
            raise NoImagesError("only corners beside the box are copies")
        for axis, (below, above) in enumerate(zip(sides[::2], sides[1::2])):
            if (below is Kind.PERIODIC) != (above is Kind.PERIODIC):
                raise NoImagesError(f"axis {axis} is periodic on one side only")
        return BoundaryAttr(*sides)

    def side(self, cells: StepCells, axis: int, *, above: bool) -> Side:
        """Where the cells beside a face of the box come from, found at the middle of the face."""
        middle = [places[len(places) // 2] for places in self.classes.firsts]
        low, high = self.box.lower[axis], self.box.upper[axis]

        def beside(coordinate: int) -> CellPlace:
            return (*middle[:axis], coordinate, *middle[axis + 1 :])

        there, found = beside(high if above else low - 1), dict[str, Side]()
        images = {
            Kind.PERIODIC: beside(low if above else high - 1),
            Kind.MIRROR: beside(high - 1 if above else low),
            Kind.REFLECT: beside(high - 2 if above else low + 1),
            Kind.CLAMP: beside(high - 1 if above else low),
        }
        next_there = beside(high + 1 if above else low - 2)
        for role, places in self.around.items():
            field = self.args[role]
            if there not in places or (field, there) not in cells.written:
                continue
            symbol = cells.at(field, there)
            alike: list[Side] = [k for k, p in images.items() if cells.at(field, p) == symbol]
            if isinstance(symbol[1], float):
                alike = [symbol[1]]
            elif symbol[1] == there:
                alike = [Kind.KEEP]
            if not alike:
                where = "above" if above else "below"
                raise NoImagesError(
                    f"the cells {where} the box along axis {axis} are copies of no image: another "
                    "level, or another distance"
                )
            if {Kind.MIRROR, Kind.CLAMP}.issubset(alike) and next_there in places:
                # The second layer tells a mirror from the nearest cell.
                mirrored = beside(high - 2 if above else low + 1)
                if cells.at(field, next_there) != cells.at(field, mirrored):
                    alike.remove(Kind.MIRROR)
            found[repr(alike[0])] = alike[0]
        if len(found) > 1:
            raise NoImagesError(f"buffers go on in different ways along axis {axis}")
        return next(iter(found.values()), Kind.KEEP)

    def image(self, place: CellPlace) -> CellPlace | float:
        """The place of the image of a cell, or the number there."""
        seen = list(place)
        for axis in reversed(range(len(place))):
            ends = self.box.lower[axis], self.box.upper[axis]
            sides = self.boundary.of_axis(axis)
            if not ends[0] <= place[axis] < ends[1] and sides[place[axis] >= ends[1]] is Kind.KEEP:
                continue
            found = image(place[axis], *ends, sides)
            if isinstance(found, float):
                return found
            seen[axis] = found
        return tuple(seen)

    def behind(self, cells: StepCells, field: SSAValue, place: CellPlace) -> CellSymbol:
        """The symbol of the cell, or number, that a continued field has at a place outside."""
        seen = self.image(place)
        return cells.at(field, seen) if isinstance(seen, tuple) else number_symbol(seen)

    def goes_on(self, field: SSAValue) -> bool:
        """Whether a field has edge cells."""
        return any(arg is field and self.edges[role] for role, arg in enumerate(self.args))

    @cached_property
    def edges(self) -> dict[int, list[CellPlace]]:
        """For each role, the written classes outside the box with an image elsewhere."""
        return {
            role: [p for p in places if self.image(p) != p] for role, places in self.around.items()
        }

    # Steps.

    def run(self, cells: StepCells, update: UpdateOp) -> None:
        """Run an update of the step as written."""
        if update in self.copies:
            cells.copy(self.copies[update])
        else:
            cells.compute(update)

    def look(self, filled: Roles) -> Look:
        """A step from filled roles, as written and continued."""
        known = StepCells(self.classes)
        before: dict[tuple[SSAValue, CellPlace], CellSymbol] = {
            (field, place): self.behind(known, field, place)
            for role, field in enumerate(self.args)
            if role in filled
            for place in self.edges[role]
        }
        written, continued = StepCells(self.classes, before), StepCells(self.classes)
        agrees = True
        for update in self.loop.updates:
            if update not in self.copies:
                agrees &= self.reads_equal(update, written, continued)
                continued.compute(update)
            self.run(written, update)
        if agrees:
            self.check_left(written, continued)
        after = {role for role in range(len(self.args)) if self.is_filled(written, role)}
        return Look(
            frozenset(k for k, old in enumerate(self.loop.rotation) if old in after), agrees
        )

    def reads_equal(self, update: UpdateOp, written: StepCells, continued: StepCells) -> bool:
        """Whether an update reads equal cells in a step as written and in a continued step."""
        for tap in update.tap_list:
            field = update.sources[tap.operand]
            for place in self.classes.within(self.box.moved(tap.offset)):
                there = continued.at(field, place)
                if self.goes_on(field):
                    there = self.behind(continued, field, place)
                if written.at(field, place) != there:
                    return False
        return True

    def check_left(self, written: StepCells, continued: StepCells) -> None:
        """A continued step leaves the cells of a step as written, but for edge cells."""
        common = self.loop.common_halos is not None
        for role, field in enumerate(self.args):
            if field in self.scratch:
                continue
            for place in self.classes.within(self.box):
                if written.at(field, place) != continued.at(field, place):
                    raise NoImagesError("copies write cells of the box, too")
            alike = self.rotation.cycle_of(role) if common else (role,)
            names = [(self.args[other],) for other in alike]
            for place in set(self.around[role]) - set(self.edges[role]):
                if written.at(field, place) not in [(*name, place) for name in names]:
                    raise NoImagesError("copies change cells beside a kept side")

    def is_filled(self, cells: StepCells, role: int) -> bool:
        """Whether all edge cells of a role are images."""
        field = self.args[role]
        return field not in self.scratch and all(
            cells.at(field, place) == self.behind(cells, field, place) for place in self.edges[role]
        )

    def steps(self) -> EdgeSteps:
        """The steps of a run."""
        self.check_boxes()
        seen: list[Look] = []
        filled: Roles = frozenset()
        while not seen or seen[-1].filled != filled:
            if seen:
                filled = seen[-1].filled
            if len(seen) > 2 * self.rotation.order + 2:
                raise NoImagesError("edge cells change from step to step")
            seen.append(self.look(filled))
        if not seen[-1].agrees:
            raise NoImagesError("cells outside the box are read that are no images")
        first = max((k + 1 for k, each in enumerate(seen) if not each.agrees), default=0)
        fills = {role: self.fill(role) for role in sorted(filled) if self.edges[role]}
        last = self.steps_behind(filled)
        continued = frozenset(role for role in range(len(self.args)) if self.edges[role])
        fewest = max(first + 1, len(seen)) + last
        mains = self.numbers(self.mains)
        return EdgeSteps(self.boundary, mains, continued, first, last, fewest, fills)

    def numbers(self, chosen: Sequence[UpdateOp]) -> tuple[int, ...]:
        """The numbers of some updates in the step."""
        return tuple(k for k, update in enumerate(self.loop.updates) if update in chosen)

    def fill(self, role: int) -> tuple[int, tuple[int, ...]]:
        """The copies that fill the edge cells of a role of the cycle, and nothing else."""
        for other in self.rotation.cycle_of(role):
            own = {self.args[other], *self.scratch}
            chosen = [u for u in self.copies if own.issuperset((*u.sources, *u.targets))]
            cells = StepCells(self.classes)
            for update in chosen:
                cells.copy(self.copies[update])
            field = self.args[other]
            beside = {p for f, p in cells.written if f == field} - set(self.edges[other])
            if self.is_filled(cells, other) and all(
                cells.at(field, place) == (field, place) for place in beside
            ):
                return other, self.numbers(chosen)
        raise NoImagesError("edge cells are copied through other buffers")

    def steps_behind(self, filled: Roles) -> int:
        """The steps as written after which all buffers have the edge cells of steps as written."""
        right = {
            role
            for role, field in enumerate(self.args)
            if role in filled or not self.edges[role] or field in self.scratch
        }
        cells = StepCells(self.classes)
        for update in self.loop.updates:
            self.run(cells, update)
        renewed = {
            role
            for role, field in enumerate(self.args)
            if all((field, place) in cells.written for place in self.edges[role])
        }
        for steps in range(2 * self.rotation.order + 2):
            if len(right) == len(self.args):
                return steps
            after = right | renewed
            right = {k for k, old in enumerate(self.loop.rotation) if old in after}
        raise NoImagesError("edge cells of a buffer are written in no step")


def edge_steps(loop: LoopOp) -> EdgeSteps | None:
    """
    The steps of runs of a loop whose copies write edge cells; None for a loop without copies beside
    the box. Raises NoImagesError if no boundary has these edge cells.
    """
    found = [copy_of(update) for update in loop.updates]
    copies = [copy for copy in found if copy is not None]
    plain = all(isinstance(op, UpdateOp) for op in loop.body.block.ops) and not loop.has_points
    known = (
        plain
        and loop.part is None
        and all(u.outside is None and u.beyond is None for u in loop.updates)
    )
    if not known or not copies or len(copies) == len(found):
        return None
    box = next(u.box for u, copy in zip(loop.updates, found) if copy is None)
    # Copies of the whole box hand on new cells, as from a scratch field to the field.
    copied = EdgeCopies(loop, [copy for copy in copies if copy.update.box != box])
    if not any(copied.around.values()):
        return None
    return copied.steps()
