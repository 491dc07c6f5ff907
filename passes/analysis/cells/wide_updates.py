"""Wide updates: with more taps than a part of several updates has loads."""

from __future__ import annotations

from timetile.dialects.temporal import UpdateOp

PART_TAPS = 64
"""
Most cells loaded for a cell of a part of several updates. Each has its own address or offset, and
a load in flight.
"""


def is_wide(update: UpdateOp) -> bool:
    """Whether an update alone has more taps than a part of several updates has loads."""
    return len(update.tap_list) > PART_TAPS
