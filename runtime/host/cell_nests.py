"""Loop nests and rows of loads of the host on single cells of far memory: cells move together.

A source or a receiver is a nest touching equal cells in each step. The cells read by a nest are
fetched at once at the nest's next run. Writes are kept, and put back at once at the end of the
nest. An unexpected cell is fetched at its read. So a nest takes one copy for each field, not for
each cell. Loads of a field in a row, at constant places, take one copy, too: the weights of a
filter, read from an array ahead of the loop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, memref, scf
from xdsl.ir import Operation, SSAValue

from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.memory import ALIASES, memory_of
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.host.functions import HostValues, is_scalar
from timetile.runtime.host.memory import ArrayMemory, place_of

Array = NDArray[Any]
NestPlaces = NDArray[np.int64]

ACCESSES = (memref.LoadOp, memref.StoreOp, memref.AtomicRMWOp)
OF_NESTS = (
    *ACCESSES,
    *ALIASES,
    memref.DimOp,
    scf.ForOp,
    scf.IfOp,
    scf.ParallelOp,
    scf.YieldOp,
    scf.ReduceOp,
)
"""Operations of a nest, beside arithmetic. None launches a kernel."""


def is_of_cells(nest: Operation) -> bool:
    """Whether a loop contains only accesses to cells, and operations for the accesses."""
    inner = [op for op in nest.walk() if op is not nest]
    alone = all(isinstance(op, (*OF_NESTS, arith.ConstantOp)) or is_scalar(op) for op in inner)
    return alone and any(isinstance(op, ACCESSES) for op in inner)


def cell_of(access: memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp) -> np.dtype[Any]:
    """The type of the cell read or written by an operation."""
    value = access.res if isinstance(access, memref.LoadOp) else access.value
    return dtype_of(value.type)


def loads_in_a_row(first: memref.LoadOp) -> Iterator[tuple[memref.LoadOp, list[int]]]:
    """A load and those of its memref behind, with constant indices, until anything may write."""
    op: Operation | None = first
    while isinstance(op, (memref.LoadOp, *ALIASES)) or (op is not None and is_scalar(op)):
        if isinstance(op, memref.LoadOp) and op.memref is first.memref:
            indices = [integer_constant(index) for index in op.indices]
            known = [index for index in indices if index is not None]
            if len(known) == len(indices):
                yield op, known
        op = op.next_op


@dataclass
class NestCells:
    """The cells of one buffer at hand for a nest, by place, and the nest's writes."""

    kind: np.dtype[Any]
    values: dict[int, Any] = field(default_factory=dict[int, Any])
    touched: dict[int, None] = field(default_factory=dict[int, None])
    written: dict[int, None] = field(default_factory=dict[int, None])


