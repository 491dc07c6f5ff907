"""Loads and results shared by the cells of a thread, in kernels that read memory.

Stages of one cell function with loads that differ in place alone are one *work* at several places:
a result computed again at a distance, or the cells of a field. Cells of a thread lie side by side,
and have places in common. `share_cells` loads and computes such a value once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp
from timetile.passes.analysis.cells.places import Place


def moved(place: Place, origin: Place) -> Place:
    """The way from an origin to a place."""
    return tuple(a - b for a, b in zip(place, origin, strict=True))


def with_offset(place: Place, offset: Place) -> Place:
    """A place moved by an offset."""
    return tuple(a + b for a, b in zip(place, offset, strict=True))


@dataclass
class PlacedWork:
    """The loads and results of a kernel that reads memory, by work and place."""

    kernel: KernelOp
    known: dict[SSAValue, tuple[int, Place]] = field(
        default_factory=dict[SSAValue, tuple[int, Place]]
    )
    numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    loads: dict[SSAValue, set[Place]] = field(default_factory=dict[SSAValue, set[Place]])
    """The places of each loaded field of all axes."""
    results: dict[int, tuple[ApplyOp, set[Place]]] = field(
        default_factory=dict[int, tuple[ApplyOp, set[Place]]]
    )
    """A stage of each work, and the places of the work."""

    def __post_init__(self) -> None:
        for stage in self.kernel.stages:
            if isinstance(stage, LoadOp):
                self.add_load(stage)
            elif isinstance(stage, ApplyOp):
                self.add_apply(stage)

    def number(self, key: Hashable) -> int:
        """The number of a key."""
        return self.numbers.setdefault(key, len(self.numbers))

    def add_load(self, stage: LoadOp) -> None:
        """Number a load. Fields of fewer axes have one place: few cells, loaded for many."""
        here = (0,) * self.kernel.rank
        place = (stage.offset or here) if stage.axes is None else here
        self.known[stage.result] = self.number((stage.field, stage.axes)), place
        if stage.axes is None:
            self.loads.setdefault(stage.field, set()).add(place)

    def add_apply(self, stage: ApplyOp) -> None:
        """Number the results of a stage; with coordinates, no other stage has equal results."""
        operands = [self.known[stage.queues[tap.operand]] for tap in stage.tap_list]
        origin = operands[0][1] if operands else (0,) * self.kernel.rank
        own = stage if stage.indices else None
        taken = tuple((work, moved(place, origin)) for work, place in operands)
        work = self.number((stage.cell, own, tuple(stage.scalars), taken))
        for k, result in enumerate(stage.res):
            self.known[result] = self.number((work, k)), origin
        self.results.setdefault(work, (stage, set()))[1].add(origin)


def places_of_thread(places: Iterable[Place], positions: Iterable[Place]) -> set[Place]:
    """The different places around all cells of a thread."""
    own = list(positions)
    return {with_offset(place, position) for place in places for position in own}


def vectors_of(places: Iterable[Place], width: int) -> set[Place]:
    """The vectors of `width` cells along the last axis that hold the places."""
    return {(*place[:-1], place[-1] // width) for place in places}
