"""
Time loops of the host that run as kernels with lists of points (`passes/raising/point_runs.py`).

A run evaluates the places of all points once, and makes lists. Pieces of the run then take three
functions each: the values of the steps go to tables, kernels advance and note cells, and the work
on the noted cells follows. A run whose points do not fit the lists is left to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.boxes import sizes_of
from timetile.dialects.point_lists import PointLayout
from timetile.dialects.temporal import PointKind, PointListAttr, PointRunOp, point_run_before
from timetile.dialects.verified import memref_type
from timetile.passes.raising.raise_time_loop import TIME_LOOP
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.arithmetic.points import cells_of_steps, packed_list
from timetile.runtime.host.cell_nests import FarMemory
from timetile.runtime.host.functions import Host, HostHandler, HostLoops, HostValues, NestRun
from timetile.runtime.host.memory_protocol import Memory, another_follows, unwritten_halos
from timetile.runtime.host.pieces import tapered_pieces
from timetile.runtime.host.run_record import RunRecord

Array = NDArray[Any]

FEWEST_STEPS = 2
"""Least steps of a run with lists."""

ABSENT = -1
"""The place of an entry without a cell."""


def has_point_runs(function: FuncOp) -> bool:
    """Whether some time loop of a function may run with lists of points."""
    return any(isinstance(op, PointRunOp) for op in function.walk())


def function_of(run: PointRunOp, part: str) -> FuncOp:
    """One of the functions of a time loop with points."""
    found = SymbolTable.lookup_symbol(run, run.function(part))
    assert isinstance(found, FuncOp)
    return found


def array_for(argument: SSAValue) -> Array:
    """An array for an argument of a function, a memref."""
    kind = memref_type(argument)
    return np.zeros(kind.get_shape(), dtype_of(kind.element_type))


@dataclass
class ListOfRun:
    """
    One list of a run: where each entry lies in the field, in row-major order; the entries inside
    the box of the updates, and their numbers in the list.
    """

    use: PointListAttr
    places: Array

    def __post_init__(self) -> None:
        self.kind = self.use.kind.data
        self.later = self.use.later.data
        self.shape = sizes_of(self.use.cells)
        self.size = prod(self.shape)
        found = self.places
        self.known = np.flatnonzero((found >= 0) & (found < self.size))
        cells = np.stack(np.unravel_index(found[self.known], self.shape), axis=1)
        low = np.array(list(self.use.box.lb)) - list(self.use.cells.lb)
        high = np.array(list(self.use.box.ub)) - list(self.use.cells.lb)
        inside = ((cells >= low) & (cells < high)).all(axis=1)
        self.entries = self.known[inside]
        self.cells = cells[inside].astype(np.int64)
        self.beside = self.known[~inside]
        """The entries whose cells no update writes."""
        self.without = np.delete(np.arange(len(found)), self.entries)
        """The entries without a number in the list."""
        self.number_in_list = np.zeros(len(found), np.int64)

    @property
    def fits(self) -> bool:
        """Whether a kernel can take the list."""
        lost = (self.places != ABSENT) & ((self.places < 0) | (self.places >= self.size))
        return not lost.any() and (self.kind is PointKind.SAMPLE or not len(self.beside))

    @property
    def layout(self) -> PointLayout:
        """The places of the list's parts."""
        return PointLayout(self.shape, len(self.places))

    @property
    def cells_of_steps(self) -> Array:
        """The cells whose planes make steps with points."""
        return cells_of_steps(self.layout, self.kind, self.cells)

    def packed(self, beside: Array) -> Array:
        """The integers of the list."""
        found, order = packed_list(self.layout, self.cells, self.entries, beside)
        self.number_in_list[self.entries[order]] = np.arange(len(order))
        return found


CellsOfTurns = list[Array]
"""Cells in each of the buffers that take turns."""


@dataclass(frozen=True)
class PieceOfRun:
    """
    A piece of a run: its steps, how many came before, and a wait for each list of noted cells.
    """

    steps: range
    begin: int
    received: Sequence[Callable[[], Array]]


def take_rows(each: ListOfRun, rows: Array, found: Array) -> None:
    """Copy noted cells from list order to rows in entry order. Entries without a cell get 0."""
    if len(each.entries):
        np.take(found, each.number_in_list, axis=1, out=rows, mode="clip")
    rows[:, each.without] = 0