class FarMemory(ArrayMemory):
    """
    Memory with fields of cells costly to reach one by one, and arrays for memory used by the host
    only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[Operation, dict[SSAValue, list[int]]] = {}
        """For each nest, the places read in the last run, by outer names of buffers."""
        self.names: dict[Operation, dict[SSAValue, np.dtype[Any]]] = {}
        self.at_hand: dict[Any, NestCells] | None = None
        """The cells of each buffer at hand for the running nest."""
        self.rows: dict[memref.LoadOp, list[tuple[memref.LoadOp, int]]] = {}
        """For each load fetched first, the loads in a row, and their places."""
        self.ahead: dict[memref.LoadOp, Any] = {}
        """The cells of loads behind the present one, fetched together."""

    # Questions to a kind of memory.

    def is_far(self, buffer: Any) -> bool:
        """The buffer is a field, not an array of the host."""
        raise NotImplementedError

    def fetch(self, buffer: Any, places: NestPlaces, dtype: np.dtype[Any]) -> Array:
        """The cells at places."""
        raise NotImplementedError

    def put(self, buffer: Any, places: NestPlaces, cells: Array) -> None:
        """Set the cells at places, without a place twice."""
        raise NotImplementedError

    # Single cells.

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        if not self.is_far(buffer):
            return super().read(buffer, place, dtype)
        if self.at_hand is None:
            return self.fetch(buffer, np.array([place]), dtype)[0]
        cells = self.at_hand.setdefault(buffer, NestCells(dtype))
        if place not in cells.values:
            cells.values[place] = self.fetch(buffer, np.array([place]), dtype)[0]
        cells.touched[place] = None
        return cells.values[place]

    def load(self, op: memref.LoadOp, buffer: Any, indices: Sequence[Any]) -> Any:
        if op in self.ahead:
            return self.ahead.pop(op)
        alone = self.at_hand is not None or not self.is_far(buffer)
        if alone or len(row := self.row(op, buffer)) < 2:
            return super().load(op, buffer, indices)
        places = np.array([at for _, at in row])
        cells = self.fetch(buffer, places, dtype_of(op.res.type))
        self.ahead.update(zip((load for load, _ in row), cells))
        return self.ahead.pop(op)

    def row(self, op: memref.LoadOp, buffer: Any) -> list[tuple[memref.LoadOp, int]]:
        """The loads fetched with a load, and their places."""
        if op not in self.rows:
            self.rows[op] = [
                (load, place_of(load, load.memref, buffer, indices))
                for load, indices in loads_in_a_row(op)
            ]
        return self.rows[op]

    def write(self, buffer: Any, place: int, value: Any) -> None:
        if not self.is_far(buffer):
            super().write(buffer, place, value)
        elif self.at_hand is None:
            self.put(buffer, np.array([place]), np.asarray([value]))
        else:
            cells = self.at_hand.setdefault(buffer, NestCells(np.asarray(value).dtype))
            cells.values[place] = value
            cells.written[place] = None

    # Nests.

    @contextmanager
    def nest(self, op: Operation, values: HostValues) -> Generator[None]:
        """
        Run a loop of the host: cells are fetched before and put back after, for a loop of cells
        alone.
        """
        if self.at_hand is not None or not self.names_in(op):
            yield
            return
        self.at_hand = self.fetched(op, values)
        try:
            yield
        finally:
            at_hand, self.at_hand = self.at_hand, None
            self.remember(op, values, at_hand)
            for buffer, cells in at_hand.items():
                if cells.written:
                    places = np.fromiter(cells.written, np.int64)
                    new = np.array([cells.values[place] for place in cells.written], cells.kind)
                    self.put(buffer, places, new)

    def names_in(self, op: Operation) -> dict[SSAValue, np.dtype[Any]]:
        """The types of the memory's cells touched by a nest; empty for a nest with other work."""
        if op not in self.names:
            accesses = [inner for inner in op.walk() if isinstance(inner, ACCESSES)]
            whole = accesses if is_of_cells(op) else []
            self.names[op] = {memory_of(access.memref): cell_of(access) for access in whole}
        return self.names[op]

    def fetched(self, op: Operation, values: HostValues) -> dict[Any, NestCells]:
        """The cells expected to be touched by a nest."""
        at_hand: dict[Any, NestCells] = {}
        for name, places in self.expected.get(op, {}).items():
            buffer = values.get(name)
            if not self.is_far(buffer) or not places:
                continue
            cells = at_hand.setdefault(buffer, NestCells(self.names_in(op)[name]))
            wanted = [place for place in places if place not in cells.values]
            if wanted:
                found = self.fetch(buffer, np.array(wanted), cells.kind)
                cells.values.update(zip(wanted, found))
        return at_hand

    def remember(self, op: Operation, values: HostValues, at_hand: dict[Any, NestCells]) -> None:
        """Note the cells read by a nest, for its next run."""
        self.expected[op] = {
            name: list(cells.touched)
            for name in self.names_in(op)
            if self.is_far(buffer := values.get(name))
            and (cells := at_hand.get(buffer)) is not None
        }
