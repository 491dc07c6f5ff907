"""A site whose stream may wait for other processes: the host looks around while it waits."""

from __future__ import annotations

import numpy as np
import pytest

from support.driver import BookKeeper
from timetile.dialects.boxes import CellBox
from timetile.runtime.device.gpu import device
from timetile.runtime.ranks import gpu_meetings
from timetile.runtime.ranks.exchange_kernel import MOST_COPIES, MOST_NEIGHBOURS, row_of
from timetile.runtime.ranks.gpu_sites import AHEAD, GpuSite
from timetile.runtime.ranks.peers import RankError
from timetile.runtime.ranks.rims import BoxCopy, box_copy
from timetile.runtime.ranks.sites import Pull

pytestmark = pytest.mark.usefixtures("cache_of_file")

SHAPE, TYPE = (4, 4), np.dtype(np.float64)


def test_the_host_looks_around_while_it_waits(driver: BookKeeper):
    site, looks = GpuSite(device(0)), list[str]()
    site.watch(lambda: looks.append("around"))
    driver.late = 3
    site.synchronize()
    assert len(looks) == 3
    for _ in range(AHEAD):
        site.keep_pace()
    driver.late = 2
    site.keep_pace()
    assert len(looks) == 5, "the host waits for the oldest of more than some exchanges"
    site.close()
    assert not driver.left


def test_others_are_late_only_while_the_stream_waits_for_them(
    driver: BookKeeper, monkeypatch: pytest.MonkeyPatch
):
    """Other ranks are not silent while the own GPU is slow: its kernel of a meeting says so."""
    site, clock = GpuSite(device(0)), [0.0]
    monkeypatch.setattr(gpu_meetings.time, "monotonic", lambda: clock[0])
    side = site.side_of_meetings(0, [site.new(SHAPE, TYPE) for _ in range(3)])
    assert side is not None
    found: list[list[int]] = []
    for now, counts in ((0, (0, 0)), (100, (0, 7)), (105, (0, 7)), (111, (3, 7)), (112, (3, 8))):
        clock[0], side.waits[1], side.waits[2] = now, *counts
        found.append(side.late(10.0))
    assert found == [[], [], [], [2], []]
    side.close()
    assert not driver.locked


def test_very_many_rims_are_copied_between_two_meetings(
    driver: BookKeeper, monkeypatch: pytest.MonkeyPatch
):
    """Others count two meetings, as with an exchange of one kernel."""
    site = GpuSite(device(0))
    side = site.side_of_meetings(0, [site.new(SHAPE, TYPE) for _ in range(2)])
    assert side is not None
    row, buffers = CellBox((0,), (4,)), (site.new(SHAPE, TYPE), site.new(SHAPE, TYPE))
    pull = Pull(*buffers, box_copy(row, row, row, row, 8))
    made: list[list[int]] = []

    def noted_row(source: int, target: int, copy: BoxCopy) -> list[int]:
        made.append(row_of(source, target, copy))
        return made[-1]

    monkeypatch.setattr(gpu_meetings, "row_of", noted_row)
    for _ in range(2):
        side.exchange((1,), [pull] * 2)
    assert len(made) == 2, "an exchange has the arguments of an equal one before"
    for count, kernels in ((MOST_COPIES, ["exchange"]), (MOST_COPIES + 1, ["meet", "meet"])):
        driver.launched.clear()
        driver.copied.clear()
        side.exchange((1,), [pull] * count)
        assert [name for name, _ in driver.launched] == kernels
        assert driver.copied == [32] * (count if len(kernels) == 2 else 0)
    assert site.side_of_meetings(0, [buffers[0]] * (MOST_NEIGHBOURS + 1)) is None
    side.close()
    site.close()


def test_nothing_is_waited_for_after_a_failure(driver: BookKeeper):
    """The stream may wait for a dead process: memory is left to the end of the own process."""
    site = GpuSite(device(0))
    buffer = site.new(SHAPE, TYPE)

    def look() -> None:
        raise RankError("rank 1 of 2 died: process 7 on a machine has ended")

    site.watch(look)
    driver.late = 1 << 20
    with pytest.raises(RankError, match="rank 1 of 2 died"), site.run_block():
        site.synchronize()
    site.synchronize()
    site.free(buffer)
    site.close()
    assert driver.late == (1 << 20) - 1, "a single question"
    assert "memory" in driver.left
