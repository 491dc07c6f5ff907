"""How planes and edges lie in shared memory: every cell has a place of its own, and rows begin with a vector."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.tile import AxisLayout
from timetile.passes.analysis.geometry.shared_layout import EdgeLayout, PaddedPlane


@given(
    sides=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=3),
    element=st.sampled_from([f32, f64]),
)
def test_every_cell_of_a_padded_plane_has_its_place(
    sides: list[tuple[int, int]], element: Attribute
):
    extents, reach = zip(*sides)
    plane = PaddedPlane(element, extents, reach)
    around = (range(-pad, size + pad) for size, pad in zip(extents, plane.pads))
    places = [
        plane.first + sum(at * stride for at, stride in zip(cell, plane.strides))
        for cell in product(*around)
    ]
    assert len(set(places)) == len(places)
    assert min(places) >= 0 and max(places) < plane.cells
    assert all(pad >= far for pad, far in zip(plane.pads, reach))
    assert plane.pitch * CELL_BYTES[element] % 16 == 0


@pytest.mark.parametrize(
    ("warps", "cells", "edges", "expected"),
    [
        # Rows of 32 lanes with two cells each, between eight warps: two edges of one row for each, and for both ends.
        ((8, 1), (4, 2), (1, 1), 10 * 2 * 64),
        # Columns between four warps: single cells.
        ((1, 4), (4, 2), (1, 3), 6 * 2 * 3),
    ],
)
def test_edges_take_a_place_for_every_warp_and_for_both_ends(
    warps: tuple[int, ...], cells: tuple[int, ...], edges: tuple[int, ...], expected: int
):
    axes = [AxisLayout(n, lanes, w, 1) for n, lanes, w in zip(cells, (1, 32), warps)]
    layout = EdgeLayout.of(axes, edges)
    assert layout is not None and layout.cells == expected
    assert EdgeLayout.of([AxisLayout(4, 32, 1, 1)], (1,)) is None
