"""Fields in parts, each on a site, and what the host does to fields in parts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import BroadcastOp, SweepOp, UpdateOp
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import is_never_written
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.host.cell_nests import FarMemory
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.ranks.cut_program import CutProgram
from timetile.runtime.ranks.exchange import CutField, array_part
from timetile.runtime.ranks.point_tables import merge_between_sites
from timetile.runtime.ranks.rims import extents_of, first_cell
from timetile.runtime.ranks.sites import Site

STALE = 1 << 40
"""The age of ghosts of which nothing is known, in steps."""


@dataclass(eq=False)
class PartedField:
    """
    A field with a buffer on every site. A cut field has cells of its part on a site, a field of
    fewer axes all cells on each site.
    """

    shape: tuple[int, ...]
    """The cells of the whole field along each axis."""
    dtype: np.dtype[Any]
    buffers: list[Any]
    cuts: tuple[CutField, ...] = ()
    """The held cells, a part at a time; none for a field that is whole on each site."""
    age: int = 0
    """Steps since the ghosts were fresh."""
    is_settled: bool = False
    """
    Ghosts outside of the domain are fresh: launches write none. (A launch may store fresh ghosts
    inside the domain only.)
    """
    is_changed: bool = False
    """The cells may have changed since the field was filled."""
    changed: CellBox | None = None
    """A box around the cells changed by loops and sweeps since the ghosts were fresh."""
    readers: list[list[Any]] = field(default_factory=list[list[Any]])
    """For each part, marks behind copies from the part's buffer on the streams of others."""


def forget_readers(fields: Sequence[PartedField]) -> None:
    """All copies from the buffers of fields are done before later work of any stream."""
    for each in fields:
        for marks in each.readers:
            marks.clear()


RunsSweeps = Callable[[SweepOp, Mapping[SSAValue, Any], Mapping[SSAValue, Any]], None]
"""Runs a sweep on fields in parts, with scalars as numbers."""


def no_sweeps(op: SweepOp, *_: Any) -> None:
    """A memory without a runner runs no sweep."""
    raise NotImplementedError(f"{op.name} needs a runner of parts")


