"""Sites on GPUs: a stream of a device, with peer access to the devices of the other parts."""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from timetile.dialects.temporal import SweepOp
from timetile.dialects.tile import LaunchOp
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.device.cells import DeviceBuffer, DeviceMemory
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.device.gpu_memory import HANDLE_BYTES as ALLOCATION_BYTES
from timetile.runtime.device.gpu_memory import Recorded
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.exchange_kernel import MOST_NEIGHBOURS
from timetile.runtime.ranks.gpu_meetings import (
    GpuMeetings,
    GpuSide,
    LoadedKernels,
    copy_rim,
    meetings_of,
)
from timetile.runtime.ranks.nccl_link import NcclLink, new_name, why_no_nccl
from timetile.runtime.ranks.peers import Peers
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import HANDLE_BYTES, Beside, RimLink

AHEAD = 8
"""Exchanges between processes that the host is ahead of the GPU."""

NAP_SECONDS = 20e-6

MARKS = 8
"""Events of a site, used in turn: a wait for an older mark becomes a wait for a newer one."""


def pointer_beside(beside: Beside) -> int:
    """
    The pointer of a buffer, moved: at a cell's place in the kernel's own buffer lies the cell's
    place in the other buffer.
    """
    copy = beside.copy
    return beside.buffer.pointer + copy.target.first - copy.source.first


