"""The base of operations that order accesses, and do nothing else."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, traits_def

from timetile.dialects.simt import OrderingEffects


class OrderingOp(IRDLOperation):
    """Base of operations without operands and results: no access is moved across."""

    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__()
