"""The fields of a program in GPU memory, read and written by the host function."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import GatherOp, LoopOp, ReduceOp, SweepOp
from timetile.lowering.reduction_kernels import Round, rounds_of
from timetile.lowering.sweep_frames import SweepFrame
from timetile.runtime.arithmetic.cells import Array, dtype_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.small_kernels import SmallKernels
from timetile.runtime.device.sweeps import DeviceSweep
from timetile.runtime.device.transfers import Transfers
from timetile.runtime.host.cell_nests import FarMemory, NestPlaces
from timetile.runtime.kernels.gathering import GatherFrame
from timetile.runtime.kernels.reducing import OLDEST_ARCH, ReducedFields, round_text

MOST_PLACES = 32
"""
Most lists of places kept on the device: the lists of a program's nests come back in each step.
"""


@dataclass(frozen=True)
class DeviceBuffer:
    """A field's memory on the device."""

    pointer: int
    bytes: int


@dataclass(frozen=True)
class NotedNumbers:
    """Reductions given to a stream."""

    numbers: list[tuple[int, np.dtype[Any]]] = field(
        default_factory=list[tuple[int, np.dtype[Any]]]
    )
    """Where each number lies, with its type."""
    rounds: list[tuple[Any, Round, list[int]]] = field(
        default_factory=list[tuple[Any, Round, list[int]]]
    )
    """The kernels, with their rounds and pointers."""

    def reads_given(self, memory: Sequence[DeviceBuffer]) -> bool:
        """Whether only kernels of reductions ran, and pointers tell the buffers of some memory."""
        known, made = {each.pointer for each in memory}, set[int]()
        for _, _, (*sources, target) in self.rounds:
            if not all(source in known or source in made for source in sources):
                return False
            made.add(target)
        return len(known) == len(memory)


