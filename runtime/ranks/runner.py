"""
Runs time loops on the parts of a rank: some steps, an exchange of ghosts, some steps.

A loop runs as on one process, by the runner of an executor, on the rank's arrays. Before a run, the
ghosts read by the steps are fresh: taken from the caller's arrays, or exchanged after earlier steps
made the ghosts stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from timetile.dialects.series import is_series
from timetile.dialects.temporal import BroadcastOp, GatherOp, LoopOp, ReduceOp, SweepOp
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.arithmetic.reductions import reduced
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.executors.runners import LoopRunner
from timetile.runtime.host.field_cells import box_cells, gathered, narrow_cells, wide_cells
from timetile.runtime.host.memory import ViewMemory
from timetile.runtime.host.memory_protocol import Memory
from timetile.runtime.native.loops import rotated
from timetile.runtime.ranks.cut_program import CutProgram, RankLoop
from timetile.runtime.ranks.exchange import CutField, Exchange, HeldArray, array_part


class PartMemory(ViewMemory):
    """Memory of NumPy arrays: a cut field has the cells of the rank."""

    def __init__(self, program: CutProgram, exchange: Exchange, executor: Memory):
        super().__init__()
        self.program, self.exchange, self.executor = program, exchange, executor
        self.fields: dict[int, CutField] = {}
        """The cut fields of arrays, by identity of the array."""
        self.fresh: set[int] = set()
        """The arrays with fresh ghosts, by identity."""
        self.changed: set[int] = set()
        """The arrays changed by the run, by identity."""
        self.copies: set[int] = set()
        """Copies of fields, by identity: the ghosts are as stale as those of the field."""

    def refresh(self, read: Sequence[HeldArray]) -> None:
        """Exchange the stale ghosts of some arrays."""
        stale: list[HeldArray] = []
        for field, array in read:
            if id(array) not in self.fresh:
                stale.append((field, array))
                if id(array) not in self.copies:
                    self.fresh.add(id(array))
        if stale:
            self.exchange.fill(stale)

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep on the lines of the rank, by the executor, with fresh ghosts beside."""
        run = self.program.sweeps[op]
        cut = {} if run.is_whole else {f: self.program.field_of(f) for f in fields}
        held = {field: array_of_rank(cut.get(field), array) for field, array in fields.items()}
        self.refresh([(cut[f], held[f]) for f in run.read if f in cut and held[f] is fields[f]])
        if run.op is not None:
            given = {own: held[value] for own, value in run.values.items() if value in held}
            numbers = {own: numbers[value] for own, value in run.values.items() if value in numbers}
            self.executor.sweep(run.op, given, numbers)
        for target in op.targets:
            self.note_change(fields[target])

    def extents(self, field: SSAValue) -> tuple[int, ...]:
        """The cells of a field along each axis."""
        cut = self.program.field(field)
        return super().extents(field) if cut is None else cut.shape

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array, made once for each operation."""
        cut = None if isinstance(op, BroadcastOp | LoopOp) else self.program.field(op.results[0])
        made = super().new(op, shape if cut is None else cut.shape, dtype)
        if isinstance(op, LoopOp):
            self.copies.add(id(made))
        if cut is not None:
            self.fields[id(made)] = cut
        return made

    def hold(self, field: CutField, array: Array) -> None:
        """Note the array of a cut field, with fresh ghosts."""
        self.fields[id(array)] = field
        self.fresh.add(id(array))

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        """A cell of a buffer; of a cut field, the cell of the owner."""
        field = self.fields.get(id(buffer))
        if field is None:
            return super().read(buffer, place, dtype)
        cell = field.cell_at(place)
        own = array_part(buffer, field.held, cell) if cell in field.held else None
        return self.exchange.cell(field, cell, own, dtype)

    def write(self, buffer: Any, place: int, value: Any) -> None:
        """Write a cell of a buffer; of a cut field, on each rank with the cell."""
        field = self.fields.get(id(buffer))
        if field is None:
            super().write(buffer, place, value)
            return
        cell = field.cell_at(place)
        if cell in field.held:
            array_part(buffer, field.held, cell)[...] = value
        self.changed.add(id(buffer))

    def is_far(self, buffer: Any) -> bool:
        """The buffer is of a cut field."""
        return id(buffer) in self.fields

    def fetch(self, buffer: Any, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        """Cells at places of the whole field, on each rank; owners send those of a cut field."""
        field = self.fields.get(id(buffer))
        if field is None:
            return buffer.reshape(-1)[places]
        return self.exchange.cells(field, places, buffer, dtype)

    def put(self, buffer: Any, places: NDArray[np.int64], cells: Array) -> None:
        """Set cells at places of the whole field; those of a cut field on each rank with some."""
        field = self.fields.get(id(buffer))
        if field is None:
            buffer.reshape(-1)[places] = cells
            return
        held = field.inside(field.held, places)
        buffer[field.index_in_array(places[held])] = cells[held]
        # Images beyond a periodic end change, too.
        self.note_change(buffer)

    def whole(self, field: SSAValue, buffer: Any) -> Array:
        """All cells of a field, on each rank."""
        cut = self.fields.get(id(buffer))
        if cut is None:
            return buffer
        made = np.empty(super().extents(field), buffer.dtype)
        self.exchange.gather([(cut, buffer, made)])
        return made

    def gather(self, op: GatherOp, target: Any, source: Any, places: Sequence[Any]) -> None:
        """Set all cells of an array to cells of another array, whole on each rank."""
        self.fill(target, gathered(op, self.whole(op.source, source), places))
        self.note_change(target)

    def fill(self, buffer: Any, cells: Array) -> None:
        """Fill an array; ghosts are as stale as those of the cells."""
        super().fill(buffer, cells)
        self.note_change(buffer)

    def note_change(self, array: Array) -> None:
        """The cells of an array have changed, and the ghosts may be stale."""
        self.changed.add(id(array))
        self.fresh.discard(id(array))

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        """
        The number made of the cells of a field's box, in the order of one process: each rank
        gathers the cells of all ranks.
        """
        cells = box_cells(op, self.whole(op.field, buffer))
        return reduced(op.reduction, cells)[()]


def array_of_rank(field: CutField | None, array: Array) -> Array:
    """The rank's cells of an array, which holds those cells or, of a spread field, all cells."""
    if field is None or array.shape == field.shape:
        return array
    return np.ascontiguousarray(array_part(array, field.whole, field.held))


