"""Shapes of EBISU's device tiles with their blocks in one row, by the paper's equations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from timetile.passes.cost.papers.device_tiles import DeviceSpeeds, DeviceTiles
from timetile.passes.cost.papers.ebisu import BARRIER_SECONDS

TILES = DeviceTiles((96, 352, 384), 1, 8, 2, 4.5, DeviceSpeeds(132, 3e12, 30e12))
"""j3d7pt in FP64 on a part of 132 multiprocessors."""


def test_blocks_span_the_domain_and_its_overlap():
    """352 rows and 8 steps on both sides take 12 blocks of 32 rows, halves 6, and so on."""
    assert list(TILES.numbers_of_blocks(32, 8)) == [12, 6, 5, 4]
    assert set(replace(TILES, device=DeviceSpeeds(4, 3e12, 30e12)).numbers_of_blocks(32, 8)) == {4}


def test_a_tile_without_a_valid_cell_has_no_speed():
    assert TILES.steps((32, 32), 12, 16) == 0 and TILES.speed((32, 32), 12, 16) == 0
    assert TILES.steps((16, 64), 1, 8) == 0


def test_steps_are_those_of_all_turns():
    """24 tiles of 16 columns, 11 at once: 24 / 11 turns, evened out by chunks of the stream."""
    in_turns = [-(-24 * chunks // 11) * (96 / chunks + 16) for chunks in range(1, 5)]
    assert TILES.steps((32, 32), 12, 8) == min(in_turns)
    # 64 columns, of which 52 are valid: eight tiles of 16 blocks are on the device at once.
    assert TILES.steps((24, 64), 16, 6) == 96 + 12


def test_a_step_is_the_slower_memory_and_a_barrier():
    shared = TILES.step_seconds((32, 32), 12, 8)
    held = 132 * 32 * 32
    assert shared == pytest.approx(4.5 * 8 * held * 8 / 30e12 + BARRIER_SECONDS)
    slow = replace(TILES, device=DeviceSpeeds(132, 1e11, 30e12))
    assert slow.step_seconds((32, 32), 12, 8) > 2 * held * 8 / 1e11 + BARRIER_SECONDS


def test_wider_rows_are_faster_than_the_papers_square():
    """Of a square of 32 cells a side, half of the columns are overlap after eight steps."""
    square = TILES.speed((32, 32), TILES.best_blocks((32, 32), 8), 8)
    wide = TILES.speed((16, 64), TILES.best_blocks((16, 64), 8), 8)
    assert wide > 1.3 * square
