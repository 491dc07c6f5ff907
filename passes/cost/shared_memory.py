"""Shared memory of a block, in bytes: rings of early planes, exchanges, and rows changing hands."""

from __future__ import annotations

from timetile.passes.analysis.geometry.field_shapes import register_bytes
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.shared_layout import (
    EdgeLayout,
    PaddedPlane,
    PrefetchLayout,
    StagedRows,
    slice_bytes,
)
from timetile.passes.analysis.queues.storage import copies_slots, exchanged_slots, fixed_slots
from timetile.passes.cost.facts import ExchangeFacts, KernelFacts, field_bytes
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.turn import period_of
from timetile.passes.targets.hardware import SHARED_BYTES, SLICE_ALIGNMENT
from timetile.passes.targets.target import Target


def slots_of_copies(exchange: ExchangeFacts, setting: Setting, ahead: int) -> int:
    """
    Planes of the ring filled by a load's copies for an exchange, `ahead` stream steps before use.
    """
    return copies_slots(
        exchange.ages,
        ahead,
        blocks=setting.blocks,
        split=setting.splits,
        every=setting.every,
    )


def padded_plane_cells(exchange: ExchangeFacts, setting: Setting) -> int:
    """Cells of a block's part of a plane, with surrounding cells read through an exchange."""
    return PaddedPlane.of(exchange.element, setting.axes, exchange.reach).cells


def exchange_bytes(exchange: ExchangeFacts, setting: Setting, facts: KernelFacts) -> int:
    """Bytes of the slots of an exchange: of edges, or of whole planes with surrounding cells."""
    flags = setting.has_messages and not setting.at_grid_barriers
    slots = exchanged_slots(exchange.ages, flags=flags, every=setting.every)
    slots = fixed_slots(slots, period=period_of(facts, setting), every=setting.every)
    if exchange.whole:
        cells = padded_plane_cells(exchange, setting)
    else:
        edges = EdgeLayout.of(setting.axes, exchange.edges)
        cells = 0 if edges is None else edges.cells
    return slice_bytes(slots * cells, exchange.cell_bytes)


def shared_bytes(facts: KernelFacts, setting: Setting, geometry: Geometry, ahead: int) -> int:
    """
    Bytes of shared memory of a block, with planes fetched `ahead` stream steps before use, for a
    schedule that keeps planes in registers. Without a stream no less than the block will take, if
    all exchanges are alike.
    """
    # The words that warps arrive at take a slice of shared memory.
    arrives = setting.arrives and facts.shape.streams and bool(facts.exchanges)
    total = SLICE_ALIGNMENT if arrives else 0
    rows = StagedRows.of(setting.layout).cells
    dealt = [field for field in facts.stored if geometry.deals_rows(field)]
    total += sum(slice_bytes(rows, register_bytes(field)) for field in dealt)
    if ahead and facts.shape.streams:
        for load, oldest in facts.own_rings:
            ring = PrefetchLayout.of(setting.layout, ahead, oldest).cells
            total += slice_bytes(ring, field_bytes(load.field))
    for exchange in facts.exchanges:
        if exchange.copies:
            cells = padded_plane_cells(exchange, setting)
            slots = slots_of_copies(exchange, setting, ahead)
            total += slice_bytes(slots * cells, exchange.cell_bytes)
    exchanged: list[int] = []
    for exchange, count in facts.kinds_of_exchanges:
        exchanged += [exchange_bytes(exchange, setting, facts)] * count
    # The exchanges of a resident tile alternate between two slices.
    return total + (sum(exchanged) if facts.shape.streams else sum(sorted(exchanged)[-2:]))


def cache_beside(shared: int, blocks: int, target: Target) -> int:
    """
    Bytes of a multiprocessor's first-level cache beside the shared memory of some blocks, `shared`
    bytes each.
    """
    used = blocks * (shared + target.isa.shared_overhead)
    taken = min((size for size in SHARED_BYTES if size >= used), default=used)
    return max(1, target.isa.cache_per_multiprocessor - taken)
