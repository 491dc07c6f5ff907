"""Streamed along another axis than the slowest, rows of any length leave the same bits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.catalogue import entry
from support.executors import kernel_executors
from support.schedules import Schedule, block_plane, check, warp_row
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("domain", [(20, 24), (24, 30), (131, 22), (2, 2), (1, 40)])
@pytest.mark.parametrize("name", ["heat-2d", "box-2d", "wave-2d"])
def test_planes_may_lie_along_rows(
    name: str, domain: tuple[int, int], ahead: int, executor: Executor
):
    """Successive cells in memory belong to different planes: none are moved together."""
    tiling = replace(warp_row(), stream_axis=1)
    check(entry(name).make(domain), Schedule("rows", tiling, Buffering(ahead=ahead)), 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("domain", [(9, 7, 20), (12, 10, 13)])
def test_planes_of_a_volume_may_lie_along_any_axis(
    domain: tuple[int, int, int], axis: int, executor: Executor
):
    tiling = replace(block_plane((4, 2), (2, 1)), stream_axis=axis)
    check(entry("heat-3d").make(domain), Schedule("volume", tiling), 2, executor)
