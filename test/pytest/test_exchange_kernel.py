"""The copies of an exchange by one kernel, as its arguments say, and the kernel's text."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from support.sizes import seeds
from timetile.dialects.boxes import CellBox
from timetile.runtime.kernels.assembler import assemble, assembles
from timetile.runtime.ranks import gpu_meetings
from timetile.runtime.ranks.exchange_kernel import (
    MOST_BLOCKS,
    MOST_COPIES,
    MOST_NEIGHBOURS,
    NAME,
    TEXT,
    THREADS,
    UNITS,
    grid_of,
    row_of,
    rows_argument,
)
from timetile.runtime.ranks.gpu_meetings import rows_of_meeting
from timetile.runtime.ranks.rims import BoxCopy, box_copy, extents_of


def copied(row: list[int], source: bytes, target: bytearray) -> None:
    """The copies of all threads, as the kernel's text computes places."""
    unit, rows = UNITS[row[0] & 0xFFFFFFFF], row[0] >> 32
    for index in range(row[2]):
        line, inside = divmod(index, row[1] & 0xFFFFFFFF)
        plane, line = divmod(line, rows)
        to = row[3] + line * row[4] + plane * row[5] + inside * unit
        first = row[6] + line * row[7] + plane * row[8] + inside * unit
        assert to % unit == first % unit == 0
        target[to : to + unit] = source[first : first + unit]


def drawn_copy(random: np.random.Generator) -> tuple[BoxCopy, int, int]:
    """A copy between two drawn arrays, and the bytes of both."""
    rank, size = int(random.integers(1, 4)), int(random.choice([2, 4, 8]))
    extents = random.integers(1, 5, rank)
    boxes: list[CellBox] = []
    for _ in range(2):
        before, behind = random.integers(0, 4, rank), random.integers(0, 4, rank)
        boxes += [
            CellBox((0,) * rank, tuple(map(int, before + extents + behind))),
            CellBox(tuple(map(int, before)), tuple(map(int, before + extents))),
        ]
    source, source_box, target, target_box = boxes
    first, other = (prod(extents_of(whole)) * size for whole in (source, target))
    return box_copy(source, source_box, target, target_box, size), first, other


def copy_of_line(cells: int) -> BoxCopy:
    """The copy of a whole line of four bytes a cell."""
    line = CellBox((0,), (cells,))
    return box_copy(line, line, line, line, 4)


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_of_copies_name_all_bytes_of_a_box_once(seed: int):
    random = np.random.default_rng(seed)
    copy, size, other = drawn_copy(random)
    source = random.integers(1, 256, size, np.uint8).tobytes()
    target, expected = bytearray(other), bytearray(other)
    copied(row_of(0, 0, copy), source, target)
    for plane in range(copy.planes):
        for line in range(copy.rows):
            ends = [
                each.first + (plane * each.height + line) * each.pitch
                for each in (copy.source, copy.target)
            ]
            expected[ends[1] : ends[1] + copy.width] = source[ends[0] : ends[0] + copy.width]
    assert target == expected


def test_a_launch_has_threads_for_the_largest_copy_and_few_blocks():
    long, short = copy_of_line(1 << 22), copy_of_line(4)
    rows = [row_of(0, 0, each) for each in (long, short, short)]
    assert grid_of(rows) == (MOST_BLOCKS // 3, 3)
    assert grid_of(rows[1:]) == (1, 2) and grid_of([]) == (1, 1)
    assert row_of(8, 0, short)[:3] == [1 | 1 << 32, 2 | 1 << 32, 2], "16 bytes at 8, as two words"
    assert THREADS * UNITS[0] * MOST_BLOCKS > 1 << 20


def test_arguments_have_room_for_the_rows_of_all_copies():
    rows = bytes(rows_argument([[1] * 9] * MOST_COPIES))
    met = bytes(rows_of_meeting([1] * (4 * MOST_NEIGHBOURS)))
    assert len(met) + len(rows) <= 4096 - 64


@pytest.mark.skipif(not assembles("sm_90"), reason="nvJitLink is missing")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_kernels_of_exchanges_and_meetings_are_assembled(arch: str):
    for name, text in ((NAME, TEXT), (gpu_meetings.NAME, gpu_meetings.TEXT)):
        assert assemble(text.rstrip("\0\n"), arch, name).spill_bytes == 0