class PointLoops:
    """
    Runs time loops with points as kernels, and other loops of the host as `others`. The
    functions run with `handlers`.
    """

    def __init__(
        self,
        others: HostLoops,
        handlers: dict[type[Operation], HostHandler],
        memory: Memory,
        record: RunRecord,
    ):
        self.others, self.memory, self.record = others, memory, record
        self.host = Host(handlers, None, record, 0, memory.nest, others)

    def run(
        self, op: Operation, counts: Sequence[range], carried: Sequence[Any], values: HostValues
    ) -> NestRun | None:
        """Run a loop; None for a loop left to the interpreter."""
        run = point_run_before(op) if TIME_LOOP in op.attributes else None
        if run is not None and isinstance(op, scf.ForOp) and len(counts[0]) >= FEWEST_STEPS:
            made = self.run_with_points(run, counts[0], carried, values)
            if made is not None:
                return made
        return self.others.run(op, counts, carried, values)

    def run_with_points(
        self,
        run: PointRunOp,
        steps: range,
        carried: Sequence[Any],
        values: HostValues,
    ) -> NestRun | None:
        """Run a time loop as kernels; None if its points do not fit lists."""
        given, places = [values[value] for value in run.given], self.places(run, values)
        # Taken while in use: another thread makes new lists.
        made = self.memory.point_lists.pop(run, None)
        if not isinstance(made, RunWithLists) or not made.has(places):
            lists = [ListOfRun(use, array) for use, array in zip(run.uses, places)]
            if not all(each.fits for each in lists):
                return None
            made = RunWithLists(self.memory, run, lists, self.host)
        made.begin(self.host, given)
        with unwritten_halos(self.memory):
            found = made.make(steps, list(carried))
        made.begin(self.host, [])
        self.memory.point_lists[run] = made
        around = self.record.outer[-1]
        return NestRun(found, around.cells, around.written)

    def places(self, run: PointRunOp, values: HostValues) -> list[Array]:
        """The places of the entries of each list."""
        function = function_of(run, "places")
        arguments = function.body.block.args[: len(run.uses)]
        places = [array_for(argument) for argument in arguments]
        for array in places:
            array[:] = ABSENT
        self.host.run(function, [*places, *(values[value] for value in run.given)])
        return places


