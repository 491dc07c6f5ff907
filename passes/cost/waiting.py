"""The waits of a stream step: for other warps of the block, other blocks of the tile, and planes on
the way.
"""

from __future__ import annotations

from math import prod

from timetile.dialects.tile import Sync
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.queues.synchronisation import words_of_cell
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.setting import Setting
from timetile.passes.targets.target import Target


def is_resident_in_a_block(facts: KernelFacts, setting: Setting) -> bool:
    """The tile is a plate in the registers of one block."""
    return facts.shape is TileShape.PLATE and not setting.has_messages


def message_seconds(setting: Setting, target: Target) -> float:
    """Seconds of a step's wait for other blocks of a tile, except in a cluster."""
    if not setting.has_messages:
        return 0.0
    sync = Sync.GRID if setting.at_grid_barriers else Sync.FLAGS
    return target.parameters.waiting.message[sync] / setting.every


def message_bytes(facts: KernelFacts, setting: Setting) -> float:
    """
    The most bytes sent and taken by a block for one exchange: edges on both sides, in words of 64
    bits.
    """
    if not setting.has_messages:
        return 0.0
    layer = prod(axis.block_extent for axis in setting.axes[1:])
    return max(
        2
        * 2
        * e.edges[0]
        * layer
        * 8
        * words_of_cell(e.element, at_grid_barriers=setting.at_grid_barriers)
        for e in facts.exchanges
    )


def barriers_of_step(facts: KernelFacts, setting: Setting) -> float:
    """Barriers of a stream step; a half for a wait overlapping with work."""
    if not setting.splits:
        # Delayed exchanges share the barrier of another exchange.
        return max(1, sum(not exchange.delay for exchange in facts.exchanges))
    if facts.copies_are_narrow:
        # A warp has read the copies early in a step, and computes before the next wait (measured
        # for a star of radius 4 of f16: 583 and 637 GPts/s).
        return 0.5
    # Between arriving and waiting, a warp computes its inner rows, if any, and early sums.
    widest = max(exchange.edges[0] for exchange in facts.exchanges)
    barriers = 0.0 if setting.rows > 2 * widest or facts.sums_early else 1.0
    if facts.steps > 1 and widest > 1:
        # Wide edges of one level are published while edges of another level are awaited (measured
        # for radius 2 and 3).
        barriers /= 2
    return barriers


def waiting_seconds(facts: KernelFacts, setting: Setting, target: Target) -> float:
    """
    Seconds of a stream step's wait for other warps of the tile, in the block and in neighbouring
    blocks. A tile without a stream waits for each exchange. (`resident_efficiency` includes the
    waits of plates resident in one block.)
    """
    waiting = target.parameters.waiting
    if not facts.exchanges or is_resident_in_a_block(facts, setting):
        return 0.0
    between = message_seconds(setting, target)
    if not facts.shape.streams:
        between += message_bytes(facts, setting) / waiting.message_bytes_per_second
        return len(facts.exchanges) * (waiting.barrier + between)
    inside = barriers_of_step(facts, setting) * waiting.barrier
    if setting.layout.has_cluster:
        return inside + waiting.cluster
    sent = any(not exchange.copies for exchange in facts.exchanges)
    return inside + (between if sent else 0.0)


def exposed_seconds(facts: KernelFacts, target: Target, ahead: int) -> float:
    """
    Seconds of a step's wait for planes fetched `ahead` steps early. A resident tile has all planes
    at once.
    """
    late = facts.shape.streams and bool(facts.loads) and ahead == 0
    waiting = target.parameters.waiting
    return waiting.exposed_latency * waiting.latency if late else 0.0


def spilled_seconds(facts: KernelFacts, target: Target) -> float:
    """
    Seconds of a step that waits for spilled words, however few: warps that exchange rows wait for
    the slowest. Other warps go on.
    """
    together = facts.shape.streams and facts.shape.has_rows and bool(facts.exchanges)
    return target.parameters.waiting.spilled[4 * facts.words] if together else 0.0
