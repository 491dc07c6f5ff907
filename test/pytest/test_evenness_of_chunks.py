"""
Chunks of columns have equal durations: if planes are dealt to the slots of a device, chunks at the
ends and on the rim, with more work for a plane, have fewer planes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import timetile
from support.catalogue import Domain, box, entry, sum_program
from support.columns import JOINED, THREADS
from support.description import Element
from support.placed import check, deepest
from support.programs import program_text
from support.schedules import warp_row
from timetile.dialects.tile import Form, Guards
from timetile.passes.analysis.geometry.chunks import (
    choose_chunks,
    edge_height,
    end_planes,
    ends_of_cut,
    level_columns,
)
from timetile.passes.analysis.geometry.columns import Columns, corner_steps, launch
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.cost.rim import edge_weight, weight_of_chunks
from timetile.passes.targets.target import target_named
from timetile.runtime.program.compiled_program import Executor

# One worker has the shared results of the file's tests.
pytestmark = [
    pytest.mark.covering,
    pytest.mark.usefixtures("chosen_by_model"),
    pytest.mark.xdist_group("evenness_of_chunks"),
]


RIM = target_named("sm_90").parameters.rim


@pytest.mark.covering(first=1, every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize(("multiprocessors", "cells"), [(4, 1100), (7, 600), (9, 600)])
def test_one_chunk_for_each_slot_of_the_device_takes_equally_long(
    multiprocessors: int, cells: int, executor: Executor
):
    """
    The columns inside are cut evenly as a whole; blocks on the rim fill pairs of multiprocessors.
    """
    program = entry("heat-2d").make((391, cells))
    *passes, peel = JOINED.passes(2)
    peel = replace(peel, planes=None, multiprocessors=multiprocessors)
    placed = check(program, 4, executor, *passes, peel)
    kernel = deepest(placed, 2)
    geometry, residency = (
        Geometry(kernel),
        Residency.of(kernel, target_named("sm_90", multiprocessors)),
    )
    assert kernel.variants is not None
    edge, inner = kernel.variants
    assert not edge.is_interior and inner.is_interior and inner.joined.data > geometry.restart
    assert geometry.variant_numbers[0] % (2 * residency.block_tiles) == 0
    assert geometry.tiles == residency.tiles
    columns, tiles = geometry.columns(inner), geometry.variant_tiles(inner)
    all_planes = columns * (geometry.planes + geometry.restart + 2 * geometry.fill)
    assert 0 <= inner.planes.data * tiles - all_planes < tiles


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize(("multiprocessors", "cells"), [(12, 600), (15, 900)])
def test_chunks_of_sums_within_a_column_take_equally_long(
    multiprocessors: int, cells: int, executor: Executor
):
    """
    The largest fitting number: the first and the last chunk of a column, with guards in the fill,
    have fewer planes.
    """
    program = sum_program("f64", box((-1, -1), (1, 1)))((391, cells))
    *passes, peel = replace(JOINED, form=Form.ROWS).passes(2)
    peel = replace(peel, planes=None, columns="alone", multiprocessors=multiprocessors)
    kernel = deepest(check(program, 4, executor, *passes, peel), 2)
    geometry = Geometry(kernel)
    residency = Residency.of(kernel, target_named("sm_90", multiprocessors))
    edge, inner = geometry.used_variants
    assert not edge.is_interior and inner.is_interior and not geometry.joins_columns
    free = residency.tiles - geometry.variant_numbers[0]
    columns = geometry.columns(inner)
    assert geometry.chunks(inner.planes.data) == free // columns
    for variant, ends in zip((edge, inner), end_planes(geometry, residency, sums=True)):
        assert ends > 0
        chunks = Columns(geometry.columns(variant), variant.planes.data, ends=ends)
        # The slowest chunk of a column is as long as a chunk between the ends.
        assert chunks.steps(geometry, residency) == geometry.steps(variant.planes.data)


@cache
def sums_of(element: Element, domain: Domain, depth: int) -> tuple[Geometry, Residency]:
    """The default kernel of nine points, of a depth."""
    text = program_text(sum_program(element, box((-1, -1), (1, 1)))(domain))
    compiled = timetile.compile(text, executor="simt", depth=depth, halos="common", cache=False)
    kernel = deepest(compiled.kernels.tiled, depth)
    return Geometry(kernel), Residency.of(kernel, target_named("sm_90"))


def weight_of_rim(element: Element, cells: int, *, sums: bool) -> float:
    """The weight of a guarded step of a plate of nine points."""
    geometry, _ = sums_of(element, (cells, cells), 8)
    weight = edge_weight(geometry, Guards.RIM, RIM, sums=sums, planes=1)
    assert weight is not None
    return weight


def test_the_rim_of_sums_of_words_weighs_less_where_accesses_are_wide():
    """Rows of 8782 words have wide accesses, rows of 8783 words have none."""
    plates: list[tuple[Element, int]] = [("f32", 8782), ("f32", 8783), ("f64", 8784)]
    wide, narrow, doubles = (weight_of_rim(*plate, sums=True) for plate in plates)
    assert wide < narrow == doubles
    assert {weight_of_rim(*plate, sums=False) for plate in plates} == {narrow}


def test_strips_of_words_have_shorter_ends_in_a_cut():
    """The choice of a schedule counts shorter ends of sums alone."""
    plates: list[tuple[Element, int]] = [("f32", 8782), ("f64", 8784)]
    words, doubles = (sums_of(element, (cells, cells), 8) for element, cells in plates)
    fill = words[0].fill
    assert ends_of_cut(*words, sums=False) == (3 * fill, fill)
    assert ends_of_cut(*words, sums=True) == end_planes(*words, sums=True)
    assert {end_planes(*words, sums=False), ends_of_cut(*doubles, sums=False)} == {(0, 0)}


def test_edge_chunks_cost_their_surplus_planes():
    """Chunks of one height that divides the planes leave nothing to the ends."""
    geometry, residency = sums_of("f64", (8192, 8784), 4)
    for on_rim, ends in zip((True, False), end_planes(geometry, residency, sums=True)):
        assert ends > 0
        even = Columns(2, geometry.planes // 16, 1.15, on_rim=on_rim, ends=ends)
        level = level_columns(geometry, even, 2 * 16)
        assert level is not None and geometry.missing(even.planes) == 0
        assert even.steps(geometry, residency) == 1.15 * (geometry.steps(even.planes) + ends)
        assert level.steps(geometry, residency) == 1.15 * geometry.steps(level.planes)


def test_chunks_with_a_shorter_rim_win_among_launches_of_equal_duration():
    geometry, residency = sums_of("f64", (16384, 16384), 7)
    best = choose_chunks(geometry, residency, 1.15, sums=True, joins=False)
    edge, inner = best.columns
    just = edge_height(geometry, inner.planes, 1.15, corner_steps(geometry, residency))
    other = launch(geometry, residency, replace(edge, planes=just), inner)
    assert (best.steps, best.tiles) == (other.steps, other.tiles)
    assert edge.planes < just and best.longest < other.longest


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize("planes", [4, 7, 10, 24, 43, 60])
def test_the_first_and_the_last_chunk_share_what_is_missing(planes: int, executor: Executor):
    """
    Of 43 planes, up to nine more than exist: half of these on either side, and none of a single
    chunk's.
    """
    *passes, peel = JOINED.passes(2)
    peel = replace(peel, planes=planes)
    placed = check(entry("heat-2d").make((43, 450)), 3, executor, *passes, peel)
    geometry = Geometry(deepest(placed, 2))
    assert geometry.missing(planes) == (-43 % planes if planes < 43 else 0)


@pytest.mark.parametrize("executor", THREADS)
def test_joined_planes_leave_less_to_the_ends_in_blocks_of_one_tile(executor: Executor):
    """The planned numbers, less a fill for each chunk."""
    program = entry("heat-2d").make((131, 600))
    *passes, peel = replace(JOINED, tiling=warp_row(pack=1)).passes(3)
    peel = replace(peel, planes=None, multiprocessors=7)
    geometry = Geometry(deepest(check(program, 4, executor, *passes, peel), 3))
    (inner,) = (v for v in geometry.used_variants if v.is_interior)
    assert geometry.missing(inner.planes.data, inner.joined.data) == 2 * geometry.fill


@timetile.stencil
def mean(u: timetile.Field):
    u.next = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) / 9.0


def test_chunks_on_the_rim_are_shorter_where_several_levels_divide():
    """Approximate quotients have no branch, and one level has one branch everywhere."""

    def more(depth: int, division: FpDivision) -> float:
        made = timetile.compile(
            str(mean.module((999, 999), "float64")),
            executor="simt", depth=depth, halos="common", fp_division=division, cache=False,
        )  # fmt: skip
        tiled = made.kernels.tiled
        return weight_of_chunks(Geometry(deepest(tiled, depth)), tiled, 1.0, RIM, sums=False) - 1

    assert more(2, "exact") == pytest.approx(RIM.dividing[1])
    assert more(2, "fast") == more(1, "exact") == 0