class DeviceMemory(FarMemory):
    """
    Memory with fields on the device, and arrays for memory used by the host only. Kernels of sweeps
    are made for the instruction set `arch`, and kept in the cache.
    """

    def __init__(self, on: Device, stream: int, arch: str, cache: Cache | None = None):
        super().__init__()
        self.arch, self.cache = arch, cache
        self.sweeps: dict[SweepOp, DeviceSweep] = {}
        """The kernels of sweeps made so far."""
        self.last: Any = None
        """An event after the last sweep, if any: it may be the last work of the stream."""
        self.device, self.stream = on, stream
        self.fields: dict[Operation, DeviceBuffer] = {}
        self.numbers: dict[tuple[ReduceOp, int], DeviceBuffer] = {}
        """The numbers of the rounds of reductions."""
        self.rounds: dict[ReduceOp, list[Round]] = {}
        """The rounds of each reduction."""
        self.reduced = ReducedFields()
        self.kernels = SmallKernels(on)
        """The kernels of reductions."""
        self.noted: NotedNumbers | None = None
        """Reductions, while no number is waited for, as where the stream is recorded for a loop."""
        self.places: dict[bytes, DeviceBuffer] = {}
        """Lists of places by their bits, the list used last at the end."""
        self.staging = DeviceBuffer(0, 0)
        """Room for cells in transfer."""
        self.transfers = Transfers(on, stream)

    def is_far(self, buffer: Any) -> bool:
        return isinstance(buffer, DeviceBuffer)

    def fetch(self, buffer: Any, places: NestPlaces, dtype: np.dtype[Any]) -> Array:
        cells = np.empty(len(places), dtype)
        if (np.diff(places) == 1).all():
            # One cell, or a row of cells.
            self.device.synchronize(self.stream)
            self.device.download(cells, buffer.pointer + int(places[0]) * dtype.itemsize)
            return cells
        at, near = self.placed(places), self.staged(cells.nbytes)
        frame = GatherFrame.flat(len(places), buffer.bytes, dtype.itemsize)
        pointers = [near.pointer, buffer.pointer, *frame.places([at.pointer])]
        self.device.gather(frame, pointers, self.stream, self.cache)
        self.device.synchronize(self.stream)
        self.device.download(cells, near.pointer)
        return cells

    def put(self, buffer: Any, places: NestPlaces, cells: Array) -> None:
        # Work given to the stream may still read the cells, or copy the cells.
        self.device.synchronize(self.stream)
        if len(places) == 1:
            self.device.upload(buffer.pointer + int(places[0]) * cells.itemsize, cells)
            return
        at, near = self.placed(places), self.staged(cells.nbytes)
        self.device.upload(near.pointer, cells)
        frame = GatherFrame.flat(len(places), buffer.bytes, cells.itemsize)
        pointers = [buffer.pointer, near.pointer, *frame.places([at.pointer])]
        self.device.gather(frame, pointers, self.stream, self.cache, scatter=True)

    def placed(self, places: NestPlaces) -> DeviceBuffer:
        """Places on the device."""
        key = places.tobytes()
        kept = self.places.pop(key, None)
        if kept is None:
            if len(self.places) == MOST_PLACES:
                self.device.synchronize(self.stream)
                self.device.free(self.places.pop(next(iter(self.places))).pointer)
            kept = DeviceBuffer(self.device.allocate(places.nbytes), places.nbytes)
            self.device.upload(kept.pointer, places)
        self.places[key] = kept
        return kept

    def staged(self, size: int) -> DeviceBuffer:
        """Room for cells in transfer, one list at a time."""
        if self.staging.bytes < size:
            self.device.synchronize(self.stream)
            if self.staging.bytes:
                self.device.free(self.staging.pointer)
            self.staging = DeviceBuffer(self.device.allocate(size), size)
        return self.staging

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        if op not in self.fields:
            size = prod(shape) * dtype.itemsize
            self.fields[op] = DeviceBuffer(self.device.allocate(size), size)
        return self.fields[op]

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        cells = np.empty(shape, dtype)
        self.device.synchronize(self.stream)
        self.device.download(cells, buffer.pointer)
        return cells

    def fill(self, buffer: Any, cells: Array) -> None:
        self.device.synchronize(self.stream)
        self.device.upload(buffer.pointer, cells)

    def send(self, buffer: Any, cells: Array) -> None:
        self.transfers.send(buffer.pointer, cells)

    def receive(
        self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], Array]:
        return self.transfers.receive(buffer.pointer, shape, dtype)

    def gather(self, op: GatherOp, target: Any, source: Any, places: Sequence[Any]) -> None:
        frame = GatherFrame.of(op)
        pointers = [target.pointer, source.pointer, *(p.pointer for p in frame.places(places))]
        self.device.gather(frame, pointers, self.stream, self.cache)

    def leaves_cells(self, loop: LoopOp, fields: Mapping[SSAValue, Any]) -> bool:
        return self.is_alone and self.reduced.take(loop, fields)

    @contextmanager
    def noting(self) -> Generator[NotedNumbers]:
        """Note reductions, and wait for no number."""
        self.noted = found = NotedNumbers()
        try:
            yield found
        finally:
            self.noted = None

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        if not self.is_far(buffer):
            return super().reduce(op, buffer)
        numbers = np.zeros(1, dtype_of(op.result.type))
        if op not in self.rounds:
            self.rounds[op] = list(rounds_of(op))
        pointers, rounds = [buffer.pointer], self.rounds[op]
        if op in self.reduced.made:
            first, fields = self.reduced.made[op]
            pointers, rounds = [each.pointer for each in fields], [first, *rounds[1:]]
        for place, made in enumerate(rounds):
            if (op, place) not in self.numbers:
                size = made.blocks * numbers.itemsize
                self.numbers[op, place] = DeviceBuffer(self.device.allocate(size), size)
            target = self.numbers[op, place].pointer
            function = self.kernels.function(round_text(made, OLDEST_ARCH), made.name)
            self.device.reduce(function, made, [*pointers, target], self.stream)
            if self.noted is not None:
                self.noted.rounds.append((function, made, [*pointers, target]))
            pointers = [target]
        (pointer,) = pointers
        if self.noted is not None:
            self.noted.numbers.append((pointer, numbers.dtype))
            return numbers[0]
        self.device.synchronize(self.stream)
        self.device.download(numbers, pointer)
        return numbers[0]

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        if op not in self.sweeps:
            self.sweeps[op] = DeviceSweep(SweepFrame.of(op), self.device, self.arch, self.cache)
        pointers = {field: buffer.pointer for field, buffer in fields.items()}
        self.sweeps[op].launch(pointers, numbers, self.stream)
        if not self.device.is_capturing(self.stream):
            self.last = self.device.mark(self.last, self.stream)

    def close(self) -> None:
        """Free the fields, numbers, places and room of the program, and its own kernels."""
        last, self.last = self.last, None
        if last is not None:
            self.device.wait_for_mark(last)
        self.transfers.close()
        self.point_lists.clear()
        while self.sweeps:
            self.sweeps.popitem()[1].close()
        self.kernels.close()
        while self.numbers:
            self.device.free(self.numbers.popitem()[1].pointer)
        while self.fields:
            self.device.free(self.fields.popitem()[1].pointer)
        while self.places:
            self.device.free(self.places.popitem()[1].pointer)
        staging, self.staging = self.staging, DeviceBuffer(0, 0)
        if staging.bytes:
            self.device.free(staging.pointer)
