"""What the driver is told to launch: the kernels of a plan on the buffers of a call, without a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest

import timetile
from support.catalogue import entry
from support.command_line import HEAT
from support.programs import program_text
from timetile.runtime.device.arguments import Arguments
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.of_program import Halos, Kernel, loops_of
from timetile.runtime.program.compiled_program import CompiledProgram

SCRATCH = 77
"""Where the recording device finds memory for a scratch buffer."""


@dataclass
class Graph:
    """Launches that are made together."""

    launches: list[tuple[str, tuple[Any, ...]]]
    times: int = 0
    freed: bool = False


class Recorder(Device):
    """A device that only notes what it is asked for, and finds halos as it is told."""

    def __init__(self, *, same_halos: bool = False, captures: bool = False):
        self.same_halos, self.captures = same_halos, captures
        self.compared: list[tuple[int, int]] = []
        self.launched: list[tuple[str, tuple[Any, ...]]] = []
        self.copied: list[tuple[int, int]] = []
        self.done: list[tuple[Any, ...]] = []
        """Launches and copies, in order."""
        self.graphs: list[Graph] = []
        self.at_launch: Callable[[], None] = lambda: None
        self.kernels, self.loaded, self.resident, self.inboxes = {}, {}, {}, {}
        self.users, self.streams = Counter(), Counter()
        self.marks: list[str] = []
        self.cuda = self

    def launch(self, kernel: Kernel, arguments: Arguments, stream: int) -> None:
        self.launched.append((kernel.name, arguments.values))
        self.done.append(self.launched[-1])
        self.at_launch()

    def graph(self, launches: Sequence[tuple[Kernel, Arguments]]) -> Graph:
        recorded = [(kernel.name, arguments.values) for kernel, arguments in launches]
        self.graphs.append(Graph(recorded))
        return self.graphs[-1]

    def launch_graph(self, graph: Graph, stream: int) -> None:
        assert not graph.freed
        graph.times += 1
        self.launched += graph.launches
        self.done += graph.launches

    def free_graph(self, graph: Graph) -> None:
        assert not graph.freed
        graph.freed = True

    def allocate(self, size: int) -> int:
        return SCRATCH

    def free(self, pointer: int) -> None:
        assert pointer == SCRATCH

    def is_capturing(self, stream: int) -> bool:
        return self.captures

    def halos_differ(self, frame: HaloFrame, first: int, other: int, stream: int) -> bool:
        self.compared.append((first, other))
        return not self.same_halos

    @contextmanager
    def giving_back(self) -> Generator[Device]:
        yield self

    def mark(self, event: str | None, stream: int) -> str:
        self.marks.append(event or f"event of {stream}")
        return self.marks[-1]

    def wait_for_mark(self, event: str) -> None:
        self.marks.remove(event)
        self.marks.append(f"{event} waited for")

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        self.copied.append((source, target))
        self.done.append(self.copied[-1])
        return (0,)


def heat(depth: int, halos: Halos = "compared", *, bound_waits: bool = False) -> CompiledProgram:
    """A plate that is heated, compiled."""
    text = program_text(entry("heat-2d").make((29, 131)))
    return timetile.compile(
        text, executor="simt", depth=depth, halos=halos, cache=False, bound_waits=bound_waits
    )


def launches(
    depth: int,
    steps: int,
    *calls: tuple[int, int],
    same_halos: bool = False,
    captures: bool = False,
    halos: Halos = "compared",
    bound_waits: bool = False,
    close: bool = False,
) -> Recorder:
    """What calls on pairs of buffers, by their addresses, ask of the device."""
    compiled = heat(depth, halos, bound_waits=bound_waits)
    loop = loops_of(compiled.kernels.source)[0]
    outside = dict.fromkeys((*loop.captures, *loop.scalars), 0.1)
    on = Recorder(same_halos=same_halos, captures=captures)
    runner = GpuRunner(compiled.kernels, on)
    for call in calls:
        runner(loop, steps, [DeviceBuffer(pointer, 8) for pointer in call], outside)
    if close:
        runner.close()
    return on


def on_buffers(*pointers: int) -> list[DeviceBuffer]:
    return [DeviceBuffer(pointer, 8) for pointer in pointers]


class Calls:
    """Calls of one program, one after the other."""

    def __init__(self, compiled: CompiledProgram | None = None):
        compiled, self.on = compiled or heat(3), Recorder()
        self.loop = loops_of(compiled.kernels.source)[0]
        self.runner = GpuRunner(compiled.kernels, self.on)

    def make(
        self, steps: int, buffers: list[DeviceBuffer] | None = None, scalar: float = 0.1
    ) -> Sequence[Any]:
        """One call, on buffers 1 and 2 if on no others; what the loop's results are."""
        outside = dict.fromkeys((*self.loop.captures, *self.loop.scalars), scalar)
        return self.runner(self.loop, steps, buffers or on_buffers(1, 2), outside)


def buffers_of(on: Recorder) -> list[tuple[str, int, int]]:
    """Kernels with their source and target."""
    return [(name, values[0], values[1]) for name, values in on.launched]


def test_an_odd_depth_takes_turns_in_the_programs_buffers():
    on = launches(3, 7, (1, 2))
    assert buffers_of(on) == [("run_d3", 1, 2), ("run_d3", 2, 1), ("run_step", 1, 2)]
    assert not on.copied


def test_an_even_depth_takes_turns_in_the_first_buffer_and_a_copy_of_it():
    on = launches(2, 5, (1, 2))
    assert on.copied == [(1, SCRATCH)]
    expected = [("run_d2", 1, SCRATCH), ("run_d2", SCRATCH, 1), ("run_step", 1, 2)]
    assert buffers_of(on) == expected


