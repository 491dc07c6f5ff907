"""Boxes of cells between ranks: ghost zones filled by owners, and whole fields gathered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Transfer
from timetile.dialects.temporal import PartAttr
from timetile.passes.loops.cut_domain import held_box
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.ranks.peers import Bytes, Peers, as_bytes


def array_part(array: Array, bounds: CellBox, box: CellBox) -> Array:
    """The cells of a box, in the array of a field with some bounds."""
    spans = zip(bounds.lower, box.lower, box.upper)
    return array[tuple(slice(low - first, high - first) for first, low, high in spans)]


@dataclass(frozen=True)
class CutField:
    """A field of the domain, as held by a rank. `whole` are the bounds of the field."""

    whole: CellBox
    part: PartAttr

    @property
    def rank(self) -> int:
        """The rank with the cells."""
        return self.part.rank.data

    @cached_property
    def held(self) -> CellBox:
        """The bounds of the rank's array."""
        return held_box(self.whole, self.part)

    @cached_property
    def owned(self) -> CellBox:
        """The rank's own cells; the box may be empty."""
        return self.part.decomposition.owned(self.rank, self.whole)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rank's array."""
        return tuple(high - low for low, high in zip(self.held.lower, self.held.upper))

    @cached_property
    def received(self) -> tuple[Transfer, ...]:
        """The boxes filling the rank's ghost zone."""
        found = self.part.decomposition.transfers_to(self.rank, self.whole, self.part.zone)
        return tuple(found)

    @cached_property
    def sent(self) -> tuple[Transfer, ...]:
        """The boxes of the rank's own cells in ghost zones."""
        found = self.part.decomposition.transfers_from(self.rank, self.whole, self.part.zone)
        return tuple(found)

    def cut(self, array: Array) -> Array:
        """The rank's array, filled from an array of the whole field."""
        made = np.empty(self.shape, array.dtype)
        # A field far from the part holds a single cell, read by no rank.
        nearest = self.held & self.whole
        array_part(made, self.held, nearest)[...] = array_part(array, self.whole, nearest)
        for transfer in self.received:
            source = array_part(array, self.whole, transfer.source_box)
            array_part(made, self.held, transfer.box)[...] = source
        return made

    def cell_at(self, place: int) -> CellBox:
        """The box of a single cell, by number in row-major order of the whole field."""
        lower: list[int] = []
        for low, high in reversed(list(zip(self.whole.lower, self.whole.upper))):
            place, number = divmod(place, high - low)
            lower.append(low + number)
        lower.reverse()
        return CellBox(tuple(lower), tuple(low + 1 for low in lower))

    def owner(self, cell: CellBox) -> int:
        """The rank with a cell of the field among the own cells."""
        decomposition = self.part.decomposition
        ranks = range(decomposition.count)
        return next(k for k in ranks if cell in decomposition.owned(k, self.whole))

    def chosen(self, rank: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions, in a list of places of the whole field, of cells owned by a rank."""
        return self.inside(self.part.decomposition.owned(rank, self.whole), places)

    def inside(self, box: CellBox, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions, in a list of places of the whole field, of cells in a box."""
        cells = self.cells_at(places)
        within = [
            (low <= along) & (along < high)
            for along, low, high in zip(cells, box.lower, box.upper, strict=True)
        ]
        return np.flatnonzero(np.all(within, axis=0))

    def cells_at(self, places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The places along each axis of cells, by number in row-major order of the whole field."""
        shape = [high - low for low, high in zip(self.whole.lower, self.whole.upper)]
        return [
            np.asarray(index, np.int64) + low
            for index, low in zip(np.unravel_index(places, shape), self.whole.lower)
        ]

    def index_in_array(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Indices, in the rank's array, of cells by number in the whole field."""
        cells = self.cells_at(places)
        return tuple(along - low for along, low in zip(cells, self.held.lower, strict=True))

    def own_cells(self, array: Array) -> Array:
        """The rank's own cells in the rank's array."""
        return array_part(array, self.held, self.owned)


HeldArray = tuple[CutField, Array]
"""A field and the array of a rank."""


class Exchange:
    """Moves cells between the arrays of ranks."""

    def __init__(self, peers: Peers):
        self.peers = peers

    def fill(self, fields: Sequence[HeldArray]) -> None:
        """Fill the ghost zones of some arrays, with one message for each pair of ranks."""
        rank = self.peers.rank
        sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
        for field, array in fields:
            for transfer in field.sent:
                cells = array_part(array, field.held, transfer.source_box)
                if transfer.target == rank:
                    array_part(array, field.held, transfer.box)[...] = cells
                else:
                    sent[transfer.target].append(cells)
            for transfer in field.received:
                if transfer.source != rank:
                    places[transfer.source].append(array_part(array, field.held, transfer.box))
        self.move(sent, places)

    def move(self, sent: dict[int, list[Array]], places: dict[int, list[Array]]) -> None:
        """Send cells to other ranks, and put cells from other ranks into boxes."""
        received = {
            rank: np.empty(sum(cells.nbytes for cells in boxes), np.uint8)
            for rank, boxes in places.items()
        }
        self.peers.exchange({rank: as_message(boxes) for rank, boxes in sent.items()}, received)
        for rank, boxes in places.items():
            unpack(received[rank], boxes)

    def cell(self, field: CutField, cell: CellBox, own: Array | None, dtype: np.dtype[Any]) -> Any:
        """A cell of the owner's array, on every rank. `own`: the cell of the rank, if held."""
        owner, made = field.owner(cell), np.empty(1, dtype)
        if owner == self.peers.rank and own is not None:
            made[:] = own.reshape(-1)
            others = [rank for rank in range(self.peers.count) if rank != owner]
            self.move({rank: [made] for rank in others}, {})
        else:
            self.move({}, {owner: [made]})
        return made[0]

    def cells(
        self, field: CutField, places: NDArray[np.int64], array: Array, dtype: np.dtype[Any]
    ) -> Array:
        """Cells of the owners' arrays, by number in the whole field, on every rank."""
        made, rank = np.empty(len(places), dtype), self.peers.rank
        chosen = [field.chosen(each, places) for each in range(self.peers.count)]
        own = array[field.index_in_array(places[chosen[rank]])]
        made[chosen[rank]] = own
        others = [each for each in range(self.peers.count) if each != rank]
        sent = {each: [own] for each in others} if len(own) else {}
        received = {each: np.empty(len(chosen[each]), dtype) for each in others}
        self.move(sent, {each: [cells] for each, cells in received.items() if len(cells)})
        for each, cells in received.items():
            made[chosen[each]] = cells
        return made

    def gather(self, fields: Iterable[tuple[CutField, Array, Array]]) -> None:
        """Fill arrays of whole fields on every rank with the cells of all owners."""
        sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
        for field, array, whole in fields:
            if not field.owned.is_empty:
                array_part(whole, field.whole, field.owned)[...] = field.own_cells(array)
            for rank in range(self.peers.count):
                if rank == self.peers.rank:
                    continue
                box = field.part.decomposition.owned(rank, field.whole)
                if not field.owned.is_empty:
                    sent[rank].append(field.own_cells(array))
                if not box.is_empty:
                    places[rank].append(array_part(whole, field.whole, box))
        self.move(sent, places)


def as_message(boxes: Sequence[Array]) -> Bytes:
    """The cells of some boxes as one message."""
    return np.concatenate([as_bytes(cells) for cells in boxes])


def unpack(message: Bytes, boxes: Sequence[Array]) -> None:
    """Fill boxes with the cells of a message."""
    begin = 0
    for cells in boxes:
        end = begin + cells.nbytes
        cells[...] = message[begin:end].view(cells.dtype).reshape(cells.shape)
        begin = end
