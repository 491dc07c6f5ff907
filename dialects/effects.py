"""Effects on memory shared by the dialects."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind


class AllocatesResult(MemoryEffect):
    """The operation makes memory of its own: two are two, and one without a user is dead."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.ALLOC, op.results[0])}