class RunWithLists:
    """
    Runs of a time loop with points at equal places: the lists lie in the memory, and are kept from
    run to run.
    """

    def __init__(self, memory: Memory, run: PointRunOp, lists: Sequence[ListOfRun], host: Host):
        self.run, self.lists, self.memory = run, lists, memory
        self.rotation, self.given = run.rotation, list[Any]()
        self.host = host
        self.injects = [each for each in lists if each.kind is PointKind.INJECT]
        self.samples = [each for each in lists if each.kind is PointKind.SAMPLE]
        self.functions = {
            part: function_of(run, part) for part in ("lists", "values", "steps", "after")
        }
        inner = self.functions["values"].body.block.args[3 : 3 + len(self.injects)]
        self.tables = [array_for(argument) for argument in inner]
        inner = self.functions["after"].body.block.args[3 : 3 + len(self.samples)]
        self.notes = [array_for(argument) for argument in inner]
        rows = [len(table) // len(each.places) for table, each in zip(self.tables, self.injects)]
        rows += [
            len(notes) // len(each.places) - each.later
            for notes, each in zip(self.notes, self.samples)
        ]
        self.rows = min(rows)
        self.parts = self.list_parts()

    def has(self, places: Sequence[Array]) -> bool:
        """Whether the lists have these places."""
        pairs = zip(self.lists, places, strict=True)
        return all(np.array_equal(each.places, found) for each, found in pairs)

    def begin(self, host: Host, given: Sequence[Any]) -> None:
        """Begin a run: the functions run with `host`, and take `given` values."""
        self.host, self.given = host, list(given)

    def list_parts(self) -> list[Any]:
        """The fields of all lists, with the lists and the weights."""
        parts = self.host.run(self.functions["lists"], [])
        beside = np.concatenate([each.cells_of_steps for each in self.lists])
        for number, each in enumerate(self.lists):
            places, weights = parts[3 * number : 3 * number + 2]
            self.memory.fill(places, each.packed(beside))
            kind = self.dtype(each)
            self.memory.fill(weights, np.ones(len(each.places), kind))
        return parts

    def dtype(self, each: ListOfRun) -> np.dtype[Any]:
        """The type of the cells of a list."""
        of_kind = self.injects if each.kind is PointKind.INJECT else self.samples
        arrays = self.tables if each.kind is PointKind.INJECT else self.notes
        return arrays[[other is each for other in of_kind].index(True)].dtype

    def make(self, steps: range, carried: list[Any]) -> list[Any]:
        """
        Run all steps, in pieces. The host works on the cells noted in a piece while kernels run the
        next: the last pieces are short, as no kernel runs beside the last.
        """
        beside, before = self.cells_beside(carried), list[PieceOfRun]()
        first = self.first_cells(carried)
        pieces = list(tapered_pieces(len(steps), self.rows))
        # A last piece with a whole turn of the buffers leaves all of them as the plain loop does.
        is_whole = pieces[-1][1] >= len(self.rotation)
        for begin, count in pieces:
            piece = steps[begin : begin + count]
            self.compute_values(piece)
            goes_on = is_whole and begin + count < len(steps)
            with another_follows() if goes_on else nullcontext():
                carried = self.piece(piece, carried)
            before.append(PieceOfRun(piece, begin, self.received()))
            if len(before) > 1:
                self.finish(before.pop(0), beside, first)
        for piece in before:
            self.finish(piece, beside, first)
        return carried

    def finish(self, piece: PieceOfRun, beside: Sequence[CellsOfTurns], first: list[Array]) -> None:
        """The host's work on the cells noted in a piece, and the first cells of the next."""
        count = len(piece.steps)
        tables = zip(self.samples, self.notes, piece.received, beside, strict=True)
        for number, (each, notes, received, turns) in enumerate(tables):
            rows = notes.reshape(-1, len(each.places))
            rows[: each.later, each.entries] = first[number]
            take_rows(each, rows[each.later : each.later + count], received()[:count])
            # Row r has the cells of the written name `later` steps before step r.
            for row, cells in enumerate(turns):
                place = (row + each.later - piece.begin) % len(turns)
                rows[place :: len(turns), each.beside] = cells
            first[number] = rows[count : count + each.later, each.entries]
        self.work_after(piece.steps)

    def compute_values(self, steps: range) -> None:
        """The values of some steps, in the host's tables."""
        if self.injects:
            numbers = [steps.start, steps.step, len(steps)]
            self.host.run(self.functions["values"], [*numbers, *self.tables, *self.given])

    def work_after(self, steps: range) -> None:
        """The work of some steps on noted cells."""
        numbers = [steps.start, steps.step, len(steps)]
        self.host.run(self.functions["after"], [*numbers, *self.notes, *self.given])

    def piece(self, steps: range, carried: list[Any]) -> list[Any]:
        """Begin some steps, with the values in the host's tables."""
        tables = iter(self.tables)
        for number, each in enumerate(self.lists):
            if each.kind is PointKind.INJECT:
                self.memory.send(self.parts[3 * number + 2], next(tables))
        rows = np.arange(len(steps), dtype=np.int64)
        given = [len(steps), rows, *carried, *self.parts, *self.given]
        return self.host.run(self.functions["steps"], given)

    def received(self) -> list[Callable[[], Array]]:
        """Begin to copy the cells noted in a piece: for each list, a row for each step."""
        found: list[Callable[[], Array]] = []
        samples = zip(self.samples, self.notes, strict=True)
        for number, list_of_run in enumerate(self.lists):
            if list_of_run.kind is PointKind.SAMPLE:
                each, notes = next(samples)
                width = len(each.places)
                shape = len(notes) // width - each.later, width
                table = self.parts[3 * number + 2]
                found.append(self.memory.receive(table, shape, notes.dtype))
        return found

    def buffers_read(self, each: ListOfRun, carried: Sequence[Any]) -> list[Any]:
        """The buffers that the name of a list's field has in steps 0, 1, and so on, in turn."""
        role = each.use.field.data
        if role >= len(carried):
            return [self.given[role - len(carried)]]
        return [carried[name] for name in self.turns_of(role)]

    def cells_beside(self, carried: Sequence[Any]) -> list[CellsOfTurns]:
        """
        For each list of noted cells, the cells without an update in the buffers of a turn: such
        cells keep their values in a run.
        """
        return [
            [self.cells(buffer, each, each.beside) for buffer in self.buffers_read(each, carried)]
            if len(each.beside)
            else []
            for each in self.samples
        ]

    def first_cells(self, carried: Sequence[Any]) -> list[Array]:
        """For each list of noted cells, rows of cells that steps before the run wrote."""
        found: list[Array] = []
        for each in self.samples:
            buffers = self.buffers_read(each, carried)
            turns = (buffers[(row - each.later) % len(buffers)] for row in range(each.later))
            rows = [self.cells(buffer, each, each.entries) for buffer in turns]
            empty = np.zeros((each.later, len(each.entries)), self.dtype(each))
            found.append(np.stack(rows) if rows else empty)
        return found

    def turns_of(self, role: int) -> list[int]:
        """The names, at the start, of the buffers that a name has in steps 0, 1, and so on."""
        found = [role]
        while (source := self.rotation[found[-1]]) != role:
            found.append(source)
        return found

    def cells(self, buffer: Any, each: ListOfRun, entries: Array) -> Array:
        """Cells of a field in memory."""
        places, dtype = each.places[entries], self.dtype(each)
        if not len(places):
            return np.empty(0, dtype)
        if isinstance(self.memory, FarMemory) and self.memory.is_far(buffer):
            used, number = np.unique(places, return_inverse=True)
            return self.memory.fetch(buffer, used, dtype)[number]
        return self.memory.contents(buffer, each.shape, dtype).reshape(-1)[places]