class GpuSite:
    """
    A part's place on a GPU; see `Site`. Whoever puts work on the stream has pushed some device's
    context before, as `run_block` does.
    """

    def __init__(self, on: Device, *, is_urgent: bool = False):
        self.device = on
        with on.current():
            self.stream = on.new_stream(is_urgent=is_urgent)
        self.memory = DeviceMemory(on, self.stream, on.arch)
        self.runners: dict[ProgramKernels, GpuRunner] = {}
        self.marks: list[Any] = [None] * MARKS
        self.next_mark = 0
        self.allocations: dict[bytes, list[int]] = {}
        """Opened allocations of other processes by handle: the pointer, and opened buffers."""
        self.others: list[GpuSite] = []
        """Sites with further streams, for the buffers of this site."""
        self.look: Callable[[], None] | None = None
        """Called while the host waits, if the stream may wait for other processes."""
        self.ahead: deque[Any] = deque()
        """Events behind the latest work, for `keep_pace`."""
        self.meeting: LoadedKernels | None = None
        """The kernels of meetings with other processes."""
        self.is_recording = False
        self.is_abandoned = False
        """A run has failed, and the stream may wait for ever: nothing waits for the stream."""

    @property
    def home(self) -> int:
        """The number of the GPU."""
        return self.device.number

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceBuffer:
        """A buffer of unknown cells."""
        size = prod(shape) * dtype.itemsize
        with self.device.current():
            return DeviceBuffer(self.device.allocate(size), size)

    def free(self, buffer: DeviceBuffer) -> None:
        """Give back a buffer, after all work of the stream."""
        self.synchronize()
        if not self.is_abandoned:
            with self.device.current():
                self.device.free(buffer.pointer)

    def upload(self, buffer: DeviceBuffer, cells: Array) -> None:
        """Fill a buffer with the cells of an array."""
        self.synchronize()
        with self.device.current():
            self.device.upload(buffer.pointer, cells)
            # A copy from the host's memory may outlast its call, on the default stream.
            self.device.synchronize(0)

    def download(self, cells: Array, buffer: DeviceBuffer, first: int) -> None:
        """Fill a contiguous array with cells of a buffer, from cell number `first` on."""
        self.synchronize()
        with self.device.current():
            self.device.download(cells, buffer.pointer + first * cells.itemsize)

    def fetch(self, buffer: DeviceBuffer, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer at places, counted in row-major order."""
        with self.device.current():
            return self.memory.fetch(buffer, places, dtype)

    def put(self, buffer: DeviceBuffer, places: NDArray[np.int64], cells: Array) -> None:
        """Set the cells of a buffer at places, none twice."""
        with self.device.current():
            self.memory.put(buffer, places, cells)

    def launch(
        self,
        kernels: ProgramKernels,
        op: LaunchOp,
        operands: Sequence[Any],
        beside: Sequence[Beside] = (),
    ) -> None:
        """Launch a kernel on buffers of the site, and numbers, and on buffers of other sites."""
        if kernels not in self.runners:
            self.runners[kernels] = GpuRunner(kernels, self.device, self.stream)
        runner = self.runners[kernels]
        self.device.enter()
        runner.launch_all([runner.prepare(op, operands, [pointer_beside(b) for b in beside])])

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep on buffers of the site, with the scalars as `numbers`."""
        with self.device.current():
            self.memory.sweep(op, fields, numbers)

    def reaches(self, other: GpuSite) -> bool:
        """Whether the GPU reaches the memory of another site's GPU."""
        return self.device is other.device or self.device.reaches(other.device)

    def copy(self, source: DeviceBuffer, target: DeviceBuffer) -> None:
        """Copy a whole buffer."""
        self.device.enter()
        self.device.copy(source.pointer, target.pointer, source.bytes, self.stream)

    def pull(self, source: DeviceBuffer, target: DeviceBuffer, copy: BoxCopy) -> None:
        """Copy a box of cells from a buffer of any GPU to a buffer of the site."""
        self.device.enter()
        copy_rim(self.device, source.pointer, target.pointer, copy, self.stream)

    def halos_differ(self, frame: HaloFrame, first: DeviceBuffer, other: DeviceBuffer) -> bool:
        """Whether cells around a frame's box differ in two buffers; waits for the answer."""
        self.synchronize()
        with self.device.current():
            return self.device.halos_differ(frame, first.pointer, other.pointer, self.stream)

    @contextmanager
    def run_block(self) -> Generator[None]:
        """The context of a run: the caller's own device is current again behind."""
        with self.device.current():
            try:
                yield
            except BaseException:
                self.is_abandoned = self.look is not None
                raise

    @property
    def host(self) -> str:
        """The machine's name."""
        return platform.node()

    @property
    def place(self) -> str:
        """The GPU's place on the PCI bus."""
        names = ("PCI_DOMAIN_ID", "PCI_BUS_ID", "PCI_DEVICE_ID")
        return ":".join(str(self.device.attribute(name)) for name in names)

    def shared(self, buffer: DeviceBuffer) -> bytes:
        """The handle of a buffer's allocation, and the buffer's place in it."""
        with self.device.current():
            handle, distance = self.device.shared(buffer.pointer)
        return handle + distance.to_bytes(HANDLE_BYTES - len(handle), "little")

    def opened(self, handle: bytes) -> DeviceBuffer | None:
        """The buffer of another process; its size is not known."""
        allocation, distance = handle[:ALLOCATION_BYTES], handle[ALLOCATION_BYTES:]
        if allocation not in self.allocations:
            with self.device.current():
                base = self.device.opened(allocation)
            if base is None:
                return None
            self.allocations[allocation] = [base, 0]
        known = self.allocations[allocation]
        known[1] += 1
        return DeviceBuffer(known[0] + int.from_bytes(distance, "little"), 0)

    def close_opened(self, buffer: DeviceBuffer) -> None:
        """Close a buffer, and its allocation with the last."""
        known = self.allocations
        below = [key for key, (base, _) in known.items() if base <= buffer.pointer]
        key = max(below, key=lambda each: known[each][0])
        known[key][1] -= 1
        if known[key][1] == 0:
            base, _ = known.pop(key)
            with self.device.current():
                self.device.close_opened(base)

    def why_no_link(self) -> str:
        """Why the process has no NCCL; empty where it has."""
        return why_no_nccl()

    def link_name(self) -> str:
        """A name for NCCL's ranks."""
        return new_name()

    def link(self, peers: Peers, name: str) -> RimLink:
        """Rims through NCCL."""
        return NcclLink(self, peers, name)

    def mark(self) -> Any:
        """A mark on the stream, after all work so far."""
        place, self.next_mark = self.next_mark, (self.next_mark + 1) % MARKS
        if self.marks[place] is None:
            self.device.enter()
        self.marks[place] = self.device.mark(self.marks[place], self.stream)
        return self.marks[place]

    def wait(self, mark: Any) -> None:
        """Let the stream wait for a mark of any GPU."""
        self.device.wait_for_event(self.stream, mark)

    def meetings(self, sites: Sequence[GpuSite]) -> GpuMeetings | None:
        """Meetings by counts in the memory of GPUs that reach each other."""
        return meetings_of([each.device for each in sites], [each.stream for each in sites])

    def side_of_meetings(self, number: int, words: Sequence[DeviceBuffer]) -> GpuSide | None:
        """The GPU's side of meetings with other processes; None for very many."""
        if len(words) > MOST_NEIGHBOURS:
            return None
        if self.meeting is None:
            self.meeting = LoadedKernels(self.device)
        return GpuSide(self.meeting, self.stream, number, [each.pointer for each in words])

    def watch(self, look: Callable[[], None]) -> None:
        """Waits of the host call `look`; see `Site`."""
        self.look = look

    def keep_pace(self) -> None:
        """Let the host wait until work up to `AHEAD` calls before is done, and look around."""
        if self.look is None or self.is_recording:
            return
        self.ahead.append(self.device.mark(None, self.stream))
        if len(self.ahead) > AHEAD:
            self.wait_looking(self.ahead.popleft())

    def wait_looking(self, event: Any) -> None:
        """Wait for an event, which is destroyed, and look around meanwhile."""
        try:
            while not self.device.has_passed(event):
                if self.look is not None:
                    self.look()
                time.sleep(NAP_SECONDS)
        finally:
            self.device.destroy_event(event)

    def beside(self) -> GpuSite:
        """
        A new site on the GPU, with an urgent stream of its own, for the buffers of this site: rims
        start while blocks of the cells inside still wait.
        """
        self.others.append(type(self)(self.device, is_urgent=True))
        return self.others[-1]

    @contextmanager
    def recording(self) -> Generator[Recorded]:
        """Work put on the stream and on streams behind is recorded in a graph."""
        self.is_recording = True
        self.device.enter()
        try:
            with self.device.recording(self.stream) as found:
                yield found
        finally:
            self.is_recording = False
        found.graph = self.device.instantiated(found.graph)

    @contextmanager
    def marks_of_graph(self) -> Generator[None]:
        """Marks of the block are events of their own, destroyed behind."""
        kept, self.marks = self.marks, [None] * MARKS
        try:
            yield
        finally:
            kept, self.marks = self.marks, kept
            for event in kept:
                if event is not None:
                    self.device.destroy_event(event)

    def upload_graph(self, graph: Any) -> None:
        """Prepare a graph for launches."""
        self.device.enter()
        self.device.upload_graph(graph, self.stream)

    def launch_graph(self, graph: Any) -> None:
        """Launch a graph on the stream."""
        self.device.enter()
        self.device.launch_graph(graph, self.stream)

    def free_graph(self, graph: Any) -> None:
        """Forget a graph, behind a wait where the graph may wait for other processes."""
        if self.look is not None:
            self.synchronize()
        self.device.free_graph(graph)

    def synchronize(self) -> None:
        """Wait until the stream has done its work, and so have streams of sites beside."""
        if self.is_abandoned:
            return
        with self.device.current():
            if self.look is not None:
                self.wait_looking(self.device.mark(None, self.stream))
            self.device.synchronize(self.stream)
        for other in self.others:
            other.synchronize()

    def close(self) -> None:
        """Give back kernels, events and the stream, after all work, and sites beside."""
        if self.is_abandoned:
            return
        self.synchronize()
        while self.ahead:
            self.device.destroy_event(self.ahead.popleft())
        if self.meeting is not None:
            self.meeting.close()
            self.meeting = None
        while self.others:
            self.others.pop().close()
        while self.runners:
            self.runners.popitem()[1].close()
        with self.device.giving_back():
            self.memory.close()
            for event in self.marks:
                if event is not None:
                    self.device.wait_for_mark(event)
            self.marks = [None] * MARKS
            self.device.destroy_stream(self.stream)


def opened(numbers: Sequence[int]) -> list[Device]:
    """
    The GPUs of some numbers, each with access to the memory of all others. A pair without access
    is a warning: its copies go through the host's memory.
    """
    found = [device(number) for number in numbers]
    for one in dict.fromkeys(found):
        for other in dict.fromkeys(found):
            if one is not other and not one.reaches(other):
                LOGGER.warning(
                    "GPU %d does not reach the memory of GPU %d: ghosts between both go through "
                    "the host's memory, and are slow",
                    one.number,
                    other.number,
                )
    return found
