"""The state of a launch: the values of every thread, and the threads' knowledge of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import gpu, scf
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects import simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import LANES
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import (
    Buffer,
    Clocks,
    Ints,
    Mask,
    PendingCopy,
    Values,
    some,
)
from timetile.runtime.executors.simt.messages import Messages
from timetile.runtime.executors.simt.phases import Phases

ThreadStrand = Generator[None, None, list[Any]]
"""Threads running equal code at a time, until a wait for others."""

SimtHandler = Callable[..., None]
"""Runs an operation for the active threads of a machine."""

Waiter = Callable[..., ThreadStrand]
"""A handler of an operation at which threads may wait for others."""

RunOperation = Callable[..., ThreadStrand | None]
"""A handler or a waiter: called with a machine, an operation and the mask of active threads."""

BlockCode = dict[Block, list[tuple[Operation, RunOperation]]]
"""How the operations of each block run, found once: loops run blocks many times."""


@dataclass(frozen=True)
class ThreadAccess:
    """
    The fixed parts of an access to a buffer: cells counted from an index, and the mask of threads.
    """

    buffer: SSAValue
    shared: bool
    index: SSAValue | None
    offset: int
    mask: SSAValue | None
    width: int
    """Consecutive cells."""

    @staticmethod
    def of(op: simt.LoadOp | simt.StoreOp | simt.OverrideOp) -> ThreadAccess:
        """An operation's."""
        shared = address_space(op.buffer) == SHARED_SPACE
        width = len(op.cell_types)
        return ThreadAccess(op.buffer, shared, op.index, op.offset.value.data, op.mask, width)


