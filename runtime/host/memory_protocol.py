"""What the host asks of an executor's memory; `memory.py` has the memory of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import BroadcastOp, GatherOp, LoopOp, ReduceOp, SweepOp
from timetile.runtime.host.functions import HostValues

Array = NDArray[Any]

KnownHalos = dict[tuple[Any, ...], tuple[bool, tuple[Any, ...]]]
"""Whether buffers of a loop have equal halos, by loop and buffers, and the buffers."""


class Memory(Protocol):
    """The fields and memory of an executor: NumPy arrays, or stand-ins."""

    is_alone: bool
    """No other GPU or process works on a run."""
    point_lists: dict[Operation, Any]
    """The lists of points in the memory, by the runs of points (`point_loops.py`)."""
    halos: dict[int, KnownHalos]
    """For threads in whose runs only kernels write: what is known of halos (`unwritten_halos`)."""

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        """The cell at a place, counted in row-major order."""
        ...

    def load(self, op: memref.LoadOp, buffer: Any, indices: Sequence[Any]) -> Any:
        """The cell of a load."""
        ...

    def write(self, buffer: Any, place: int, value: Any) -> None:
        """Set the cell at a place to a NumPy scalar."""
        ...

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A field for an operation that makes a field, with unknown cells."""
        ...

    def extents(self, field: SSAValue) -> tuple[int, ...]:
        """The cells along each axis of a field of the function, as held by the executor."""
        ...

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """All cells of a field."""
        ...

    def fill(self, buffer: Any, cells: Array) -> None:
        """Set all cells of a field."""
        ...

    def send(self, buffer: Any, cells: Array) -> None:
        """
        Set all cells of a field, behind the work begun so far. The host goes on, and may change the
        array.
        """
        ...

    def receive(
        self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], Array]:
        """
        Begin to copy all cells of a field, behind the work begun so far. The result waits for the
        cells, good until the field is received twice again.
        """
        ...

    def copied(self, op: Operation, name: SSAValue, buffer: Any) -> Any:
        """A copy of a field of the function, made once for each operation."""
        ...

    def note_change(self, array: Array) -> None:
        """Note that the host has filled an array itself."""
        ...

    def gather(self, op: GatherOp, target: Any, source: Any, places: Sequence[Any]) -> None:
        """Set all cells of a field to cells of another field at computed places."""
        ...

    def leaves_cells(self, loop: LoopOp, fields: Mapping[SSAValue, Any]) -> bool:
        """Whether a reduction computes the cells of a loop, from `fields` outside the loop."""
        ...

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        """The number made of the cells of a field's box."""
        ...

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep on fields, in place, with the scalars as `numbers`."""
        ...

    def spread(self, op: BroadcastOp, source: Any) -> Any:
        """A field with all axes and the cells of `source`, or `source` itself if read in place."""
        ...

    def nest(self, op: Operation, values: HostValues) -> AbstractContextManager[None]:
        """The context of a loop of the host, for loops touching many cells."""
        ...


@contextmanager
def unwritten_halos(memory: Memory) -> Generator[None]:
    """
    Runs of time loops inside, by this thread, follow each other without writes by others: buffers
    whose halos were compared once have equal halos in later runs.
    """
    memory.halos[get_ident()] = {}
    try:
        yield
    finally:
        del memory.halos[get_ident()]


GOES_ON: ContextVar[bool] = ContextVar("goes_on", default=False)
"""Whether another run of the time loop follows the present run (`another_follows`)."""


@contextmanager
def another_follows() -> Generator[None]:
    """
    Another run of the time loop follows the run inside, by this thread, and reads live data alone.
    Other buffers may be left with anything, which saves launches of single steps.
    """
    before = GOES_ON.set(True)
    try:
        yield
    finally:
        GOES_ON.reset(before)
