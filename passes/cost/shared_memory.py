"""Shared memory of a block, in bytes: rings of early planes, mail, and rows changing hands."""

from __future__ import annotations

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import SLICE_ALIGNMENT
from timetile.passes.analysis.geometry.shared_layout import (
    EdgeLayout,
    PaddedPlane,
    PrefetchLayout,
)
from timetile.passes.analysis.queues.storage import copies_slots
from timetile.passes.cost.facts import ExchangeFacts, KernelFacts, cell_bytes, field_bytes
from timetile.passes.cost.setting import Setting


def slots_of_copies(
    exchange: ExchangeFacts, setting: Setting, facts: KernelFacts, ahead: int
) -> int:
    """
    Planes of the ring filled by a load's copies for an exchange, `ahead` stream steps before use.
    """
    return copies_slots(
        exchange.exchange,
        ahead,
        blocks=setting.layout.blocks,
        stream=facts.kernel.stream_axis,
        split=setting.splits,
        every=setting.every,
    )


def padded_plane_bytes(exchange: ExchangeFacts, setting: Setting) -> int:
    """Bytes of a block's part of a plane, with surrounding cells read through an exchange."""
    plane = PaddedPlane.of(exchange.element, setting.axes, exchange.edges)
    return plane.cells * exchange.cell_bytes


def mail_bytes(exchange: ExchangeFacts, setting: Setting) -> int:
    """Bytes of the slots of an exchange: of edges, or of whole planes with surrounding cells."""
    if exchange.whole:
        return exchange.slots * padded_plane_bytes(exchange, setting)
    edges = EdgeLayout.of(setting.axes, exchange.edges)
    return 0 if edges is None else exchange.slots * edges.cells * exchange.cell_bytes


def shared_bytes(facts: KernelFacts, setting: Setting, geometry: Geometry, ahead: int) -> int:
    """Bytes of shared memory of a block, with planes fetched `ahead` stream steps before use."""
    # Where warps arrive, in a slice of its own.
    total = SLICE_ALIGNMENT if facts.exchanges else 0
    rows = setting.layout.threads * setting.thread_cells
    total += sum(rows * field_bytes(field) for field in facts.stored if geometry.is_dealt(field))
    if ahead and facts.streams:
        ring = PrefetchLayout.of(setting.layout, ahead).cells
        own = [load for load in facts.loads if load.result not in facts.published]
        total += sum(ring * cell_bytes(load.result) for load in own)
    for exchange in facts.exchanges:
        if exchange.copies:
            slots = slots_of_copies(exchange, setting, facts, ahead)
            total += slots * padded_plane_bytes(exchange, setting)
    mail = [mail_bytes(exchange, setting) for exchange in facts.exchanges if not exchange.copies]
    # The exchanges of a tile that stays take turns.
    return total + (sum(mail) if facts.streams else max(mail, default=0))
