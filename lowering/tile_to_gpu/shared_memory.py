"""The shared memory of a kernel's blocks: the target's limits, options for less, and a launch's."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from timetile.dialects.tile import ExchangeOp, KernelOp, LoadOp, SharedAttr
from timetile.lowering.tile_to_gpu.message_buffers import messages
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.synchronisation import steps_between_barriers
from timetile.passes.diagnostics import refuse
from timetile.passes.targets.hardware import SLICE_ALIGNMENT
from timetile.passes.targets.target import Target

AROUND = 4
"""The overhead around a tile: a one-cell tile's memory, counted in cells."""


@dataclass(frozen=True)
class Way:
    """
    An option of a pass, and the approximate factor by which the least value reduces the memory.
    """

    option: str
    gain: float


def ways_to_less(kernel: KernelOp) -> list[Way]:
    """The options that reduce a kernel's shared memory."""
    layout = layout_of(kernel)
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    ways: list[Way] = []
    if (pack := layout.pack.data) > 1:
        ways.append(Way("device-tiling a smaller pack", pack))
    if any(isinstance(stage.home, SharedAttr) for stage in kernel.stages):
        ways.append(Way("multi-queue-buffering storage=registers", 2.0))
    ahead = max((s.planes_ahead for s in kernel.stages if isinstance(s, LoadOp)), default=0)
    delay = max((exchange.delay.data for exchange in exchanges), default=0)
    waiting = ahead + delay + 1
    if ahead > 1:
        ways.append(Way("multi-queue-buffering a smaller ahead", waiting / (delay + 1)))
    if steps_between_barriers(exchanges) > 1:
        ways.append(Way("a smaller every", waiting / (ahead + 1)))
    elif delay > 1:
        ways.append(Way("register-streaming a smaller delay", waiting / (ahead + 1)))
    axes = layout.axis_layouts
    cells = prod(axis.cells * axis.warps for axis in axes)
    if cells > 1:
        ways.append(Way("device-tiling fewer warps or cells", cells / AROUND))
    return ways


def way_out(kernel: KernelOp, excess: float) -> str:
    """
    Options that reduce shared memory by the factor `excess`: each option that suffices alone,
    otherwise all options together.
    """
    ways = ways_to_less(kernel)
    alone = [way.option for way in ways if way.gain >= excess]
    if alone:
        return "give " + ", or ".join(alone)
    together = " and ".join(way.option for way in ways)
    return f"give {together}" if together else "give temporal-fusion smaller depths"


def check_shared_memory(kernel: KernelOp, taken: int, target: Target) -> None:
    """
    Refuse blocks with more shared memory than the target's limit, and tiles of blocks resident
    together if a multiprocessor has room for fewer blocks than counted on.
    """
    most = target.isa.shared_per_block
    if taken > most:
        refuse(
            kernel,
            f"the kernel takes {taken} bytes of shared memory a block, and {target.name} has "
            f"{most}; {way_out(kernel, taken / most)}",
        )
    blocks, most = kernel.blocks_per_multiprocessor, target.isa.shared_per_multiprocessor
    held = blocks * (taken + target.isa.shared_overhead)
    if messages(kernel) and held > most:
        refuse(
            kernel,
            f"{blocks} blocks that wait for each other take {held} bytes of shared "
            f"memory a multiprocessor, and {target.name} has {most}; give device-tiling a smaller "
            "occupancy",
        )


def asked_bytes(kernel: KernelOp, taken: int, target: Target) -> int:
    """
    Bytes of shared memory asked for by a launch, where a block uses `taken`: more, if the schedule
    keeps blocks beyond the counted number from a multiprocessor.
    """
    if not taken or not kernel.decisions.blocks_alone:
        return taken
    isa, blocks = target.isa, kernel.blocks_per_multiprocessor
    room = isa.shared_per_multiprocessor // (blocks + 1) - isa.shared_overhead
    more = (room // SLICE_ALIGNMENT + 1) * SLICE_ALIGNMENT
    return max(taken, min(more, isa.shared_per_block))
