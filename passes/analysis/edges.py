"""Time loops with continued fields, and the loops whose kernels continue them."""

from __future__ import annotations

from timetile.dialects.temporal import LoopOp


def continues_in_kernels(loop: LoopOp) -> bool:
    """Whether kernels of several steps continue the fields of a loop."""
    return False
