"""What the driver is told to launch: the kernels of a plan on the buffers of a call, without a GPU."""

from __future__ import annotations

from typing import Any

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.runtime.gpu import Device, DeviceBuffer, GpuRunner
from timetile.runtime.halos import HaloFrame
from timetile.runtime.kernels import Halos, Kernel, loops_of

SCRATCH = 77
"""Where the recording device finds memory for a scratch buffer."""


class Recorder(Device):
    """A device that only notes what it is asked for, and finds halos as it is told."""

    def __init__(self, *, same_halos: bool = False, captures: bool = False):
        self.same_halos, self.captures = same_halos, captures
        self.compared: list[tuple[int, int]] = []
        self.launched: list[tuple[str, tuple[Any, ...]]] = []
        self.copied: list[tuple[int, int]] = []
        self.cuda = self

    def launch(
        self, kernel: Kernel, values: tuple[Any, ...], types: tuple[Any, ...], stream: int
    ) -> None:
        assert len(values) == len(types)
        self.launched.append((kernel.name, values))

    def allocate(self, size: int) -> int:
        return SCRATCH

    def is_capturing(self, stream: int) -> bool:
        return self.captures

    def halos_differ(self, frame: HaloFrame, first: int, other: int, stream: int) -> bool:
        self.compared.append((first, other))
        return not self.same_halos

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        self.copied.append((source, target))
        return (0,)


def launches(
    depth: int,
    steps: int,
    *calls: tuple[int, int],
    same_halos: bool = False,
    captures: bool = False,
    halos: Halos = "compared",
) -> Recorder:
    """What calls on pairs of buffers, by their addresses, ask of the device."""
    text = program_text(entry("heat-2d").make((29, 131)))
    compiled = timetile.compile(text, executor="simt", depth=depth, halos=halos, cache=False)
    loop = loops_of(compiled.kernels.source)[0]
    outside = dict.fromkeys((*loop.captures, *loop.scalars), 0.1)
    on = Recorder(same_halos=same_halos, captures=captures)
    runner = GpuRunner(compiled.kernels, on)
    for call in calls:
        runner(loop, steps, [DeviceBuffer(pointer, 8) for pointer in call], outside)
    return on


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