class PartRunner:
    """Runs the loops of a rank with the runner of an executor."""

    def __init__(
        self,
        program: CutProgram,
        runner: LoopRunner,
        exchange: Exchange,
        progress: Progress | None = None,
    ):
        self.program, self.runner, self.exchange = program, runner, exchange
        self.progress = progress
        runner.memory.is_alone = False
        self.own = PartMemory(program, exchange, runner.memory)

    @property
    def memory(self) -> Memory:
        """How the host makes fields."""
        return self.own

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        run = self.program.loops[loop]
        if run.part is None:
            return self.runner(run.loop, steps, buffers, self.given(run, outside, 0, steps))
        names, done = list(buffers), 0
        every = 1 if loop.sweep is not None else run.part.steps.data
        while done < steps:
            count = min(every, steps - done)
            self.refresh(loop, run, names, outside)
            if run.is_idle:
                names = rotated(names, loop.rotation, count)
            else:
                given = self.given(run, outside, done, count)
                names = list(self.runner(run.loop, count, names, given))
            for role in run.written:
                self.own.note_change(names[role])
            done += count
            if self.progress is not None:
                self.progress(done, steps)
        return names

    def refresh(
        self, loop: LoopOp, run: RankLoop, names: Sequence[Array], outside: dict[SSAValue, Any]
    ) -> None:
        """Exchange stale ghosts read by steps."""
        read = [(loop.buffers[role], names[role]) for role in run.exchanged]
        read += [
            (field, outside[field])
            for field in loop.captures
            if not isinstance(field.owner, BroadcastOp) and field not in loop.point_fields
        ]
        self.own.refresh([(self.program.field_of(value), array) for value, array in read])

    def given(
        self, run: RankLoop, outside: dict[SSAValue, Any], done: int, count: int
    ) -> dict[SSAValue, Any]:
        """The captured fields and scalars of a loop of the rank, for some steps of a run."""
        given: dict[SSAValue, Any] = {}
        for own in (*run.loop.captures, *run.loop.scalars):
            value = outside[run.values[own]]
            if is_series(own):
                value = value[done : done + count]
            elif isinstance(own.owner, BroadcastOp):
                value = self.spread(run, own.owner, run.values[own], value)
            given[own] = value
        return given

    def spread(self, run: RankLoop, own: BroadcastOp, whole: SSAValue, array: Array) -> Array:
        """
        The cells that a loop of the rank finds in a field spread along more axes. The program may
        spread a field, as it writes the field, which the loop alone reads in place.
        """
        op, in_place = whole.owner, self.own.is_read_in_place(own)
        assert isinstance(op, BroadcastOp)
        if in_place and not self.own.is_read_in_place(op):
            array = wide_cells(op, narrow_cells(op, array))
        if run.part is not None:
            field = self.program.field_of(whole)
            array = array_part(array, field.whole, field.held)
        return array if in_place else np.ascontiguousarray(array)
