"""How the host reads and writes single cells of memory, in the terms of each executor.

The host function of a program may read a series at the number of the step, add a source to one cell
of a field, or note a receiver's cell. On a GPU cells of one loop nest move together
(`cell_nests.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import (
    BroadcastOp,
    GatherOp,
    InjectOp,
    LoopOp,
    PointRunOp,
    ReduceOp,
    SampleOp,
    ScratchOp,
    SweepOp,
)
from timetile.dialects.verified import memref_type, operation_at
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import memory_of
from timetile.passes.raising.names import names_of
from timetile.passes.raising.narrow_fields import is_read_in_place
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.arithmetic.reductions import reduced
from timetile.runtime.arithmetic.sweeps import run_sweep
from timetile.runtime.host.allocations import ALLOCATIONS, allocated
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.host.atomic import ATOMIC_KINDS
from timetile.runtime.host.field_cells import box_cells, gathered, wide_cells
from timetile.runtime.host.functions import HostHandler, HostValues
from timetile.runtime.host.memory_protocol import KnownHalos, Memory

Array = NDArray[Any]


class ArrayMemory:
    """Memory of NumPy arrays."""

    is_alone = True

    def __init__(self) -> None:
        self.point_lists: dict[Operation, Any] = {}
        self.halos: dict[int, KnownHalos] = {}
        self.made: dict[Operation, Array] = {}
        self.in_place: dict[BroadcastOp, bool] = {}

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        """A cell of a buffer."""
        return buffer.reshape(-1)[place]

    def load(self, op: memref.LoadOp, buffer: Any, indices: Sequence[Any]) -> Any:
        """The cell of a load."""
        place = place_of(op, op.memref, buffer, indices)
        return self.read(buffer, place, dtype_of(op.res.type))

    def write(self, buffer: Any, place: int, value: Any) -> None:
        """Write a cell of a buffer."""
        buffer.reshape(-1)[place] = value

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array, made once for each operation."""
        if op not in self.made:
            self.made[op] = np.zeros(shape, dtype)
        return self.made[op]

    def extents(self, field: SSAValue) -> tuple[int, ...]:
        """The cells along each axis of a field of the function."""
        return sizes_of(field_bounds(field))

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer as an array."""
        return buffer

    def fill(self, buffer: Any, cells: Array) -> None:
        """Fill a buffer with the cells of an array."""
        buffer[...] = cells

    def send(self, buffer: Any, cells: Array) -> None:
        """Fill a buffer: all work begun so far is done."""
        self.fill(buffer, cells)

    def receive(
        self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], Array]:
        """A copy of the cells of a buffer: later work may overwrite the buffer."""
        cells = np.array(self.contents(buffer, shape, dtype)).reshape(shape)
        return lambda: cells

    def copied(self, op: Operation, name: SSAValue, buffer: Any) -> Any:
        """A copy of a field of the function."""
        shape, dtype = self.extents(name), dtype_of(element_type(name))
        copy = self.new(op, shape, dtype)
        self.fill(copy, np.array(self.contents(buffer, shape, dtype)).reshape(shape))
        return copy

    def note_change(self, array: Array) -> None:
        """Forget what is kept about arrays: the host has filled one."""

    def gather(self, op: GatherOp, target: Any, source: Any, places: Sequence[Any]) -> None:
        """Set all cells of an array to cells of another array at computed places."""
        dtype, shape = dtype_of(element_type(op.source)), sizes_of(field_bounds(op.target))
        around = sizes_of(field_bounds(op.source))
        cells = self.contents(source, around, dtype)
        at = [self.contents(place, shape, np.dtype(np.int64)) for place in places]
        self.fill(target, gathered(op, cells, at))

    def leaves_cells(self, loop: LoopOp, fields: Mapping[SSAValue, Any]) -> bool:
        """Whether a reduction computes the cells of a loop, from `fields` outside the loop."""
        return False

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        """The number made of the cells of an array's box, with NumPy."""
        shape, dtype = sizes_of(field_bounds(op.field)), dtype_of(element_type(op.field))
        return reduced(op.reduction, box_cells(op, self.contents(buffer, shape, dtype)))[()]

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep with NumPy on the cells of fields."""
        cells = {
            field: self.contents(b, sizes_of(field_bounds(field)), dtype_of(element_type(field)))
            for field, b in fields.items()
        }
        run_sweep(op, cells, numbers)
        for target in op.targets:
            self.fill(fields[target], cells[target])

    def spread(self, op: BroadcastOp, source: Any) -> Any:
        if self.is_read_in_place(op):
            return source
        dtype = dtype_of(element_type(op.field))
        cells = self.contents(source, sizes_of(field_bounds(op.source)), dtype)
        wide = np.ascontiguousarray(wide_cells(op, cells))
        made = self.new(op, wide.shape, dtype)
        self.fill(made, wide)
        return made

    def is_read_in_place(self, op: BroadcastOp) -> bool:
        """Whether kernels read the source of a broadcast; asked once for each operation."""
        if op not in self.in_place:
            self.in_place[op] = is_read_in_place(op)
        return self.in_place[op]

    def nest(self, op: Operation, values: HostValues) -> AbstractContextManager[None]:
        return nullcontext()


class ViewMemory(ArrayMemory):
    """Memory of NumPy arrays. A field of fewer axes read in place is a view of all axes."""

    def spread(self, op: BroadcastOp, source: Any) -> Any:
        found = super().spread(op, source)
        return wide_cells(op, source) if found is source else found


def memref_shape(value: SSAValue, buffer: Any) -> tuple[int, ...]:
    """The shape of a memref: of the type, or of the field or array behind."""
    kind = memref_type(value)
    shape = kind.get_shape()
    if DYNAMIC_INDEX not in shape:
        return shape
    for name in names_of(memory_of(value)):
        if isa(field := name.type, FieldType[Attribute]) and isinstance(
            field.bounds, StencilBoundsAttr
        ):
            return sizes_of(field.bounds)
    if is_numpy_array(buffer):
        return buffer.shape
    refuse(
        operation_at(value),
        f"the extents of {kind} are unknown; give the memref static extents",
    )


def refuse_index(op: Operation, axis: int, index: int, extent: int) -> NoReturn:
    """Refuse an access outside a memref."""
    refuse(
        op,
        f"the operation reads or writes index {index} along axis {axis}, and there are {extent}; "
        "keep indices within the memref",
    )


def place_of(op: Operation, value: SSAValue, buffer: Any, indices: Sequence[Any]) -> int:
    """Where a cell of a memref lies, in row-major order; CompileError outside the memref."""
    place = 0
    shape = memref_shape(value, buffer)
    for axis, (index, extent) in enumerate(zip(indices, shape)):
        if not 0 <= int(index) < extent:
            refuse_index(op, axis, int(index), extent)
        place = place * extent + int(index)
    return place


HOST_OPERATIONS: tuple[type[Operation], ...] = (
    LoopOp,
    memref.LoadOp,
    memref.StoreOp,
    memref.AtomicRMWOp,
    memref.DimOp,
    ScratchOp,
    BroadcastOp,
    GatherOp,
    ReduceOp,
    SweepOp,
    InjectOp,
    SampleOp,
    PointRunOp,
    memref.CopyOp,
    gpu.MemcpyOp,
    *ALLOCATIONS,
)
"""Operations with a host handler by every executor."""


def copy_memory(memory: Memory, name: SSAValue, source: Any, target: Any) -> None:
    """Copy all cells of a field, or of memory that only the host uses, to another."""
    shape, dtype = memref_shape(name, source), dtype_of(memref_type(name).element_type)
    near = is_numpy_array(source)
    cells = np.array(source if near else memory.contents(source, shape, dtype))
    if is_numpy_array(target):
        target[...] = cells.reshape(target.shape)
        memory.note_change(target)
    else:
        memory.fill(target, cells)


def memory_handlers(memory: Memory) -> dict[type[Operation], HostHandler]:
    """The host handlers of operations that read, write or make memory."""
    return handlers_of_cells(memory) | handlers_of_fields(memory)


def handlers_of_cells(memory: Memory) -> dict[type[Operation], HostHandler]:
    """The host handlers of operations that read or write one cell."""

    def load(op: memref.LoadOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        buffer, *indices = operands
        return [memory.load(op, buffer, indices)]

    def store(op: memref.StoreOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        value, buffer, *indices = operands
        place = place_of(op, op.memref, buffer, indices)
        memory.write(buffer, place, dtype_of(op.value.type).type(value))
        return []

    def change(
        op: memref.AtomicRMWOp, operands: Sequence[Any], values: HostValues
    ) -> Sequence[Any]:
        value, buffer, *indices = operands
        kind = op.kind.value.data
        if kind not in ATOMIC_KINDS:
            refuse(op, f"kind {kind} is unknown; use addf, addi, mulf, muli, a minimum or maximum")
        dtype = dtype_of(op.value.type)
        place = place_of(op, op.memref, buffer, indices)
        old = memory.read(buffer, place, dtype)
        with np.errstate(all="ignore"):
            memory.write(buffer, place, ATOMIC_KINDS[kind](old, dtype.type(value)))
        return [old]

    return {memref.LoadOp: load, memref.StoreOp: store, memref.AtomicRMWOp: change}


def handlers_of_fields(memory: Memory) -> dict[type[Operation], HostHandler]:
    """The host handlers of operations that make, copy or measure whole buffers."""

    def allocate(op: Operation, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        return [memory.new(op, *allocated(op))]

    def scratch(op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        shape = sizes_of(field_bounds(op.field))
        return [memory.new(op, shape, dtype_of(element_type(op.field)))]

    def broadcast(op: BroadcastOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        return [memory.spread(op, operands[0])]

    def copy(op: memref.CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        copy_memory(memory, op.source, *operands)
        return []

    def transfer(op: gpu.MemcpyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        target, source = operands[-2:]
        copy_memory(memory, op.src, source, target)
        return [None for _ in op.results]

    def gather(op: GatherOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        target, source, *places = operands
        memory.gather(op, target, source, places)
        return []

    def reduce(op: ReduceOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        return [memory.reduce(op, operands[0])]

    def dim(op: memref.DimOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        buffer, axis = operands
        return [memref_shape(op.source, buffer)[int(axis)]]

    return {
        **dict.fromkeys(ALLOCATIONS, allocate),
        memref.CopyOp: copy,
        gpu.MemcpyOp: transfer,
        memref.DimOp: dim,
        ScratchOp: scratch,
        BroadcastOp: broadcast,
        GatherOp: gather,
        ReduceOp: reduce,
    }
