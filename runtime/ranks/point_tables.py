"""
Tables of cells noted at points, whole on each rank.

A rank notes the cells of its part and of the ghost zone; an entry of the list belongs to the rank
that owns the entry's cell. After a run, each column of a table is taken from the owner's table:
notes of stale ghosts are dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition
from timetile.dialects.temporal import LoopOp, PointKind, PointOp, PointSet
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import memory_of
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.ranks.exchange import Exchange
from timetile.runtime.ranks.sites import Site


@dataclass(frozen=True)
class NotedTable:
    """A table of a list: the memory of both, and the use of the list."""

    table: BlockArgument
    places: BlockArgument
    use: PointSet

    def owners(self, places: Array, decomposition: Decomposition) -> list[NDArray[np.int64]]:
        """The columns of each rank, from the integers of the list."""
        layout, whole = self.use.layout, CellBox.of(self.use.bounds)
        count = int(places[layout.following - 1])
        begins = [layout.coordinates(axis) for axis in range(len(layout.shape))]
        cells = np.stack([places[begin : begin + count] for begin in begins], axis=1)
        cells = cells.astype(np.int64) + np.array(whole.lower)
        owned = [decomposition.owned(rank, whole) for rank in range(decomposition.count)]
        return [
            np.flatnonzero(((cells >= box.lower) & (cells < box.upper)).all(axis=1))
            for box in owned
        ]

    def rows(self, table: Array) -> Array:
        """A table with an axis of steps and one of columns."""
        return table.reshape(-1, self.use.columns)


def point_sets_of(module: ModuleOp) -> Iterator[tuple[LoopOp | PointOp, PointSet]]:
    """The uses of lists of points by updates and by the host."""
    for op in module.walk():
        if isinstance(op, PointOp):
            yield op, op.set
        elif isinstance(op, LoopOp):
            for update in op.updates:
                yield from ((op, made) for made in update.point_sets)


def fields_of_points(module: ModuleOp) -> Iterator[SSAValue]:
    """The lists, weights and tables of points."""
    for _, made in point_sets_of(module):
        yield from (made.places, made.weights, made.table)


def argument_behind(memory: SSAValue) -> BlockArgument | None:
    """Memory as an argument of a function; None for other memory."""
    if isinstance(memory, BlockArgument) and isinstance(memory.owner.parent_op(), FuncOp):
        return memory
    return None


def noted_tables(module: ModuleOp) -> tuple[NotedTable, ...]:
    """
    The tables noted at points. Raises CompileError for a table or a list that is no argument, and
    for a table of several lists: no column has one owner.
    """
    found: dict[SSAValue, NotedTable] = {}
    kinds: dict[SSAValue, tuple[SSAValue, PointKind]] = {}
    for op, made in point_sets_of(module):
        table, places = memory_of(made.table), memory_of(made.places)
        if kinds.setdefault(table, (places, made.kind)) != (places, made.kind):
            refuse(
                op,
                "a table is of several lists of points, and ranks have parts; give each list a "
                "table of its own, or run the program in one process, on one GPU",
            )
        if made.kind is PointKind.INJECT:
            continue
        table, places = argument_behind(table), argument_behind(places)
        if table is None or places is None:
            refuse(
                op,
                "cells are noted in memory that the function makes, and ranks have parts; make the "
                "list and the table arguments, or run the program in one process, on one GPU",
            )
        found[table] = NotedTable(table, places, made)
    return tuple(found.values())


def merge_between_ranks(
    exchange: Exchange,
    decomposition: Decomposition,
    tables: Sequence[NotedTable],
    values: Sequence[Any],
) -> None:
    """Fill the columns of other ranks, in tables among the arguments of a call, on every rank."""
    sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
    waiting: list[tuple[Array, NDArray[np.int64], Array]] = []
    own = exchange.peers.rank
    for each in tables:
        rows = each.rows(values[each.table.index])
        owners = each.owners(values[each.places.index], decomposition)
        noted = np.ascontiguousarray(rows[:, owners[own]])
        for rank, columns in enumerate(owners):
            if rank == own:
                continue
            if noted.size:
                sent[rank].append(noted)
            if len(columns):
                received = np.empty((len(rows), len(columns)), rows.dtype)
                places[rank].append(received)
                waiting.append((rows, columns, received))
    if sent or places:
        exchange.move(sent, places)
    for rows, columns, received in waiting:
        rows[:, columns] = received


def merge_between_sites(
    sites: Sequence[Site],
    decomposition: Decomposition,
    tables: Sequence[NotedTable],
    placed: Sequence[Any],
    values: Sequence[Any],
) -> None:
    """Fill the tables among the arguments of a call from the tables of all sites."""
    for each in tables:
        table = values[each.table.index]
        owners = each.owners(values[each.places.index], decomposition)
        for site, buffer, columns in zip(sites, placed[each.table.index].buffers, owners):
            if len(columns):
                found = np.empty_like(table)
                site.download(found, buffer, 0)
                each.rows(table)[:, columns] = each.rows(found)[:, columns]
