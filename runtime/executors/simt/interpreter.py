"""The SIMT interpreter: all threads of a launch at once, each value an array over the threads."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from timetile.lowering.tile_to_gpu.cells import is_arithmetic
from timetile.passes.diagnostics import refuse
from timetile.runtime.executors.simt.accesses import ACCESSES
from timetile.runtime.executors.simt.arrivals import ARRIVALS, ARRIVALS_THAT_WAIT
from timetile.runtime.executors.simt.barriers import BARRIERS, BARRIERS_THAT_WAIT
from timetile.runtime.executors.simt.control import CONTROL_THAT_WAIT
from timetile.runtime.executors.simt.copies import COPIES
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, RunOperation
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.executors.simt.posting import POSTING, POSTING_THAT_WAIT
from timetile.runtime.executors.simt.values import VALUES, arithmetic
from timetile.runtime.executors.simt.warps import WARPS

HANDLERS = VALUES | ACCESSES | COPIES | WARPS | BARRIERS | ARRIVALS | POSTING
"""How operations run."""

WAITING = CONTROL_THAT_WAIT | BARRIERS_THAT_WAIT | ARRIVALS_THAT_WAIT | POSTING_THAT_WAIT
"""Operations that may let other threads go on first."""


class SimtLaunch(Machine):
    """A launch, with the handlers that run operations."""

    def run_of(self, op: Operation) -> RunOperation:
        """How an operation runs. Raises CompileError for an unknown operation."""
        known: RunOperation | None = WAITING.get(type(op)) or HANDLERS.get(type(op))
        if known is not None:
            return known
        if is_arithmetic(op):
            return arithmetic(op)
        refuse(op, "the SIMT interpreter does not know it")

    def run(self) -> None:
        """Run all threads to the end; SimtError where the kernel is wrong."""
        before = -1
        for _ in self.run_block(self.function.body.block, np.full(self.count, True)):
            if self.events == before:
                raise SimtError(*self.missing)
            before = self.events
        if late := self.phases.received - self.phases.waited:
            block, phase = min(late)
            raise SimtError(None, f"block {block} ends, and nobody waited for phase {phase}")
        for value in self.values.values():
            if isinstance(value, Buffer):
                value.forget()
