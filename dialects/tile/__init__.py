"""The tile dialect: a kernel as a list of stages over queues of planes.

A tile is streamed plane by plane. An operation of a kernel runs once per stream step and taps older
planes of its operands: at step i the newest plane of a queue with lag L is plane i - L, so an
operation with lag C that taps offset d of it along the stream reads the plane of age C - L - d.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from timetile.dialects.tile.apply import ApplyOp, queue_home, taps_of
from timetile.dialects.tile.exchange import ExchangeOp, exchanges_of
from timetile.dialects.tile.homes import (
    CommonRingAttr,
    CopiesAttr,
    ExchangeBufferAttr,
    HomeAttr,
    MemoryAttr,
    RegistersAttr,
    SharedAttr,
)
from timetile.dialects.tile.integers import int_array, ints
from timetile.dialects.tile.kernel import KernelOp, StageOp
from timetile.dialects.tile.kinds import (
    KINDS,
    Addressing,
    Form,
    Guards,
    Published,
    Reader,
    RoleKind,
    Space,
    Storage,
    Sync,
    TileLevel,
)
from timetile.dialects.tile.launch_facts import LaunchAttr
from timetile.dialects.tile.launches import CopyOp, LaunchOp, ScratchOp, StepValueOp
from timetile.dialects.tile.layouts import LANES, AxisLayout, LayoutAttr
from timetile.dialects.tile.load import LoadOp
from timetile.dialects.tile.queues import QueueType
from timetile.dialects.tile.roles import RoleAttr
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.dialects.tile.stages import NeededCells, queue_lag, queue_type
from timetile.dialects.tile.store import StoreOp
from timetile.dialects.tile.variants import VariantAttr

Tile = Dialect(
    "tile",
    [KernelOp, LoadOp, ApplyOp, ExchangeOp, StoreOp, ScratchOp, CopyOp, LaunchOp, StepValueOp],
    [
        QueueType,
        LayoutAttr,
        RegistersAttr,
        CopiesAttr,
        SharedAttr,
        CommonRingAttr,
        MemoryAttr,
        ExchangeBufferAttr,
        RoleAttr,
        VariantAttr,
        LaunchAttr,
        ScheduleAttr,
        *KINDS,
    ],
)

__all__ = [
    "KINDS",
    "LANES",
    "Addressing",
    "ApplyOp",
    "AxisLayout",
    "CommonRingAttr",
    "CopiesAttr",
    "CopyOp",
    "ExchangeBufferAttr",
    "ExchangeOp",
    "Form",
    "Guards",
    "HomeAttr",
    "KernelOp",
    "LaunchAttr",
    "LaunchOp",
    "LayoutAttr",
    "LoadOp",
    "MemoryAttr",
    "NeededCells",
    "Published",
    "QueueType",
    "Reader",
    "RegistersAttr",
    "RoleAttr",
    "RoleKind",
    "Schedule",
    "ScheduleAttr",
    "ScratchOp",
    "SharedAttr",
    "Space",
    "StageOp",
    "StepValueOp",
    "Storage",
    "StoreOp",
    "Sync",
    "Tile",
    "TileLevel",
    "VariantAttr",
    "exchanges_of",
    "int_array",
    "ints",
    "queue_home",
    "queue_lag",
    "queue_type",
    "taps_of",
]
