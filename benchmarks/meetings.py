"""
What a meeting of two GPUs takes, between two kernels that do nothing but wait.

    python benchmarks/meetings.py --out build/meetings.json

Each GPU runs kernels of `--us` microseconds in a row, and waits for the other GPU between two
kernels, in several ways. A row has the microseconds of a kernel and a meeting, the best of some
runs:

- `events`: an event of each GPU, in one graph of both, as in runs on several GPUs;
- `counts`: a kernel of one thread counts in the neighbour's memory, and waits for the neighbour's
  count; a graph for each GPU;
- `words`: the streams write a word to the neighbour's memory, and wait for the neighbour's word;
- `none`: no meeting, a graph for each GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rows import described

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.machine.driver import checked

LAUNCHES = 64
"""Kernels of a graph."""

GRAPHS, ROUNDS = 20, 5

PTX = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry busy(.param .u32 ns) {
  .reg .u64 %begin, %now; .reg .u32 %ns, %past; .reg .pred %again;
  ld.param.u32 %ns, [ns];
  mov.u64 %begin, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  cvt.u32.u64 %past, %now;
  setp.lt.u32 %again, %past, %ns;
  @%again bra again;
  ret;
}
.visible .entry meet(.param .u64 counts, .param .u64 other) {
  .reg .u64 %own, %other; .reg .u32 %count, %found; .reg .pred %again;
  ld.param.u64 %own, [counts];
  ld.param.u64 %other, [other];
  ld.global.u32 %count, [%own];
  add.u32 %count, %count, 1;
  st.global.u32 [%own], %count;
  st.release.sys.global.u32 [%other+128], %count;
again:
  ld.acquire.sys.global.u32 %found, [%own+128];
  sub.u32 %found, %found, %count;
  setp.lt.s32 %again, %found, 0;
  @%again bra again;
  ret;
}
\0"""


class Runner:
    """A GPU with a stream, the kernels and two words for the neighbour."""

    def __init__(self, on: Device):
        self.on, self.cuda = on, on.cuda
        with on.current():
            self.stream = on.new_stream(is_urgent=False)
            self.busy, self.meet = on.function(PTX, "busy"), on.function(PTX, "meet")
            self.words = on.allocate(4096)
            on.upload(self.words, np.zeros(1024, np.int32))

    def launch(self, function: Any, blocks: int, threads: int, *values: int) -> None:
        """Launch a function on the stream."""
        kind = ctypes.c_uint32 if function is self.busy else ctypes.c_void_p
        made = LaunchArguments(values, (kind,) * len(values))
        self.on.enter()
        checked(
            self.cuda.cuLaunchKernel(
                function, blocks, 1, 1, threads, 1, 1, 0, self.stream, made.address, 0
            )
        )

    def captured(self, work: Callable[[], None]) -> Any:
        """The graph of some work."""
        self.on.enter()
        graph, _ = self.on.recorded(self.stream, work)
        return self.on.instantiated(graph)


def busy(site: Runner, ns: int) -> None:
    """Two blocks on each multiprocessor."""
    site.launch(site.busy, 264, 256, ns)


def none(sites: Sequence[Runner], ns: int) -> list[tuple[Runner, Any]]:
    """No meeting."""

    def work(site: Runner) -> None:
        for _ in range(LAUNCHES):
            busy(site, ns)

    return [(site, site.captured(lambda site=site: work(site))) for site in sites]


def events(sites: Sequence[Runner], ns: int) -> list[tuple[Runner, Any]]:
    """Events of both GPUs, in one graph."""
    first, other = sites

    def mark(site: Runner) -> Any:
        site.on.enter()
        return site.on.mark(None, site.stream)

    def work() -> None:
        other.on.wait_for_event(other.stream, mark(first))
        for _ in range(LAUNCHES):
            for site in sites:
                busy(site, ns)
            marks = [mark(site) for site in sites]
            for site, theirs in zip(sites, reversed(marks)):
                site.on.wait_for_event(site.stream, theirs)
        first.on.wait_for_event(first.stream, mark(other))

    return [(first, first.captured(work))]


def counts(sites: Sequence[Runner], ns: int) -> list[tuple[Runner, Any]]:
    """A kernel of one thread between two kernels."""

    def work(site: Runner, other: Runner) -> None:
        for _ in range(LAUNCHES):
            busy(site, ns)
            site.launch(site.meet, 1, 1, site.words, other.words)

    pairs = zip(sites, reversed(sites))
    return [(one, one.captured(lambda a=one, b=two: work(a, b))) for one, two in pairs]


def words(sites: Sequence[Runner], ns: int) -> list[tuple[Runner, Any]]:
    """Words written and waited for by the streams; two words in turn."""

    def work(site: Runner, other: Runner) -> None:
        cuda = site.cuda
        for number in range(LAUNCHES):
            busy(site, ns)
            place = 256 + 128 * (number % 2)
            calls = (
                (cuda.cuStreamWriteValue32, other.words + place, 1),
                (cuda.cuStreamWaitValue32, site.words + place, 1),
                (cuda.cuStreamWriteValue32, site.words + place, 0),
            )
            for call, pointer, value in calls:
                checked(call(site.stream, pointer, value, 0))

    pairs = zip(sites, reversed(sites))
    return [(one, one.captured(lambda a=one, b=two: work(a, b))) for one, two in pairs]


WAYS = {"none": none, "events": events, "counts": counts, "words": words}


def seconds(sites: Sequence[Runner], graphs: Sequence[tuple[Runner, Any]]) -> float:
    """The seconds of `GRAPHS` launches of graphs, the best of some."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(GRAPHS):
            for site, graph in graphs:
                site.on.enter()
                site.on.launch_graph(graph, site.stream)
        for site in sites:
            site.on.enter()
            site.on.synchronize(site.stream)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description="What a meeting of two GPUs takes.")
    parser.add_argument("--us", type=int, nargs="+", default=[10, 40])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--out", type=Path, required=True)
    given, rows = parser.parse_args(), list[dict[str, Any]]()
    sites = [Runner(device(0)), Runner(device(1))]
    for one, other in (sites, sites[::-1]):
        one.on.reaches(other.on)
    for us in given.us:
        for name in given.ways:
            row: dict[str, Any] = {"way": name, "kernel_us": us, "device": device(0).name}
            try:
                found = seconds(sites, WAYS[name](sites, us * 1000))
                row["us_a_kernel"] = round(found / GRAPHS / LAUNCHES * 1e6, 2)
            except Exception as error:
                row["error"] = described(error)
            rows.append(row)
            print(json.dumps(row), flush=True)
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
