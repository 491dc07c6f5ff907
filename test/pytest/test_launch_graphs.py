"""Frequent launches run as a graph, and repeated runs repeat the launches, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any

import pytest

import timetile
from support.command_line import HEAT
from support.recorder import Recorder, buffers_of, heat, launches
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram


def on_buffers(*pointers: int) -> list[DeviceBuffer]:
    return [DeviceBuffer(pointer, 8) for pointer in pointers]


class Calls:
    """Successive calls of one program."""

    def __init__(self, compiled: CompiledProgram | None = None):
        compiled, self.on = compiled or heat(3), Recorder()
        self.loop = loops_of(compiled.kernels.source)[0]
        self.runner = GpuRunner(compiled.kernels, self.on)

    def make(
        self, steps: int, buffers: list[DeviceBuffer] | None = None, scalar: float = 0.1
    ) -> Sequence[Any]:
        """A call, on buffers 1 and 2 by default, and the loop's results."""
        outside = dict.fromkeys((*self.loop.captures, *self.loop.scalars), scalar)
        return self.runner(self.loop, steps, buffers or on_buffers(1, 2), outside)


# Many launches go as a graph.


def alternating(on: Recorder) -> bool:
    """The launches of a run of 301 steps on buffers 1 and 2, in order, once for each call."""
    sources = [source for _, source, _ in buffers_of(on)]
    one = [1 + k % 2 for k in range(101)]
    return sources == one * (len(sources) // 101)


def test_many_launches_go_as_a_graph():
    """
    The first sixteen repeated launches run alone: the GPU has work during the making of the graph.
    """
    on = launches(3, 301, (1, 2))
    (graph,) = on.graphs
    assert len(graph.launches) == 16 and graph.times == 4
    assert len(on.launched) == 101 and alternating(on)


def test_a_graph_serves_all_runs_on_the_same_buffers():
    on = launches(3, 301, (1, 2), (1, 2))
    (graph,) = on.graphs
    assert graph.times == 4 + 5
    assert len(on.launched) == 202 and alternating(on)


def test_other_buffers_have_a_graph_of_their_own():
    on = launches(3, 301, (1, 2), (5, 6), (1, 2))
    assert [graph.times for graph in on.graphs] == [4 + 5, 4]
    assert {source for _, source, _ in buffers_of(on)[101:202]} == {5, 6}


def test_runs_of_other_lengths_share_a_graph():
    calls = Calls()
    for steps in range(300, 330, 3):
        calls.make(steps)
    assert len(calls.on.graphs) == 1


def test_the_oldest_graph_of_a_loop_is_freed():
    on = launches(3, 301, *((k, k + 1) for k in range(10, 28, 2)))
    assert [graph.freed for graph in on.graphs] == [True] + [False] * 8


def test_a_closed_program_frees_its_graphs():
    assert launches(3, 301, (1, 2), close=True).graphs[0].freed


def test_a_long_repeated_run_goes_as_one_graph():
    """From the third run on, if the launches are few enough."""
    on = launches(3, 301, *[(1, 2)] * 4)
    assert [(len(graph.launches), graph.times) for graph in on.graphs] == [(16, 4 + 5), (101, 2)]
    assert len(on.launched) == 4 * 101 and alternating(on)
    on = launches(3, 3 * 300 + 1, *[(1, 2)] * 4)
    assert [len(graph.launches) for graph in on.graphs] == [16]


def test_few_launches_go_one_by_one():
    assert not launches(3, 3 * 62, (1, 2)).graphs


def test_a_captured_stream_takes_single_launches():
    on = launches(3, 301, (1, 2), captures=True)
    assert not on.graphs and len(on.launched) == 101


def test_launches_with_a_wait_of_the_host_go_one_by_one():
    """Kernels with bounded waits: the runtime reads a report after each launch."""
    on = launches(3, 301, (1, 2), bound_waits=True)
    assert not on.graphs and len(on.launched) == 101


# Repeated short runs form a graph, too.


def test_a_short_run_that_is_made_again_goes_as_a_graph():
    on = launches(3, 31, (1, 2), (1, 2), (1, 2))
    (graph,) = on.graphs
    assert graph.times == 2
    first, second, third = (buffers_of(on)[11 * k : 11 * k + 11] for k in range(3))
    assert first == second == third


def test_fields_that_take_turns_from_call_to_call_have_a_graph_each():
    on = launches(3, 31, (1, 2), (2, 1), (1, 2), (2, 1))
    assert [graph.times for graph in on.graphs] == [1, 1]
    assert [source for _, source, _ in buffers_of(on)[::11]] == [1, 2, 1, 2]


def test_the_oldest_run_is_forgotten():
    calls = [(k, k + 1) for k in range(10, 28, 2)]
    on = launches(3, 31, *calls[:1] * 2, *calls[1:], calls[0])
    assert [(graph.times, graph.freed) for graph in on.graphs] == [(1, True)]


def test_a_run_that_is_made_between_others_is_not_forgotten():
    """For any number of other runs: the eight newest graphs are kept."""
    calls = Calls()
    for other in range(20):
        calls.make(31, on_buffers(1, 2))
        calls.make(300 + 3 * other, on_buffers(1, 2))
    assert [(len(graph.launches), graph.freed) for graph in calls.on.graphs] == [
        (16, False),
        (11, False),
    ]


def test_results_of_a_loop_are_the_buffers_of_the_final_roles():
    """The buffers of the loop's roles at the end, in the caller's numbering."""
    calls = Calls()
    for steps in (30, 31):
        for _ in range(3):
            buffers = [DeviceBuffer(1, 8), DeviceBuffer(2, 8)]
            a, b = calls.make(steps, buffers)
            assert (a is buffers[steps % 2], b is buffers[1 - steps % 2]) == (True, True)
    assert [graph.times for graph in calls.on.graphs] == [2, 2]


def test_a_captured_run_leaves_the_remembered_launches():
    calls = Calls()
    for captures in (False, False, True, False):
        calls.on.captures = captures
        calls.make(31)
    (graph,) = calls.on.graphs
    assert graph.times == 2 and not graph.freed
    calls.runner.close()
    assert graph.freed


def test_a_run_waits_for_that_of_another_thread():
    """Each program remembers its own launches."""
    calls = Calls()
    others: list[Thread] = []

    def begin_another() -> None:
        if not others:
            others.append(Thread(target=lambda: calls.make(31, on_buffers(5, 6))))
            others[0].start()
            others[0].join(0.05)

    calls.on.at_launch = begin_another
    calls.make(31, on_buffers(1, 2))
    others[0].join()
    calls.on.launched.clear()
    calls.make(31, on_buffers(1, 2))
    calls.make(31, on_buffers(5, 6))
    sources = [source for _, source, _ in buffers_of(calls.on)]
    assert sources == [1 + k % 2 for k in range(11)] + [5 + k % 2 for k in range(11)]
    assert [graph.times for graph in calls.on.graphs] == [1, 1]


def test_runs_with_copies_go_one_by_one():
    on = launches(2, 31, (1, 2), (1, 2))
    assert on.copied and not on.graphs


@pytest.mark.parametrize(
    ("depth", "steps", "bound_waits", "why"),
    [(3, 301, False, "long"), (2, 31, False, "copies"), (3, 31, True, "attended")],
)
def test_a_run_made_again_makes_equal_launches(
    depth: int, steps: int, bound_waits: bool, why: str, monkeypatch: pytest.MonkeyPatch
):
    """Launches, graphs of a loop or of all loops, and copies, in order; the plan is read once."""
    calls = Calls(heat(depth, bound_waits=bound_waits))
    calls.make(steps, on_buffers(1, 2))
    first = list(calls.on.done)
    assert bool(calls.on.copied) == (why == "copies")
    monkeypatch.setattr(calls.runner.host, "run", None)
    for _ in range(2):
        calls.on.done.clear()
        calls.make(steps, on_buffers(1, 2))
        assert calls.on.done == first
    assert len(calls.on.graphs) == 2 * (why == "long")


def test_short_runs_with_a_wait_of_the_host_go_one_by_one():
    assert not launches(3, 31, (1, 2), (1, 2), bound_waits=True).graphs


def test_short_runs_on_a_captured_stream_go_one_by_one():
    on = launches(3, 31, (1, 2), (1, 2), captures=True)
    assert not on.graphs and len(on.launched) == 22


@pytest.mark.parametrize("others", [(-0.0, 0.0), (0.1, 0.0)])
def test_numbers_are_known_again_by_their_bits(others: tuple[float, ...]):
    calls = Calls(timetile.compile(HEAT, executor="simt", depth=3, cache=False))
    assert len(calls.loop.scalars) == 1
    numbers = (0.0, *others)
    for number in numbers:
        calls.make(31, scalar=number)
    given = [str(values[-1]) for _, values in calls.on.launched]
    assert given == [str(number) for number in numbers for _ in range(11)]
    assert [graph.times for graph in calls.on.graphs] == [1]


def test_a_number_that_is_none_is_known_again():
    calls = Calls(timetile.compile(HEAT, executor="simt", depth=3, cache=False))
    for _ in range(3):
        calls.make(31, scalar=float("nan"))
    assert [graph.times for graph in calls.on.graphs] == [2]
