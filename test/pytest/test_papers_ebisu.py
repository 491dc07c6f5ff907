"""The model of EBISU's sections 5 and 6 gives the figures of its case studies."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest

from timetile.passes.cost.papers.ebisu import (
    bottleneck,
    component_seconds,
    concurrency,
    deepest,
    depth_that_shifts,
    depth_that_shifts_device_tile,
    least_depth,
    least_width,
    level_bytes,
    practical,
    shared_reads,
    speed,
    valid_share,
    valid_share_of_time,
)
from timetile.passes.targets.target import target_named

GLOBAL, SHARED = 1555e9, 19.49e12
"""Bandwidths of the paper's A100 (bytes per second)."""

Offsets = list[tuple[int, ...]]


def star(rank: int, radius: int) -> Offsets:
    zero = (0,) * rank
    moved = [
        (*zero[:axis], distance, *zero[axis + 1 :])
        for axis in range(rank)
        for distance in range(-radius, radius + 1)
        if distance
    ]
    return [zero, *moved]


def box(rank: int, radius: int) -> Offsets:
    return list(product(range(-radius, radius + 1), repeat=rank))


def near(most: int) -> Offsets:
    """The cells of a 3D box of radius 1 with at most a given number of nonzero coordinates."""
    return [at for at in box(3, 1) if sum(map(abs, at)) <= most]


SEVENTEEN = [at for at in box(3, 1) if at[0] == 0 or sum(map(abs, at)) == 3]


@pytest.mark.parametrize(
    ("taps", "without", "with_registers"),
    [
        (star(2, 1), 6, 4),
        (star(2, 2), 10, 6),
        (box(2, 1), 10, 4),
        (box(2, 2), 26, 6),
        (star(3, 1), 8, 4.5),
        (star(3, 2), 14, 7),
        (SEVENTEEN, 18, 5.5),
        (box(3, 1), 28, 5.5),
        (near(2), 20, 5.5),
    ],
    ids=[
        "j2d5pt",
        "j2d9pt",
        "j2d9pt-gol",
        "j2d25pt",
        "j3d7pt",
        "j3d13pt",
        "j3d17pt",
        "j3d27pt",
        "poisson",
    ],
)
def test_shared_accesses_are_those_of_table_2(taps: Offsets, without: float, with_registers: float):
    assert 1 + shared_reads(taps, 0, in_registers=False) == without
    assert 1 + shared_reads(taps, 0, in_registers=True) == with_registers


def test_the_stream_axis_is_the_axis_of_kept_planes():
    """A stencil along one axis reads no neighbour if the axis is the stream, otherwise two."""
    line = [(0, -1), (0, 0), (0, 1)]
    assert shared_reads(line, 1, in_registers=True) == 1
    assert shared_reads(line, 0, in_registers=True) == 3


def test_depths_and_widths_are_those_of_the_case_studies():
    """Sections 6.2.1, 6.2.2 and 6.4.2."""
    assert depth_that_shifts(2, 4, GLOBAL, SHARED) == pytest.approx(6.3, abs=0.05)
    deep = depth_that_shifts_device_tile(2, 4.5, GLOBAL, SHARED, (32, 32), 1)
    assert deep == pytest.approx(18.34, abs=0.01)
    assert least_width(2, 4.5, GLOBAL, SHARED, 1) == pytest.approx(22.3, abs=0.05)


def test_a_narrow_device_tile_never_shifts_the_bottleneck():
    """Below the least width, equation 19 has no solution."""
    assert depth_that_shifts_device_tile(2, 4.5, GLOBAL, SHARED, (22, 22), 1) == inf
    assert depth_that_shifts_device_tile(2, 4.5, GLOBAL, SHARED, (23, 23), 1) < inf


def test_valid_shares_are_those_of_section_6_3():
    assert valid_share([256], 7, 1) == pytest.approx(0.95, abs=0.005)
    assert valid_share([34, 34], 2, 1) == pytest.approx(30**2 / 34**2)
    assert valid_share([8, 64], 4, 1) == 0
    assert valid_share_of_time(2.05e-6, 1.2e-6) == pytest.approx(0.63, abs=0.005)
    assert valid_share_of_time(2.42e-6, 1.2e-6) == pytest.approx(0.67, abs=0.005)
    three_steps = speed(1, 3, {"global": component_seconds(2, 1, 8, GLOBAL)})
    assert three_steps == pytest.approx(292e9, rel=0.002)
    # The paper's 77% for two of three steps: cells computed by the first step beyond the tile
    # were loaded.
    assert practical(three_steps, 0.77) == pytest.approx(225e9, rel=0.005)


def test_shared_bandwidth_of_an_architecture_is_the_papers():
    assert target_named("sm_80").shared_tb_per_s * 1e12 == pytest.approx(SHARED, rel=0.001)


def test_the_depth_of_a_plate_is_the_case_studys():
    """Section 6.2.1: seven steps shift the bottleneck of j2d5pt."""
    assert least_depth(2, 4, GLOBAL, SHARED) == 7
    cells = 8352**2
    seconds = {
        "global": component_seconds(2, cells, 8, GLOBAL),
        "shared": component_seconds(4 * 7, cells, 8, SHARED),
    }
    assert bottleneck(seconds) == "shared"
    seconds["shared"] = component_seconds(4 * 6, cells, 8, SHARED)
    assert bottleneck(seconds) == "global"
    assert speed(cells, 6, seconds) == pytest.approx(6 * GLOBAL / 16)


def test_the_memory_of_a_device_tile_is_the_case_studys():
    """Section 6.2.2: 19 levels of j3d7pt take 352 KB, and an A100 has 164 KB."""
    assert 19 * level_bytes(32, 1, 8) == pytest.approx(352e3, rel=0.002)
    # Table 3 has depth 8 for radius 1, and 5 for radius 2.
    assert 8 <= deepest(164 << 10, 32, 1, 8) <= 9
    assert deepest(164 << 10, 32, 2, 8) == 5
    assert deepest(1, 32, 2, 8) == 1


def test_volumes_belong_on_the_device_and_plates_in_overlapping_tiles():
    """Equations 20 and 21, with the shares and speeds of section 6.3."""
    assert practical(1, 0.95) > practical(1, 0.63)
    assert practical(292e9, 0.77) < practical(365e9, 0.67)
    assert practical(365e9, 0.67) == pytest.approx(244e9, rel=0.005)


def test_256_threads_of_four_operations_saturate_a_unit():
    """Section 6.1: parallelism is threads times independent operations."""
    assert concurrency(20, 32) == 640
    assert 256 * 2 < concurrency(20, 32) <= 256 * 4
