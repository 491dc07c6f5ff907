"""Schedules shared by several files of tests, by purpose."""

from __future__ import annotations

from dataclasses import replace

from support.schedules import (
    FLAGS,
    GRID,
    Schedule,
    block_row,
    device_plane,
    warp_row,
)
from timetile.dialects.tile import Addressing, Form, Storage, Sync
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming

ROWS = [
    Schedule("warp", warp_row(), form=Form.ROWS, shown="_rows0"),
    Schedule(
        "warp-period-1", warp_row(), Buffering(period=1, ahead=1), form=Form.ROWS, shown="_rows0"
    ),
    Schedule("block", block_row(), form=Form.ROWS, shown="_rows0"),
    *(
        Schedule(
            f"shared-{addressing}",
            block_row(),
            Buffering(storage=Storage.SHARED, addressing=addressing),
            streaming=None,
            form=Form.ROWS,
            shown="_rows0",
        )
        for addressing in Addressing
    ),
]


NOT_UNROLLED = Schedule(
    "not-unrolled",
    device_plane((4, 1), 2, 2),
    streaming=Streaming(period=1),
    exchanged=Addressing.COMPUTED,
    shown=FLAGS,
)


MEETING_NOT_UNROLLED = replace(
    NOT_UNROLLED, streaming=Streaming(sync=Sync.GRID, period=1), shown=f"computed, every 1, {GRID}"
)
