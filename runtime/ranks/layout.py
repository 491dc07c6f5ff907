"""
The layout of a run: the number of parts along each axis, and the steps between two exchanges.

A step of a rank takes the time of all held cells, ghosts included, and a share of an exchange:

    cells x updates x CELL_SECONDS + (messages x MESSAGE_SECONDS + bytes x BYTE_SECONDS) / steps

More steps between exchanges make fewer messages and wider ghost zones, computed on several
ranks. The layout with the least time of the slowest rank is chosen. The constants are of
processes of one machine; a wrong constant costs time, never bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition, Ghosts
from timetile.dialects.syntax import element_type
from timetile.passes.analysis.ghosts import exchanged_roles
from timetile.passes.diagnostics import refuse
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.loops.part_sweeps import check_whole_lines
from timetile.runtime.arithmetic.cells import dtype_of

CELL_SECONDS = 1e-9
"""Seconds of an update of a cell by a core."""

MESSAGE_SECONDS = 20e-6
"""Seconds of a message of any length."""

BYTE_SECONDS = 0.5e-9
"""Seconds of a byte of a message, packed, sent and unpacked."""

MOST_STEPS = 16
"""Most steps between two exchanges."""


def factorizations(count: int, axes: int) -> Iterator[tuple[int, ...]]:
    """The numbers of parts along some axes with a given product, in ascending order."""
    if axes == 1:
        yield (count,)
        return
    for first in range(1, count + 1):
        if count % first == 0:
            for others in factorizations(count // first, axes - 1):
                yield first, *others


def cells_in(box: CellBox) -> int:
    """The number of cells of a box."""
    return prod(max(high - low, 0) for low, high in zip(box.lower, box.upper))


class StepCost:
    """The predicted seconds of a step by the slowest rank."""

    def __init__(self, domain: Domain):
        self.domain = domain
        loop = max(domain.loops, key=lambda loop: len(loop.updates), default=None)
        self.updates, self.cell_bytes = len(domain.sweeps), 0
        if loop is not None:
            args = loop.body.block.args
            self.updates += len(loop.updates)
            self.cell_bytes = sum(
                dtype_of(element_type(args[role])).itemsize for role in exchanged_roles(loop)
            )
        self.zones: dict[tuple[int, ...], list[Ghosts]] = {}

    def ghosts(self, unrolled: tuple[int, ...], steps: int) -> Ghosts:
        """The ghost zone of some steps."""
        if unrolled not in self.zones or len(self.zones[unrolled]) < steps:
            most = max(steps, MOST_STEPS)
            self.zones[unrolled] = list(islice(self.domain.zones(unrolled), most))
        return self.zones[unrolled][steps - 1]

    def seconds(self, decomposition: Decomposition, steps: int) -> float:
        """The seconds of a step, with an exchange after some steps."""
        box, ghosts = self.domain.box, self.ghosts(decomposition.periodic, steps)
        slowest = 0.0
        for rank in range(decomposition.count):
            held = cells_in(decomposition.held(rank, box, ghosts))
            received = held - cells_in(decomposition.part(rank))
            sources = {t.source for t in decomposition.transfers_to(rank, box, ghosts)}
            exchange = len(sources) * MESSAGE_SECONDS
            exchange += received * self.cell_bytes * BYTE_SECONDS
            work = held * self.updates * CELL_SECONDS
            slowest = max(slowest, work + exchange / steps)
        return slowest


def decompositions_of(
    domain: Domain, count: int, asked: Sequence[int] | None
) -> Iterator[Decomposition]:
    """
    The decompositions of a domain into a number of parts, across no sweep, or as asked for.
    """
    axes = len(domain.box.lower)
    for counts in factorizations(count, axes) if asked is None else [tuple(asked)]:
        extents = (high - low for low, high in zip(domain.box.lower, domain.box.upper))
        crosses = any(counts[axis] > 1 for axis in domain.swept_axes)
        if not crosses and all(parts <= extent for parts, extent in zip(counts, extents)):
            yield Decomposition.evenly(domain.box, counts, domain.periodic(counts))


def check_parts(domain: Domain, count: int, parts: Sequence[int] | Decomposition) -> None:
    """Raise ValueError unless the parts are of the domain, as many as ranks."""
    axes = len(domain.box.lower)
    if not isinstance(parts, Decomposition):
        if len(parts) != axes or min(parts) < 1 or prod(parts) != count:
            raise ValueError(
                f"parts are {axes} numbers of 1 or more with the product {count}, one part for "
                f"each rank, got {tuple(parts)}"
            )
        return
    if parts.count != count or parts.domain != domain.box:
        raise ValueError(
            f"parts are {count} parts of the domain {domain.box}, got {parts.count} parts of "
            f"{parts.domain}"
        )


def apart_from(domain: Domain) -> str:
    """The axes that parts may cut, in words, where sweeps leave some out."""
    swept = domain.swept_axes
    free = [str(axis) for axis in range(len(domain.box.lower)) if axis not in swept]
    return f" along axis {' and '.join(free)}, which no sweep goes along" if swept else ""


def layout(
    domain: Domain,
    count: int,
    parts: Sequence[int] | Decomposition | None = None,
    steps: int | None = None,
) -> tuple[Decomposition, int]:
    """
    The decomposition of a domain for a number of ranks, and the steps between two exchanges;
    `parts` and `steps` as asked for. Raises CompileError for more ranks than cells, ValueError for
    impossible parts.
    """
    if parts is not None:
        check_parts(domain, count, parts)
    counts = parts.counts if isinstance(parts, Decomposition) else parts
    check_whole_lines(domain.sweeps, len(domain.box.lower), count, counts)
    if isinstance(parts, Decomposition):
        candidates = [Decomposition(parts.faces, domain.periodic(parts.counts))]
    else:
        candidates = list(decompositions_of(domain, count, parts))
    if not candidates:
        refuse(
            domain.first,
            f"the domain {domain.box} has too few cells for {count} parts{apart_from(domain)}; run "
            "on fewer ranks",
        )
    cost, every = StepCost(domain), range(1, MOST_STEPS + 1)
    choices = [(d, k) for d in candidates for k in ([steps] if steps is not None else every)]
    return min(choices, key=lambda choice: cost.seconds(*choice))


def slab_layout(
    domain: Domain, count: int, parts: Sequence[int] | Decomposition | None = None
) -> Decomposition:
    """
    The decomposition of a domain for a number of GPUs: along the first axis without sweeps and with
    cells for all, as ghosts of early axes lie together in memory, unless `parts` say otherwise;
    along several axes where no axis has so many cells. Raises CompileError for more parts than
    cells, ValueError for impossible parts.
    """
    if parts is None:
        extents = [high - low for low, high in zip(domain.box.lower, domain.box.upper)]
        check_whole_lines(domain.sweeps, len(extents), count)
        axes = [axis for axis in range(len(extents)) if axis not in domain.swept_axes] or [0]
        first = next((axis for axis in axes if extents[axis] >= count), None)
        if first is not None:
            parts = tuple(count if axis == first else 1 for axis in range(len(extents)))
    return layout(domain, count, parts, 1)[0]
