"""
The number of launches between two exchanges of ghosts, on several GPUs.

Ghosts for k launches of D steps are k times as wide, and every launch computes all of them again:

    seconds(k) = held cells(k) x D / speed + (link.seconds + ghost bytes(k) / link rate) / k

The predicted time of a launch of the slowest part is taken for each k, with the speed predicted for
the schedule. The least time wins; of times that hardly differ, the fewest launches. Flat parts and
large planes have costly ghosts (k is 1), long parts and short planes cheap ones. A zone never
reaches over a whole part. A wrong prediction costs time, never bits.

A launch followed by an exchange has two further ways. Rims of long launches may be computed first,
and be copied while the cells inside are computed: each rim fills the pipeline of planes once more.
Or kernels store the ghosts of neighbours themselves, part of the travel unseen. No ghosts are
computed:

    seconds(1) = own cells x D / speed x (1 + pipelines of rims) + start + link meeting seconds
    seconds(1) = own cells x D / speed + link meeting seconds + a share of the rims' copy
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from timetile.dialects.decomposition import Decomposition, Ghosts
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.targets.links import NVLINK, Link
from timetile.runtime.ranks.layout import StepCost, cells_in

MOST_LAUNCHES = 16
"""Most launches between two exchanges."""

HARDLY_MORE = 1.003
"""Times differ by more than this factor, or the smaller ghost zone is taken."""


HIDDEN_SHARE = 0.5
"""Copies of rims computed first have so much of a launch to travel unseen."""

BEGIN_SECONDS = 10e-6
"""
Seconds until blocks that start at one time have their first planes: on H200s, rims of star25 took
18 us for 1.5 rounds of blocks in FP32 and 59 us for 2.9 in FP64, in place of 4 and 18.
"""

LEAST_FIRST_SECONDS = 1e-3
"""
Seconds of a launch from which rims may go first. Kernels and copies of rims start late: on two
H200s, launches of 34 us took 49 us without a meeting (j3d7pt), and of 163 us 276 us (Yee, FP64).
"""

RimWay = Literal["copied", "stored", "first"]
"""
How rims travel: copied between launches, stored by kernels, or computed first and copied while the
cells inside are computed.
"""


@dataclass(frozen=True)
class ExchangeCost:
    """The prediction for launches that share an exchange."""

    launches: int
    """Launches between two exchanges."""
    launch_seconds: float
    """Seconds of a launch of the slowest part, ghosts included."""
    ghost_share: float
    """The share of these seconds spent on ghosts."""
    exchange_seconds: float
    """Seconds of an exchange."""
    way: RimWay = "copied"
    """How rims travel."""
    whole_seconds: float = 0.0
    """Of rims computed first: seconds of a launch of the own cells as a whole."""

    @property
    def seconds(self) -> float:
        """Seconds of a launch, with its share of an exchange."""
        return self.launch_seconds + self.exchange_seconds / self.launches


@dataclass(frozen=True)
class ExchangeChoice:
    """The chosen number of launches between two exchanges, and what others cost."""

    chosen: ExchangeCost
    others: tuple[ExchangeCost, ...]
    depth: int
    """Steps of the deepest launch."""

    @property
    def steps(self) -> int:
        """The steps between two exchanges."""
        return self.chosen.launches * self.depth

    @property
    def step_seconds(self) -> float:
        """The predicted seconds of a step, with its share of a launch and of an exchange."""
        return self.chosen.seconds / self.depth

    @property
    def way(self) -> RimWay:
        """How rims travel."""
        return self.chosen.way

    @property
    def limits_of_first(self) -> tuple[float, float]:
        """
        The share of a whole launch that a launch with rims first may take longer before another
        choice takes less time, and the seconds of a whole launch.
        """
        chosen = self.chosen
        least = min((each.seconds for each in self.others), default=2 * chosen.seconds)
        whole = chosen.whole_seconds
        return (least - chosen.exchange_seconds) / whole - 1, whole

    def __str__(self) -> str:
        chosen = self.chosen
        often = "each launch" if chosen.launches == 1 else f"every {chosen.launches} launches"
        said = (
            f"an exchange of {chosen.exchange_seconds * 1e6:.0f} us {often} of {self.depth} steps; "
            f"a launch takes {chosen.launch_seconds * 1e6:.0f} us, "
            f"{100 * chosen.ghost_share:.1f}% of them for ghosts"
        )
        each_launch = [each.seconds for each in self.others if each.launches == 1]
        if not each_launch or chosen.launches == 1:
            return said
        more = min(each_launch) / chosen.seconds - 1
        return f"{said}; an exchange each launch would take {100 * more:.1f}% longer"


@dataclass(frozen=True)
class DeepestLaunch:
    """The launch of a loop with the most steps."""

    depth: int
    """Its steps."""
    gcells_per_second: float
    """The predicted speed."""
    ways: frozenset[RimWay] = frozenset[RimWay]()
    """The further ways that the kernel can probably go."""


def exchange_costs(
    domain: Domain, decomposition: Decomposition, launch: DeepestLaunch, link: Link
) -> Iterator[ExchangeCost]:
    """
    The costs of 1, 2, 3, ... launches between two exchanges, as far as zones reach no farther than
    one part; those of one launch always.
    """
    depth = launch.depth
    cost, unrolled = StepCost(domain), decomposition.periodic
    own = max(cells_in(decomposition.part(rank)) for rank in range(decomposition.count))
    rate = launch.gcells_per_second * 1e9
    ghosts = cost.ghosts(unrolled, depth)
    # Kernels store, and copy, what the next launch reads.
    _, read = held_and_sent(cost, decomposition, ghosts)
    seconds, travel = own * depth / rate, read / link.bytes_per_second
    if "first" in launch.ways and seconds >= LEAST_FIRST_SECONDS:
        longer = seconds * (1 + pipelines_of_rims(decomposition, ghosts, depth)) + BEGIN_SECONDS
        seen = max(0.0, travel - HIDDEN_SHARE * seconds)
        yield ExchangeCost(1, longer, 0.0, link.meeting_seconds + seen, "first", seconds)
    if "stored" in launch.ways:
        stalled = link.stalled_share if depth == 1 else link.deep_stalled_share
        seen = max(stalled * travel, travel - seconds)
        yield ExchangeCost(1, seconds, 0.0, link.meeting_seconds + seen, "stored")
    for launches in range(1, MOST_LAUNCHES + 1):
        ghosts = cost.ghosts(unrolled, launches * depth + 1)
        if launches > 1 and not reaches_neighbours_only(decomposition, ghosts):
            return
        held, sent = held_and_sent(cost, decomposition, ghosts)
        exchange = link.seconds + sent / link.bytes_per_second
        yield ExchangeCost(launches, held * depth / rate, 1 - own / held, exchange)


def filled_cost(depth: int) -> float:
    """
    The cost of a step that fills or drains a pipeline, over that of any other step: on average, a
    step computes half of the levels, the first one included.
    """
    return (depth + 1) / (2 * depth)


def pipelines_of_rims(decomposition: Decomposition, ghosts: Ghosts, depth: int) -> float:
    """
    The share of a launch of some steps that the pipelines of rims computed first take: each fills
    for as many planes as a launch reaches on both sides.
    """
    share = 0.0
    for faces, (below, above) in zip(decomposition.faces, ghosts):
        planes = min(high - low for low, high in pairwise(faces))
        rims = min(2, len(faces) - 2)
        share += filled_cost(depth) * rims * (below + above) / planes
    return share


def held_and_sent(
    cost: StepCost, decomposition: Decomposition, ghosts: Ghosts
) -> tuple[int, float]:
    """The most cells held by a part with ghosts, and the most bytes of ghosts."""
    ranks = range(decomposition.count)
    held = [cells_in(decomposition.held(rank, cost.domain.box, ghosts)) for rank in ranks]
    ghost_cells = [most - cells_in(decomposition.part(rank)) for rank, most in enumerate(held)]
    return max(held), max(ghost_cells) * cost.cell_bytes


def reaches_neighbours_only(decomposition: Decomposition, ghosts: Ghosts) -> bool:
    """Whether ghosts of both sides together are no wider than any part, along all cut axes."""
    return all(
        below + above <= min(high - low for low, high in pairwise(faces))
        for faces, (below, above) in zip(decomposition.faces, ghosts)
        if len(faces) > 2
    )


def chosen_exchange(
    domain: Domain, decomposition: Decomposition, launch: DeepestLaunch, link: Link = NVLINK
) -> ExchangeChoice:
    """The number of launches between two exchanges with the least predicted time."""
    costs = list(exchange_costs(domain, decomposition, launch, link))
    least = min(each.seconds for each in costs)
    fewest = min(each.launches for each in costs if each.seconds <= HARDLY_MORE * least)
    chosen = min((each for each in costs if each.launches == fewest), key=lambda cost: cost.seconds)
    return ExchangeChoice(chosen, tuple(each for each in costs if each is not chosen), launch.depth)
