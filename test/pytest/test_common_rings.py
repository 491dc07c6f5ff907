"""
Exchanges, and planes of a tile that stays, share rings of shared memory: the bits are the unfused
program's, and a ring has as many planes as its queues need together.
"""

from __future__ import annotations

import pytest

from support.catalogue import entry
from support.executors import kernel_executors
from support.schedules import Schedule, block_plane, block_row, check, device_plane
from timetile.dialects.tile import Addressing, Published, Storage
from timetile.dialects.tile.kinds import RingUse
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

AT_ONCE = Streaming(delay=0, what=Published.PLANE, ring=RingUse.SHARED)

CASES: list[tuple[Schedule, str, tuple[int, ...], int]] = [
    (
        Schedule(
            "two-planes-for-three-levels",
            block_plane((3, 2), (4, 1)),
            Buffering(ahead=0),
            AT_ONCE,
            planes=5,
            shown="<slots 2, fixed, ring 0 base 1, ",
        ),
        "heat-3d",
        (7, 13, 37),
        3,
    ),
    (
        Schedule(
            "edges-of-a-row",
            block_row(),
            Buffering(ahead=0),
            Streaming(delay=0, ring=RingUse.SHARED),
            shown="what edges delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 1, ",
        ),
        "heat-2d",
        (19, 131),
        3,
    ),
    (
        Schedule(
            "one-behind-the-other",
            block_plane((3, 2), (4, 1)),
            Buffering(ahead=0, addressing=Addressing.SHIFTING),
            Streaming(delay=1, what=Published.PLANE, ring=RingUse.SHARED),
            planes=5,
            shown="<slots 4, shifting, ring 0 base 1, ",
        ),
        "heat-3d",
        (7, 13, 37),
        2,
    ),
    (
        Schedule(
            "copies-behind-planes",
            block_plane((3, 2), (4, 1)),
            Buffering(ahead=2, addressing=Addressing.COMPUTED),
            Streaming(delay=1, what=Published.PLANE, loads=Published.COPIES, ring=RingUse.SHARED),
            planes=5,
            shown="what copies delay 1 home #tile.exchange_buffer<slots 8, computed, ring 0 base ",
        ),
        "heat-3d",
        (7, 13, 37),
        2,
    ),
    (
        Schedule(
            "copies-in-the-ring-of-all-levels",
            block_row(),
            Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED, ahead=3),
            None,
            shown="what copies delay 0 home #tile.exchange_buffer<slots 16, computed, ring 0 base ",
        ),
        "heat-2d",
        (19, 131),
        3,
    ),
    (
        Schedule(
            "a-barrier-for-all-levels",
            block_plane((3, 2), (4, 1)),
            Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED, delay=1),
            None,
            planes=5,
            shown="what edges delay 1 home #tile.exchange_buffer<",
        ),
        "box-3d",
        (5, 9, 37),
        2,
    ),
    (
        Schedule(
            "a-barrier-in-two-steps",
            block_plane((3, 2), (4, 1)),
            Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED, every=2),
            None,
            planes=5,
            shown="what edges delay 2 home #tile.exchange_buffer<slots 4, computed, every 2, ",
        ),
        "heat-3d",
        (7, 13, 37),
        2,
    ),
    (
        Schedule(
            "a-barrier-in-three-steps",
            block_row(),
            streaming=Streaming(every=3),
            shown="every 3, space shared, sync barrier>",
        ),
        "box-2d",
        (19, 131),
        2,
    ),
    (
        Schedule(
            "a-tile-that-stays",
            device_plane((4, 2), 2, 2, stream_axis="none"),
            Buffering(storage=Storage.SHARED),
            None,
            planes=None,
            shown="home #tile.shared<slots 2, fixed, ring 0 base 1, reader tile>",
        ),
        "box-2d",
        (23, 67),
        3,
    ),
]


@pytest.mark.covering
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_queues_of_a_ring_keep_the_bits_of_the_program(
    case: tuple[Schedule, str, tuple[int, ...], int], executor: Executor
):
    schedule, name, domain, depth = case
    check(entry(name).make(domain), schedule, depth, executor)