class PartsMemory(FarMemory):
    """Memory of fields in parts, and of arrays for memory used by the host only."""

    def __init__(self, sites: Sequence[Site], cuts: Callable[[SSAValue], tuple[CutField, ...]]):
        super().__init__()
        self.sites, self.cuts = sites, cuts
        self.fields: dict[Operation, PartedField] = {}
        self.sweeps: RunsSweeps = no_sweeps
        """Runs a sweep on the parts of fields."""

    # Fields.

    def allocated(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], cuts: tuple[CutField, ...]
    ) -> PartedField:
        """A field of unknown cells."""
        shapes = [cut.shape for cut in cuts] if cuts else [shape] * len(self.sites)
        buffers = [site.new(each, dtype) for site, each in zip(self.sites, shapes)]
        readers: list[list[Any]] = [[] for _ in self.sites]
        return PartedField(shape, dtype, buffers, cuts, STALE, readers=readers)

    def alike(self, other: PartedField) -> PartedField:
        """A field of unknown cells, cut as another."""
        return self.allocated(other.shape, other.dtype, other.cuts)

    def free(self, given: PartedField) -> None:
        """Give back the memory of a field."""
        for site, buffer in zip(self.sites, given.buffers):
            site.free(buffer)

    def fill(self, buffer: Any, cells: Array) -> None:
        if not isinstance(buffer, PartedField):
            super().fill(buffer, cells)
            return
        self.synchronize()
        whole = np.ascontiguousarray(cells).reshape(buffer.shape)
        for number, site in enumerate(self.sites):
            own = held_cells(buffer.cuts[number], whole) if buffer.cuts else whole
            site.upload(buffer.buffers[number], own)
        buffer.age, buffer.is_settled, buffer.is_changed = 0, True, True

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        if not isinstance(buffer, PartedField):
            return super().contents(buffer, shape, dtype)
        cells = np.empty(buffer.shape, buffer.dtype)
        self.gather_to(buffer, cells)
        return cells.reshape(shape)

    def gather_to(self, given: PartedField, cells: Array) -> None:
        """Fill an array with all cells of a field, each from its owner."""
        if not given.cuts:
            self.sites[0].download(cells, given.buffers[0], 0)
            return
        for site, buffer, cut in zip(self.sites, given.buffers, given.cuts):
            if cut.owned.is_empty:
                continue
            place = array_part(cells, cut.whole, cut.owned)
            # Rows of a buffer are contiguous: whole rows are read, and cut afterwards.
            rows = CellBox(
                (cut.owned.lower[0], *cut.held.lower[1:]), (cut.owned.upper[0], *cut.held.upper[1:])
            )
            is_direct = rows == cut.owned and place.flags.c_contiguous
            taken = place if is_direct else np.empty(extents_of(rows), given.dtype)
            site.download(taken, buffer, first_cell(cut.held, rows))
            if not is_direct:
                place[...] = array_part(taken, rows, cut.owned)

    def gather_notes(self, cut: CutProgram, placed: Sequence[Any], values: Sequence[Any]) -> None:
        """Fill the tables of noted cells among the arguments of a call."""
        merge_between_sites(self.sites, cut.decomposition, cut.tables, placed, values)

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A field, made once for each operation."""
        if op not in self.fields:
            cuts = self.cuts(op.results[0])
            self.fields[op] = self.allocated(shape, dtype, cuts)
        return self.fields[op]

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        self.sweeps(op, fields, numbers)

    def spread(self, op: BroadcastOp, source: Any) -> Any:
        if is_never_written(op.source) and not self.is_read_in_place(op):
            # A sweep reads the field: the host spreads it.
            if any(isinstance(use.operation, UpdateOp) for use in op.field.uses):
                refuse(
                    op,
                    "a sweep and a time loop read one spread field, and kernels of a loop on "
                    "several GPUs read the field of fewer axes; spread the field by an operation "
                    "for each, or run the program on one GPU",
                )
            return super().spread(op, source)
        if not self.is_read_in_place(op):
            refuse(
                op,
                "a field of fewer axes is spread anew, as the program writes the field; run the "
                "program on one GPU, or on processors with executor='cpu'",
            )
        return source

    def copied(self, op: Operation, name: SSAValue, buffer: Any) -> Any:
        """A copy of a field for an operation."""
        if op not in self.fields:
            self.fields[op] = self.alike(buffer)
        made = self.fields[op]
        self.copy(buffer, made)
        return made

    def copy(self, source: PartedField, target: PartedField) -> None:
        """Copy a field to another with equal cuts."""
        for number, site in enumerate(self.sites):
            self.wait_for_readers(target, number)
            site.copy(source.buffers[number], target.buffers[number])
        target.age, target.is_settled, target.is_changed = source.age, source.is_settled, True
        target.changed = source.changed

    def wait_for_readers(self, given: PartedField, number: int) -> None:
        """Before a part's buffer changes, let its site wait for copies from the buffer."""
        for mark in given.readers[number]:
            self.sites[number].wait(mark)
        given.readers[number].clear()

    # Single cells.

    def is_far(self, buffer: Any) -> bool:
        return isinstance(buffer, PartedField)

    def fetch(self, buffer: Any, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        cells = np.empty(len(places), dtype)
        for number, (chosen, own) in self.owners(buffer, places).items():
            cells[chosen] = self.sites[number].fetch(buffer.buffers[number], own, dtype)
        return cells

    def put(self, buffer: Any, places: NDArray[np.int64], cells: Array) -> None:
        if not buffer.cuts:
            for site, own in zip(self.sites, buffer.buffers):
                site.put(own, places, cells)
        else:
            self.synchronize()
            for number, (chosen, own) in self.owners(buffer, places).items():
                taken = np.ascontiguousarray(cells[chosen])
                self.sites[number].put(buffer.buffers[number], own, taken)
            buffer.age, buffer.is_settled = STALE, False
            buffer.changed = buffer.cuts[0].whole
        buffer.is_changed = True

    def owners(
        self, given: PartedField, places: NDArray[np.int64]
    ) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """
        The parts that own cells of a field: for each part, positions in a list of places, and the
        places of these cells in the part's buffer.
        """
        if not given.cuts:
            return {0: (np.arange(len(places)), places)}
        at = np.unravel_index(places, given.shape)
        found: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for number, cut in enumerate(given.cuts):
            inside = np.ones(len(places), bool)
            for axis, index in enumerate(at):
                cell = index + cut.whole.lower[axis]
                inside &= (cut.owned.lower[axis] <= cell) & (cell < cut.owned.upper[axis])
            (chosen,) = np.nonzero(inside)
            if len(chosen):
                moved = [
                    index[chosen] + cut.whole.lower[axis] - cut.held.lower[axis]
                    for axis, index in enumerate(at)
                ]
                own = np.ravel_multi_index(moved, cut.shape)
                found[number] = chosen, np.asarray(own, np.int64)
        return found

    def synchronize(self) -> None:
        """Wait until all sites have done their work."""
        for site in self.sites:
            site.synchronize()

    def close(self) -> None:
        """Give back the fields made for operations."""
        while self.fields:
            self.free(self.fields.popitem()[1])


@contextmanager
def placed_fields(
    memory: PartsMemory, function: FuncOp, parameters: Sequence[Parameter], values: Sequence[Any]
) -> Generator[list[Any]]:
    """
    The arguments of a call with arrays of fields as fields in parts, for the time of a run; other
    arguments as they are.
    """
    placed: list[Any] = []
    try:
        for parameter, name, value in zip(parameters, function.body.block.args, values):
            if not is_numpy_array(value) or not parameter.is_field:
                placed.append(value)
                continue
            made = memory.allocated(value.shape, value.dtype, memory.cuts(name))
            placed.append(made)
            memory.fill(made, value)
            made.is_changed = False
        yield placed
    finally:
        for made in placed:
            if isinstance(made, PartedField):
                memory.free(made)


def held_cells(cut: CutField, whole: Array) -> Array:
    """The cells held by a part of a whole field, without a copy where they lie together."""
    if cut.held in cut.whole:
        return np.ascontiguousarray(array_part(whole, cut.whole, cut.held))
    return cut.cut(whole)