def test_with_halos_in_common_any_depth_takes_turns_in_the_programs_buffers():
    on = launches(2, 5, (1, 2), same_halos=True)
    assert on.compared == [(1, 2)]
    assert not on.copied
    assert buffers_of(on) == [("run_d2", 1, 2), ("run_d2", 2, 1), ("run_step", 1, 2)]


def test_halos_are_compared_where_kernels_of_several_steps_run():
    assert not launches(3, 2, (1, 2)).compared, "no launch of three steps"
    assert launches(3, 3, (1, 2)).compared == [(1, 2)]
    assert launches(3, 3, (1, 2), (5, 6)).compared == [(1, 2), (5, 6)]


def test_what_is_known_of_halos_is_not_compared():
    apart = launches(2, 5, (1, 2), same_halos=True, halos="apart")
    assert not apart.compared and apart.copied == [(1, SCRATCH)]
    common = launches(2, 5, (1, 2), halos="common")
    assert not common.compared and not common.copied


def test_a_stream_that_is_captured_is_not_waited_for():
    on = launches(2, 5, (1, 2), same_halos=True, captures=True)
    assert not on.compared and on.copied == [(1, SCRATCH)]


def test_every_call_has_its_own_buffers():
    """Launches are prepared once for the same operands, and anew for others."""
    on = launches(3, 7, (1, 2), (5, 6), (1, 2))
    first, second, third = (buffers_of(on)[3 * k : 3 * k + 3] for k in range(3))
    assert second == [("run_d3", 5, 6), ("run_d3", 6, 5), ("run_step", 5, 6)]
    assert first == third != second


def test_a_long_run_repeats_its_launches():
    on = launches(3, 301, (1, 2))
    deep = [(source, target) for name, source, target in buffers_of(on) if name == "run_d3"]
    assert deep == [((1, 2), (2, 1))[k % 2] for k in range(len(deep))]
    assert 3 * len(deep) + len(on.launched) - len(deep) == 301


# Many launches go as a graph.


def alternating(on: Recorder) -> bool:
    """The launches of a run of 301 steps on buffers 1 and 2 are there, in order, as often as it was called."""
    sources = [source for _, source, _ in buffers_of(on)]
    one = [1 + k % 2 for k in range(101)]
    return sources == one * (len(sources) // 101)


def test_many_launches_go_as_a_graph():
    """Sixteen of the repeated ones go alone first, so that the GPU has work while the graph is made."""
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


def test_what_is_closed_frees_its_graphs():
    assert launches(3, 301, (1, 2), close=True).graphs[0].freed


def test_a_long_run_that_is_made_often_goes_as_one_graph():
    """From the third time on, where its launches are not too many."""
    on = launches(3, 301, *[(1, 2)] * 4)
    assert [(len(graph.launches), graph.times) for graph in on.graphs] == [(16, 4 + 5), (101, 2)]
    assert len(on.launched) == 4 * 101 and alternating(on)
    on = launches(3, 3 * 300 + 1, *[(1, 2)] * 4)
    assert [len(graph.launches) for graph in on.graphs] == [16]


def test_few_launches_go_one_by_one():
    assert not launches(3, 3 * 62, (1, 2)).graphs


def test_a_stream_that_is_captured_takes_the_launches_themselves():
    on = launches(3, 301, (1, 2), captures=True)
    assert not on.graphs and len(on.launched) == 101


def test_launches_that_the_host_attends_to_go_one_by_one():
    """Whose waits are bounded: a report is read after each."""
    on = launches(3, 301, (1, 2), bound_waits=True)
    assert not on.graphs and len(on.launched) == 101


# So do short runs that are made again.


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
    """However many others there are: eight are kept, those made last."""
    calls = Calls()
    for other in range(20):
        calls.make(31, on_buffers(1, 2))
        calls.make(300 + 3 * other, on_buffers(1, 2))
    assert [(len(graph.launches), graph.freed) for graph in calls.on.graphs] == [
        (16, False),
        (11, False),
    ]


def test_results_of_a_loop_are_the_buffers_that_its_roles_name_at_the_end():
    """The buffers that the loop's roles name at its end, as the caller knows them."""
    calls = Calls()
    for steps in (30, 31):
        for _ in range(3):
            buffers = [DeviceBuffer(1, 8), DeviceBuffer(2, 8)]
            a, b = calls.make(steps, buffers)
            assert (a is buffers[steps % 2], b is buffers[1 - steps % 2]) == (True, True)
    assert [graph.times for graph in calls.on.graphs] == [2, 2]


def test_a_run_that_is_captured_leaves_what_is_remembered():
    calls = Calls()
    for captures in (False, False, True, False):
        calls.on.captures = captures
        calls.make(31)
    (graph,) = calls.on.graphs
    assert graph.times == 2 and not graph.freed
    calls.runner.close()
    assert graph.freed


def test_a_run_waits_for_that_of_another_thread():
    """Each remembers its own launches."""
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


def test_runs_that_copy_go_one_by_one():
    on = launches(2, 31, (1, 2), (1, 2))
    assert on.copied and not on.graphs


@pytest.mark.parametrize(
    ("depth", "steps", "bound_waits", "why"),
    [(3, 301, False, "long"), (2, 31, False, "copies"), (3, 31, True, "attended")],
)
def test_a_run_made_again_makes_equal_launches(
    depth: int, steps: int, bound_waits: bool, why: str, monkeypatch: pytest.MonkeyPatch
):
    """Launches, graphs of a loop or of all, and copies, in their order; the plan is not read again."""
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


def test_short_runs_that_the_host_attends_to_go_one_by_one():
    assert not launches(3, 31, (1, 2), (1, 2), bound_waits=True).graphs


def test_short_runs_on_a_stream_that_is_captured_go_one_by_one():
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
