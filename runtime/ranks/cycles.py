"""
Repeated launches on several sites as a graph, launched once for many launches.

The host takes some 10 us for each launch on each part, longer than a launch on few cells. A loop of
a plan makes equal launches turn by turn, and the ages of ghosts repeat after some turns: a cycle.
The work of a few cycles, on all streams, becomes a graph, which is launched again and again:

1. Turns run one by one until the state before a turn is known from an earlier turn, and some more:
   devices have work while the host records.
2. The first site waits for all streams, and all streams wait for the first: work from here on is
   recorded, not done. At the end the first site waits for all streams.
3. The first site launches the graph as often as the graph fits into the remaining turns.
4. All streams wait for the first site, and the turns left run one by one.

Where sites meet without marks, each site has a graph of its own, launched in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from timetile.runtime.device.gpu_memory import Recorded
from timetile.runtime.ranks.peers import RankError
from timetile.runtime.ranks.sites import Site

LAUNCHES_OF_A_GRAPH = 32
"""Least number of launches in a graph, on each part: streams meet at the ends of a graph."""

LAUNCHES_AHEAD = 16
"""
Launches made one by one before a graph is recorded: recording takes some milliseconds of the host.
"""

FEWEST_LAUNCHES = 2 * LAUNCHES_OF_A_GRAPH + LAUNCHES_AHEAD
"""Least number of launches of a loop for a graph."""

FEWEST_GRAPHS = 2
"""Least number of launches of a graph: recording takes as long as launching one by one."""


def makes_graphs(launches: int) -> bool:
    """Whether a loop has enough launches for graphs."""
    return launches >= FEWEST_LAUNCHES


def meet(sites: Sequence[Site]) -> None:
    """Let the first stream wait for all others."""
    first, *others = sites
    for other in others:
        first.wait(other.mark())


def part_again(sites: Sequence[Site]) -> None:
    """Let all streams wait for the first."""
    first, *others = sites
    mark = first.mark()
    for other in others:
        other.wait(mark)


def repeat_in_cycles(
    turns: int,
    launches: int,
    turn: Callable[[], None],
    state: Callable[[], Hashable],
    repeat: Callable[[int, int], None],
) -> None:
    """
    Make `turns` turns of `launches` launches each. `state` is all that a turn depends on.
    `repeat(count, times)` makes `count` turns, from the present state back to the present state,
    `times` times.
    """
    known: dict[Hashable, int] = {}
    done = 0
    while done < turns:
        found = known.get(state())
        if found is not None and done * launches >= LAUNCHES_AHEAD:
            cycle = done - found
            count = cycle * -(-LAUNCHES_OF_A_GRAPH // (cycle * launches))
            times = (turns - done) // count
            if times >= FEWEST_GRAPHS:
                repeat(count, times)
                done += count * times
            break
        known[state()] = done
        turn()
        done += 1
    for _ in range(turns - done):
        turn()


Graphs = Sequence[tuple[Site, Any]]
"""Graphs, each with the site that launches it."""


@contextmanager
def given_back(graphs: Graphs) -> Generator[Graphs]:
    """
    Graphs that are forgotten behind the block. After the failure of another rank a graph may wait
    for ever, and stays.
    """
    try:
        yield graphs
    except RankError:
        raise
    except BaseException:
        for site, graph in graphs:
            site.free_graph(graph)
        raise
    for site, graph in graphs:
        site.free_graph(graph)


def launch_all(graphs: Graphs) -> None:
    """Launch the graph of each site once."""
    for site, graph in graphs:
        site.launch_graph(graph)
    for site, _ in graphs:
        site.keep_pace()


def run_as_graph(sites: Sequence[Site], work: Callable[[], None], times: int) -> None:
    """
    Record some work on the streams of all sites, and do the work `times` times, behind earlier and
    before later work of all streams.
    """
    first = sites[0]
    meet(sites)
    with ExitStack() as marks:
        for site in sites:
            marks.enter_context(site.marks_of_graph())
        with first.recording() as recorded:
            part_again(sites)
            work()
            meet(sites)
    with given_back([(first, recorded.graph)]) as graphs:
        for _ in range(times):
            launch_all(graphs)
    part_again(sites)


def run_as_graphs(
    sites: Sequence[Site], seconds: Sequence[Site], work: Callable[[], None], times: int
) -> None:
    """
    Record some work on the streams of all sites, which wait for each other without marks: a graph
    for each site, with its second stream. Do the work `times` times, behind earlier work of all
    streams. Nothing waits between the launches of two sites' graphs.
    """
    meet([*sites, *seconds])
    part_again([*sites, *seconds])
    recorded: list[Recorded] = []
    with ExitStack() as marks:
        for site in (*sites, *seconds):
            marks.enter_context(site.marks_of_graph())
        with ExitStack() as recordings:
            recorded += [recordings.enter_context(site.recording()) for site in sites]
            work()
    with given_back([(site, each.graph) for site, each in zip(sites, recorded)]) as graphs:
        for site, graph in graphs:
            site.upload_graph(graph)
        for _ in range(times):
            launch_all(graphs)
    for site, second in zip(sites, seconds):
        second.wait(site.mark())