class Machine(ABC):
    """
    All threads of a launch of a per-thread function (a gpu.func): `grid` blocks of `block` threads.
    `cluster` blocks reach each other's shared memory. `blocks_per_tile` blocks hold a tile and
    exchange through global memory.
    """

    def __init__(
        self,
        function: gpu.FuncOp,
        grid: int,
        block: int,
        arguments: Sequence[Any],
        cluster: int = 1,
        blocks_per_tile: int = 1,
        code: BlockCode | None = None,
    ):
        """`code`: the decoded blocks of the function, for launches of a function again."""
        self.function, self.grid, self.block, self.cluster = function, grid, block, cluster
        self.count = grid * block
        self.shape = (self.count,)
        self.clocks = Clocks.of(grid, block, max(cluster, blocks_per_tile))
        self.messages: dict[Buffer, Messages] = {}
        self.numbered: dict[Buffer, set[int]] = {}
        """The blocks that know the number of the launch, by the buffer of its words."""
        self.ended: set[Buffer] = set()
        """The buffers whose launch has ended."""
        self.gathered: Counter[tuple[int, int]] = Counter()
        """The warps of a team at each barrier, by team and number."""
        self.passed = np.zeros(grid * (block // LANES), dtype=np.int64)
        """Barriers of its team passed by each warp."""
        self.phases = Phases(self.clocks.team_warps)
        self.values: dict[SSAValue, Any] = {}
        self.unset: dict[SSAValue, Mask | None] = {}
        self.code: BlockCode = {} if code is None else code
        self.accesses: dict[Operation, ThreadAccess] = {}
        """The fixed parts of accesses, kept as loops run operations many times."""
        self.events = 0
        """The number of events, so far, for which a thread may have waited."""
        self.missing: tuple[Operation | None, str] = (None, "no thread goes on")
        """The operation and the missing event of the threads that waited last."""
        self.pending: list[PendingCopy] = []
        self.groups = np.zeros(self.count, dtype=np.int64)
        for argument, value in zip(function.body.block.args, arguments):
            if isinstance(value, Buffer):
                self.values[argument] = value
            else:
                self.values[argument] = np.asarray(value).astype(dtype_of(argument.type))

    def run_block(self, block: Block, active: Mask) -> ThreadStrand:
        """
        Run the operations of a block for the active threads, and return the terminator's operands.
        Yields when all active threads wait for other threads.
        """
        code = self.code.get(block)
        if code is None:
            ops = (op for op in block.ops if not isinstance(op, scf.YieldOp))
            code = self.code[block] = [(op, self.run_of(op)) for op in ops]
        for op, run in code:
            if (strand := run(self, op, active)) is not None:
                yield from strand
        last = block.last_op
        return list(last.operands) if isinstance(last, scf.YieldOp) else []

    @abstractmethod
    def run_of(self, op: Operation) -> RunOperation:
        """How an operation runs. Raises CompileError for an unknown operation."""

    def spread(self, value: SSAValue) -> Values:
        """A value as an array over the threads."""
        known = self.values[value]
        return known if np.shape(known) == self.shape else np.broadcast_to(known, self.shape)

    def unset_of(self, value: SSAValue) -> Mask | None:
        """The threads in which a value is unset; None if set in all."""
        return self.unset.get(value)

    def define(self, result: SSAValue, value: Any, unset: Mask | None = None) -> None:
        """Set the value of a result, and the threads in which the value is unset."""
        self.values[result] = value
        self.unset[result] = unset if unset is not None and some(unset) else None

    def any_unset(self, operands: Iterable[SSAValue]) -> Mask | None:
        """The lanes in which some value is unset; None if all are set."""
        found: Mask | None = None
        for operand in operands:
            mask = self.unset.get(operand)
            if mask is not None and mask is not found:
                found = mask if found is None else found | mask
        return found

    def known(self, value: SSAValue) -> tuple[Values, Mask | None]:
        """A value for each thread, and the threads in which the value is unset."""
        return self.spread(value), self.unset_of(value)

    def merge(
        self, mask: Mask, new: tuple[Values, Mask | None], old: tuple[Values, Mask | None]
    ) -> tuple[Values, Mask | None]:
        """`new` in threads of the mask, `old` in other threads."""
        if not some(~mask):
            return new
        unset: Mask | None = None
        if new[1] is not None or old[1] is not None:
            none = np.zeros(self.count, dtype=bool)
            unset = np.where(
                mask, none if new[1] is None else new[1], none if old[1] is None else old[1]
            )
        return np.where(mask, new[0], old[0]), unset

    def access_of(self, op: simt.LoadOp | simt.StoreOp | simt.OverrideOp) -> ThreadAccess:
        """The fixed parts of an access."""
        if op not in self.accesses:
            self.accesses[op] = ThreadAccess.of(op)
        return self.accesses[op]

    def addresses(
        self, buffer: Buffer, index: SSAValue | None, offset: int, shared: bool
    ) -> tuple[Ints, Ints]:
        """
        For each thread, the cell inside the thread's instance of the buffer, and the instance's
        first cell.
        """
        if index is None:
            cell = np.full(self.count, offset, dtype=np.int64)
        else:
            cell = np.add(self.spread(index), offset, dtype=np.int64)
        return cell, self.clocks.blocks * (buffer.cells if shared else 0)

    def selected(self, active: Mask, mask: SSAValue | None, op: Operation) -> Mask:
        """The threads taking part in an access."""
        if mask is None:
            return active
        unset = self.unset_of(mask)
        if unset is not None and some(unset & active):
            raise SimtError(op, "its mask depends on an unset value")
        return active & self.spread(mask)

    def spread_over(self, who: Mask, cells: Values, unset: Mask) -> tuple[Values, Mask]:
        """The cells of some threads as an array over all; the others have none."""
        values = np.zeros(self.count, dtype=cells.dtype)
        missing = np.full(self.count, True)
        values[who], missing[who] = cells, unset
        return values, missing

    def check_whole_warps(self, op: Operation, active: Mask) -> None:
        """All lanes of a warp take part, or none."""
        waiting = active.reshape(-1, LANES)
        if some(waiting.any(axis=1) != waiting.all(axis=1)):
            raise SimtError(op, "only some lanes of a warp reach it")

    def whole_warps(self, op: Operation, active: Mask) -> Ints:
        """The active warps. Raises SimtError for a warp with some active lanes only."""
        self.check_whole_warps(op, active)
        return np.flatnonzero(active.reshape(-1, LANES)[:, 0])

    def wait_until(self, ready: Callable[[], bool], op: Operation, missing: str) -> ThreadStrand:
        """Let other threads go on until the awaited event."""
        while not ready():
            self.missing = op, missing
            yield
        self.events += 1
        return []
