"""
The algebra of decompositions: owners share out the cells of a field, ghost zones are filled exactly
once, from owners, across corners and periodic ends.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition, Ghosts, cells_outside, is_covered


def cells(box: CellBox) -> list[tuple[int, ...]]:
    """The cells of a box, one by one."""
    spans = [range(low, high) for low, high in zip(box.lower, box.upper)]
    return list(product(*spans))


@st.composite
def decompositions(draw: st.DrawFn) -> Decomposition:
    """Domains of one to three axes, cut at any places."""
    faces: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        low = draw(st.integers(-3, 3))
        faces.append(tuple(low + sum(sizes[:k]) for k in range(len(sizes) + 1)))
    axes = range(len(faces))
    return Decomposition(tuple(faces), tuple(a for a in axes if draw(st.booleans())))


@st.composite
def fields(draw: st.DrawFn) -> tuple[Decomposition, CellBox, Ghosts]:
    """A decomposition, a field with a halo beyond ends, and a ghost zone."""
    decomposition = draw(decompositions())
    lower, upper = list(decomposition.domain.lower), list(decomposition.domain.upper)
    for axis in range(len(lower)):
        if axis not in decomposition.periodic:
            lower[axis] -= draw(st.integers(0, 2))
            upper[axis] += draw(st.integers(0, 2))
    numbers = st.integers(0, 5)
    ghosts = tuple((draw(numbers), draw(numbers)) for _ in lower)
    return decomposition, CellBox(tuple(lower), tuple(upper)), ghosts


def home(decomposition: Decomposition, place: tuple[int, ...]) -> tuple[int, ...]:
    """The cell of the domain with a place as a name."""
    found = list(place)
    for axis in decomposition.periodic:
        low, high = decomposition.faces[axis][0], decomposition.faces[axis][-1]
        found[axis] = low + (place[axis] - low) % (high - low)
    return tuple(found)


@given(fields())
def test_each_cell_of_a_field_has_one_owner(drawn: tuple[Decomposition, CellBox, Ghosts]):
    decomposition, field, _ = drawn
    owned = [c for k in range(decomposition.count) for c in cells(decomposition.owned(k, field))]
    assert sorted(owned) == sorted(cells(field))


@given(fields())
def test_parts_cover_the_domain_once(drawn: tuple[Decomposition, CellBox, Ghosts]):
    decomposition = drawn[0]
    found = [c for k in range(decomposition.count) for c in cells(decomposition.part(k))]
    assert sorted(found) == sorted(cells(decomposition.domain))


@given(fields())
def test_transfers_fill_each_ghost_cell_once_from_its_owner(
    drawn: tuple[Decomposition, CellBox, Ghosts],
):
    decomposition, field, ghosts = drawn
    for rank in range(decomposition.count):
        own = set(cells(decomposition.owned(rank, field)))
        zone = set(cells(decomposition.held(rank, field, ghosts))) - own
        filled: list[tuple[int, ...]] = []
        for transfer in decomposition.transfers_to(rank, field, ghosts):
            assert transfer.source_box in decomposition.owned(transfer.source, field)
            for cell, origin in zip(cells(transfer.box), cells(transfer.source_box)):
                assert origin == home(decomposition, cell)
                filled.append(cell)
        assert sorted(filled) == sorted(zone)


@given(fields())
def test_sent_boxes_are_the_received_boxes(drawn: tuple[Decomposition, CellBox, Ghosts]):
    decomposition, field, ghosts = drawn
    ranks = range(decomposition.count)
    sent = [t for rank in ranks for t in decomposition.transfers_from(rank, field, ghosts)]
    received = [t for rank in ranks for t in decomposition.transfers_to(rank, field, ghosts)]
    key = {id(t): (t.target, t.source, t.box.lower) for t in (*sent, *received)}
    assert sorted(sent, key=lambda t: key[id(t)]) == sorted(received, key=lambda t: key[id(t)])


def test_neighbours_across_corners_send_corners():
    decomposition = Decomposition.evenly(CellBox((0, 0), (5, 7)), (2, 2))
    assert decomposition.faces == ((0, 2, 5), (0, 3, 7))
    field = CellBox((-1, -1), (6, 8))
    found = list(decomposition.transfers_to(0, field, ((1, 1), (2, 2))))
    assert [(t.source, str(t.box), t.offset) for t in found] == [
        (1, "[-1, 2) x [3, 5)", (0, 0)),
        (2, "[2, 3) x [-1, 3)", (0, 0)),
        (3, "[2, 3) x [3, 5)", (0, 0)),
    ]


def test_zones_reach_over_thin_parts_and_periodic_ends():
    decomposition = Decomposition(((0, 1, 2, 6),), (0,))
    found = list(decomposition.transfers_to(0, CellBox((0,), (6,)), ((1, 3),)))
    assert [(t.source, str(t.box), str(t.source_box)) for t in found] == [
        (1, "[1, 2)", "[1, 2)"),
        (2, "[-1, 0)", "[5, 6)"),
        (2, "[2, 4)", "[2, 4)"),
    ]


@pytest.mark.parametrize("counts", [(1, 1), (3, 2), (6, 1), (1, 7), (4, 5)])
def test_even_parts_differ_by_a_cell(counts: tuple[int, int]):
    decomposition = Decomposition.evenly(CellBox((-1, 0), (5, 7)), counts)
    assert decomposition.counts == counts
    for faces in decomposition.faces:
        sizes = np.diff(faces)
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("counts", [(7, 1), (0, 1)])
def test_more_parts_than_cells_are_refused(counts: tuple[int, int]):
    with pytest.raises(ValueError, match=rf"^{counts[0]} parts along axis 0, and the domain "):
        Decomposition.evenly(CellBox((0, 0), (6, 7)), counts)


def test_a_missing_rank_is_refused():
    with pytest.raises(ValueError, match=r"^rank 4 of 4 parts$"):
        Decomposition.evenly(CellBox((0,), (8,)), (4,)).part(4)


BOXES = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).map(
    lambda n: CellBox((n[0], n[1]), (n[0] + n[2], n[1] + n[3]))
)


@given(BOXES, BOXES)
def test_boxes_outside_a_box_have_the_other_cells_once(box: CellBox, cut: CellBox):
    left = [cell for piece in cells_outside(box, cut) for cell in cells(piece)]
    assert sorted(left) == sorted(set(cells(box)) - set(cells(cut)))


@given(BOXES, st.lists(BOXES, max_size=4))
def test_a_box_is_covered_by_boxes_with_its_cells(box: CellBox, boxes: list[CellBox]):
    others = {cell for other in boxes for cell in cells(other)}
    assert is_covered(box, boxes) == (set(cells(box)) <= others)
