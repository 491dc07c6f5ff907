"""
The layout of parts on GPUs: slabs, or parts along several axes where slabs have too many ghosts.

Rims of slabs lie together in memory, and can go first or be stored by kernels; rims of parts along
several axes are copied between launches. Many GPUs make thin slabs, whose ghosts are a large share:

1. Kernels are chosen for slabs, and launches between two exchanges with them.
2. For each layout that keeps rows whole, the time of a step is predicted with copied rims, at the
   predicted speed of the slabs' deepest launch.
3. Where the least is far below that of slabs, kernels are chosen for its parts, too, and the least
   predicted time of a step wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timetile.dialects.decomposition import Decomposition
from timetile.passes.loops.cut_domain import Domain
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.ranks.exchange_choice import chosen_exchange
from timetile.runtime.ranks.layout import decompositions_of, slab_layout
from timetile.runtime.ranks.part_kernels import PartKernels

MUCH_LESS = 0.9
"""
The time of a step, over that of slabs, below which kernels are chosen for another layout: shorter
planes and rims of many rows take time that the prediction leaves out.
"""


def kernels_of_layout(
    domain: Domain,
    count: int,
    parts: Sequence[int] | Decomposition | None,
    make: Callable[[Decomposition], PartKernels],
) -> PartKernels:
    """
    The kernels of a program in a number of parts, made by `make` for the layout with the least
    predicted time of a step; `parts` as asked for. Raises CompileError for more parts than cells,
    ValueError for impossible parts.
    """
    found = make(slab_layout(domain, count, parts))
    other = other_layout(found) if parts is None else None
    if other is None or found.exchange is None:
        return found
    made = make(other)
    if made.exchange is None or made.exchange.step_seconds >= found.exchange.step_seconds:
        return found
    return made


def other_layout(found: PartKernels) -> Decomposition | None:
    """
    The layout with whole rows whose steps are predicted to take far less than those of `found`;
    None without one, without a prediction, and for programs with sweeps or points.
    """
    domain, slabs, launch = found.domain, found.decomposition, found.found.deepest(frozenset())
    has_points = any(loop.has_points for loop in loops_of(found.module))
    if found.exchange is None or launch is None or domain.swept_axes or has_points:
        return None
    others = [
        each
        for each in decompositions_of(domain, slabs.count, None)
        if each.counts[-1] == 1 and each.counts != slabs.counts
    ]
    seconds = [chosen_exchange(domain, each, launch, found.link).step_seconds for each in others]
    least = min(seconds, default=float("inf"))
    if least >= MUCH_LESS * found.exchange.step_seconds:
        return None
    return others[seconds.index(least)]
