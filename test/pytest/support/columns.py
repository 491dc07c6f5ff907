"""Programs for kernels with columns of tiles, cut into chunks."""

from __future__ import annotations

from support.executors import kernel_executors
from support.schedules import Schedule, warp_row
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass

THREADS = [executor for executor in kernel_executors() if executor != "planes"]
"""Executors that run tiles; the executor `planes` runs whole planes, and ignores columns."""


JOINED = Schedule("joined", warp_row(), MultiQueueBufferingPass(ahead=2))
