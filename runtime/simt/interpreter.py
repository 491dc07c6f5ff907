"""The SIMT interpreter: all threads of a launch at once, each value an array over the threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile_attributes import LANES
from timetile.lowering.tile_to_gpu.cells import is_arithmetic
from timetile.passes.diagnostics import refuse
from timetile.runtime.arithmetic import dtype_of, evaluate, join, split
from timetile.runtime.simt.errors import SimtError
from timetile.runtime.simt.memory import Buffer, Clocks, Ints, Mask
from timetile.runtime.simt.messages import Messages

Values = NDArray[Any]

Strand = Generator[None, None, list[Any]]
"""Threads that run the same code at the same time, until they wait for others."""


@dataclass
class PendingCopy:
    """Asynchronous copies that have been started and not waited for."""

    op: simt.CopyAsyncOp
    target: Buffer
    at: Ints
    cells: Values
    unset: Mask
    who: Ints
    group: Ints


@dataclass
class Peer:
    """A buffer of shared memory in other blocks of the cluster, by their ranks, one per thread."""

    buffer: Buffer
    rank: Ints


class Phases:
    """The phases in which the warps of each block arrive, and what they bring with them."""

    def __init__(self, blocks: int, team_warps: int):
        self.arrived: Counter[tuple[int, int]] = Counter()
        self.missing: Counter[tuple[int, int]] = Counter()
        """Bytes that are expected and have not come."""
        nobody = np.zeros(team_warps, dtype=np.int64)
        self.known: dict[tuple[int, int], Ints] = defaultdict(nobody.copy)
        self.ready: dict[int, tuple[int, int]] = {}
        """Per block, the warp that made its arrivals ready, and when."""
        self.received: set[tuple[int, int]] = set()
        self.waited: set[tuple[int, int]] = set()

    def arrive(self, block: int, phase: int, expected: int, known: Ints) -> None:
        """A warp of a block arrives, and brings what it knows."""
        self.arrived[block, phase] += 1
        self.missing[block, phase] += expected
        self.known[block, phase] = np.maximum(self.known[block, phase], known)

    def receive(self, block: int, phase: int, count: int, known: Ints) -> None:
        """Bytes have come from a warp of another block."""
        self.received.add((block, phase))
        self.missing[block, phase] -= count
        self.known[block, phase] = np.maximum(self.known[block, phase], known)

    def is_complete(self, block: int, phase: int, warps: int) -> bool:
        """All warps have arrived, and all bytes have come."""
        return self.arrived[block, phase] == warps and self.missing[block, phase] == 0


class Launch:
    """
    One launch of a per-thread function (a gpu.func) over `grid` blocks of `block` threads, of which
    `cluster` reach each other's shared memory, or `apart` hold a tile and exchange through global memory.
    """

    def __init__(
        self,
        function: gpu.FuncOp,
        grid: int,
        block: int,
        arguments: Sequence[Any],
        cluster: int = 1,
        apart: int = 1,
    ):
        self.function, self.grid, self.block, self.cluster = function, grid, block, cluster
        self.count = grid * block
        self.clocks = Clocks.of(grid, block, max(cluster, apart))
        self.messages: dict[Buffer, Messages] = {}
        self.gathered: Counter[tuple[int, int]] = Counter()
        """Warps of a team that have come to its barrier of a number."""
        self.passed = np.zeros(grid * (block // LANES), dtype=np.int64)
        """Barriers of its team that each warp has come to."""
        self.phases = Phases(grid, self.clocks.team_warps)
        self.values: dict[SSAValue, Any] = {}
        self.unset: dict[SSAValue, Mask | None] = {}
        self.events = 0
        """What some thread may have waited for, so far."""
        self.stuck: SimtError | None = None
        """What the threads that waited last wait for."""
        self.pending: list[PendingCopy] = []
        self.groups = np.zeros(self.count, dtype=np.int64)
        for argument, value in zip(function.body.block.args, arguments):
            if isinstance(value, Buffer):
                self.values[argument] = value
            else:
                self.values[argument] = np.asarray(value).astype(dtype_of(argument.type))

    def run(self) -> None:
        """Run all threads to the end; SimtError where the kernel is wrong."""
        before = -1
        for _ in self.run_block(self.function.body.block, np.full(self.count, True)):
            if self.events == before:
                assert self.stuck is not None
                raise self.stuck
            before = self.events
        if late := self.phases.received - self.phases.waited:
            block, phase = min(late)
            raise SimtError(None, f"block {block} ends, and nobody waited for phase {phase}")
        for value in self.values.values():
            if isinstance(value, Buffer):
                value.forget()

    def run_block(self, block: Block, active: Mask) -> Strand:
        """
        Run the operations of a block for the active threads; returns the terminator's operands. Yields
        where they all wait for what other threads do.
        """
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                return list(op.operands)
            if (waiting := WAITING.get(type(op))) is not None:
                yield from waiting(self, op, active)
                continue
            handler = HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op, active)
            elif is_arithmetic(op) or isinstance(op, simt.GuessOp):
                self.run_arithmetic(op)
            else:
                refuse(op, "the SIMT interpreter does not know it")
        return []

    # Values.

    def spread(self, value: SSAValue) -> Values:
        """A value as an array over the threads."""
        return np.broadcast_to(self.values[value], (self.count,))

    def unset_of(self, value: SSAValue) -> Mask | None:
        return self.unset.get(value)

    def define(self, result: SSAValue, value: Any, unset: Mask | None = None) -> None:
        self.values[result] = value
        self.unset[result] = unset if unset is not None and unset.any() else None

    def any_unset(self, op: Operation) -> Mask | None:
        """Where an operand is unset; None where none is."""
        masks = [m for v in op.operands if (m := self.unset_of(v)) is not None]
        return np.logical_or.reduce(masks) if masks else None

    def run_arithmetic(self, op: Operation) -> None:
        operands = [self.values[v] for v in op.operands]
        unset = self.any_unset(op)
        if isinstance(op, arith.SelectOp) and unset is not None:
            unset = self.select_unset(op)
        self.define(op.results[0], evaluate(op, operands), unset)

    def run_split(self, op: simt.SplitOp, active: Mask) -> None:
        low, high = split(self.values[op.value])
        self.define(op.low, low, self.unset_of(op.value))
        self.define(op.high, high, self.unset_of(op.value))

    def run_join(self, op: simt.JoinOp, active: Mask) -> None:
        joined = join(self.values[op.low], self.values[op.high], dtype_of(op.result.type))
        self.define(op.result, joined, self.any_unset(op))

    def select_unset(self, op: arith.SelectOp) -> Mask:
        """A selection is unset where its condition or what it takes is."""
        none = np.zeros(self.count, dtype=bool)
        masks = [self.unset_of(value) for value in op.operands]
        condition, a, b = (none if mask is None else mask for mask in masks)
        return condition | np.where(self.spread(op.cond), a, b)

    # Control flow.

    def run_for(self, op: scf.ForOp, active: Mask) -> Strand:
        index, *carried = op.body.block.args
        position = self.spread(op.lb).copy()
        high, step = self.spread(op.ub), self.spread(op.step)
        for argument, initial in zip(carried, op.iter_args):
            self.define(argument, self.spread(initial), self.unset_of(initial))
        running = active & (position < high)
        while running.any():
            self.define(index, position)
            results = yield from self.run_block(op.body.block, running)
            merged = [
                self.merge(running, (self.spread(new), self.unset_of(new)), self.known(argument))
                for argument, new in zip(carried, results)
            ]
            for argument, (value, unset) in zip(carried, merged):
                self.define(argument, value, unset)
            position = np.where(running, position + step, position)
            running = running & (position < high)
        for result, argument in zip(op.results, carried):
            self.define(result, *self.known(argument))
        return []

    def known(self, value: SSAValue) -> tuple[Values, Mask | None]:
        return self.spread(value), self.unset_of(value)

    def merge(
        self, mask: Mask, new: tuple[Values, Mask | None], old: tuple[Values, Mask | None]
    ) -> tuple[Values, Mask | None]:
        """`new` where the mask is on, `old` where it is off."""
        if mask.all():
            return new
        unset: Mask | None = None
        if new[1] is not None or old[1] is not None:
            none = np.zeros(self.count, dtype=bool)
            unset = np.where(
                mask, none if new[1] is None else new[1], none if old[1] is None else old[1]
            )
        return np.where(mask, new[0], old[0]), unset

    def run_if(self, op: scf.IfOp, active: Mask) -> Strand:
        """Both sides, in turns where one waits for the other."""
        condition = self.spread(op.cond)
        sides = {True: op.true_region.blocks, False: op.false_region.blocks}
        strands = {
            side: self.run_block(blocks[0], mask)
            for side, blocks in sides.items()
            if blocks and (mask := active & (condition == side)).any()
        }
        results = yield from self.run_strands(strands)
        taken, other = ([self.known(v) for v in results.get(side, [])] for side in (True, False))
        for k, result in enumerate(op.results):
            if not taken or not other:
                self.define(result, *(taken or other)[k])
            else:
                self.define(result, *self.merge(condition, taken[k], other[k]))
        return []

    def run_strands(
        self, strands: dict[bool, Strand]
    ) -> Generator[None, None, dict[bool, list[Any]]]:
        """Run strands in turns until all are done; yields where none can go on."""
        results: dict[bool, list[Any]] = {}
        while True:
            before = self.events
            for side in [side for side in strands if side not in results]:
                try:
                    next(strands[side])
                except StopIteration as done:
                    results[side] = done.value
                    self.events += 1
            if len(results) == len(strands):
                return results
            if self.events == before:
                yield

    def wait_until(self, ready: Callable[[], bool], op: Operation, missing: str) -> Strand:
        """Let other threads go on until what the active ones wait for is there."""
        while not ready():
            self.stuck = SimtError(op, missing)
            yield
        self.events += 1
        return []

    # Memory.

    def addresses(
        self, buffer: Buffer, index: SSAValue | None, offset: int, shared: bool
    ) -> tuple[Ints, Ints]:
        """Per thread, the cell inside its instance of the buffer, and the instance's first cell."""
        cell = np.full(self.count, offset, dtype=np.int64)
        if index is not None:
            cell = cell + self.spread(index).astype(np.int64)
        base = self.clocks.blocks * buffer.cells if shared else np.zeros_like(cell)
        return cell, base

    def selected(self, active: Mask, mask: SSAValue | None, op: Operation) -> Mask:
        """The threads that take part in an access."""
        if mask is None:
            return active
        unset = self.unset_of(mask)
        if unset is not None and (unset & active).any():
            raise SimtError(op, "its mask depends on an unset value")
        return active & self.spread(mask)

    def fetch(
        self, op: simt.LoadOp | simt.OverrideOp, active: Mask
    ) -> tuple[Mask, list[tuple[Values, Mask]]]:
        """The cells that an access reads, and for which threads."""
        buffer: Buffer = self.values[op.buffer]
        shared = address_space(op.buffer) == SHARED_SPACE
        taking = self.selected(active, op.mask, op)
        cell, base = self.addresses(buffer, op.index, op.offset.value.data, shared)
        who = self.clocks.threads[taking]
        results: list[tuple[Values, Mask]] = []
        for k in range(len(op.cell_types)):
            at = cell[taking] + k
            buffer.check_bounds(op, at)
            at = at + base[taking]
            buffer.note_read(op, at, who, self.clocks)
            value = np.zeros(self.count, dtype=buffer.data.dtype)
            unset = np.full(self.count, True)
            value[taking] = buffer.data[at]
            unset[taking] = buffer.unset[at]
            results.append((value, unset))
        width = len(op.cell_types)
        if (cell[taking] % width).any():
            raise SimtError(op, f"an access of {width} cells is not aligned")
        return taking, results

    def run_load(self, op: simt.LoadOp, active: Mask) -> None:
        _, cells = self.fetch(op, active)
        for result, (value, unset) in zip(op.cells, cells):
            self.define(result, value, unset)

    def run_override(self, op: simt.OverrideOp, active: Mask) -> None:
        taking, cells = self.fetch(op, active)
        for old, result, new in zip(op.cells, op.res, cells):
            self.define(result, *self.merge(taking, new, self.known(old)))

    def run_prefetch(self, op: simt.PrefetchOp, active: Mask) -> None:
        """Nothing changes, but the cell must be there."""
        buffer: Buffer = self.values[op.buffer]
        taking = self.selected(active, op.mask, op)
        cell, _ = self.addresses(buffer, op.index, op.offset.value.data, False)
        buffer.check_bounds(op, cell[taking])

    def run_store(self, op: simt.StoreOp, active: Mask) -> None:
        buffer: Buffer = self.values[op.buffer]
        shared = address_space(op.buffer) == SHARED_SPACE
        taking = self.selected(active, op.mask, op)
        cell, base = self.addresses(buffer, op.index, op.offset.value.data, shared)
        self.write(op, buffer, taking, cell, base, keep=not shared)

    def write(
        self, op: simt.WriteOp, buffer: Buffer, taking: Mask, cell: Ints, base: Ints, *, keep: bool
    ) -> None:
        """Write the cells of the threads that take part; what is to `keep` must have been set."""
        who = self.clocks.threads[taking]
        for k, stored in enumerate(op.cells):
            at = cell[taking] + k
            buffer.check_bounds(op, at)
            at = at + base[taking]
            buffer.note_write(op, at, who, self.clocks)
            unset = self.unset_of(stored)
            if unset is not None and keep and unset[taking].any():
                raise SimtError(
                    op, f"stores a value that was never set to cell {int(at[unset[taking]][0])}"
                )
            buffer.data[at] = self.spread(stored)[taking]
            buffer.unset[at] = False if unset is None else unset[taking]
        width = len(op.cells)
        if (cell[taking] % width).any():
            raise SimtError(op, f"an access of {width} cells is not aligned")

    def run_copy(self, op: simt.CopyAsyncOp, active: Mask) -> None:
        """Read now, arrive when waited for; meanwhile the target is unset."""
        target: Buffer = self.values[op.target]
        source: Buffer = self.values[op.source]
        reading = self.selected(active, op.mask, op)
        to, base = self.addresses(target, op.target_index, op.target_offset.value.data, True)
        of, _ = self.addresses(source, op.source_index, op.source_offset.value.data, False)
        width = op.bytes.value.data // target.data.itemsize
        if (to[active] % width).any() or (of[reading] % width).any():
            raise SimtError(op, f"a copy of {op.bytes.value.data} bytes is not aligned")
        for k in range(width):
            at = to[active] + k
            target.check_bounds(op, at)
            at = at + base[active]
            if target.awaited[at].any():
                cell = int(at[target.awaited[at]][0])
                raise SimtError(op, f"copies to cell {cell} while a copy to it is on its way")
            target.awaited[at] = True
            target.note_write(op, at, self.clocks.threads[active], self.clocks)
            source.check_bounds(op, of[reading] + k)
            source.note_read(op, of[reading] + k, self.clocks.threads[reading], self.clocks)
            cells = np.zeros(self.count, dtype=target.data.dtype)
            unset = np.full(self.count, True)
            cells[reading] = source.data[of[reading] + k]
            unset[reading] = source.unset[of[reading] + k]
            target.unset[at] = True
            self.pending.append(
                PendingCopy(
                    op,
                    target,
                    at,
                    cells[active],
                    unset[active],
                    self.clocks.threads[active],
                    self.groups[active],
                )
            )

    def run_commit(self, op: Operation, active: Mask) -> None:
        self.groups[active] += 1

    def run_wait(self, op: nvvm.CpAsyncWaitGroupOp, active: Mask) -> None:
        """The copies of all groups but the last `n` arrive, for the threads that wait."""
        n = op.n.value.data
        left: list[PendingCopy] = []
        for copy in self.pending:
            arrived = active[copy.who] & (copy.group < self.groups[copy.who] - n)
            at = copy.at[arrived]
            copy.target.data[at] = copy.cells[arrived]
            copy.target.unset[at] = copy.unset[arrived]
            copy.target.awaited[at] = False
            copy.target.note_arrival(copy.op, at, copy.who[arrived], self.clocks)
            if not arrived.all():
                rest = ~arrived
                left.append(
                    PendingCopy(
                        copy.op,
                        copy.target,
                        copy.at[rest],
                        copy.cells[rest],
                        copy.unset[rest],
                        copy.who[rest],
                        copy.group[rest],
                    )
                )
        self.pending = left

    def run_shared(self, op: simt.SharedOp, active: Mask) -> None:
        """The slice is there from the start of the launch, though code that runs again names it again."""
        if op.result in self.values:
            return
        kind = op.result.type
        assert isinstance(kind, MemRefType)
        (cells,) = kind.get_shape()
        data = np.zeros(self.grid * cells, dtype=dtype_of(kind.element_type))
        self.values[op.result] = Buffer(data, self.grid, unset=True)

    # Threads together.

    def check_whole_warps(self, op: Operation, active: Mask) -> None:
        """All lanes of a warp take part, or none."""
        waiting = active.reshape(-1, LANES)
        if (waiting.any(axis=1) != waiting.all(axis=1)).any():
            raise SimtError(op, "only some lanes of a warp reach it")

    def run_shuffle(self, op: simt.ShuffleOp, active: Mask) -> None:
        self.check_whole_warps(op, active)
        delta = op.delta.value.data
        source = self.clocks.threads + delta
        inside = (source // LANES == self.clocks.warps) & (source >= 0)
        source = np.where(inside, source, self.clocks.threads)
        unset = ~inside
        old = self.unset_of(op.value)
        if old is not None:
            unset = unset | old[source]
        self.define(op.result, self.spread(op.value)[source], unset)

    def run_uniform(self, op: simt.UniformOp, active: Mask) -> None:
        self.check_whole_warps(op, active)
        value = self.spread(op.value)
        first = value.reshape(-1, LANES)[:, :1]
        if ((value.reshape(-1, LANES) != first) & active.reshape(-1, LANES)).any():
            raise SimtError(op, "the lanes of a warp differ")
        self.define(op.result, value)

    def run_all(self, op: simt.AllOp, active: Mask) -> None:
        """Lanes whose condition depends on what nothing has set vote, too, as they do on a GPU."""
        self.check_whole_warps(op, active)
        together = self.spread(op.value).reshape(-1, LANES).all(axis=1)
        self.define(op.result, np.repeat(together, LANES))

    def run_barrier(self, op: Operation, active: Mask) -> None:
        waiting = active.reshape(self.grid, self.block)
        if (waiting.any(axis=1) != waiting.all(axis=1)).any():
            raise SimtError(op, "only some threads of a block reach it")
        self.clocks.meet(self.whole_warps(op, active), self.clocks.block_warps)
        self.clocks.warp_syncs[active] += 1

    def run_expect(self, op: simt.ExpectOp, active: Mask) -> None:
        """Phases are counted beside the words: what matters is who knows that they are ready."""
        if op.warps.value.data * LANES != self.block:
            raise SimtError(op, f"a block has {self.block // LANES} warps")
        for warp in np.unique(self.clocks.warps[active]):
            time = self.clocks.times(np.array([warp]))[0]
            self.phases.ready[warp // self.clocks.block_warps] = (warp, time)

    def check_ready(self, op: Operation, warp: int, block: int) -> None:
        """A warp knows that a block's arrivals are ready for it."""
        made = self.phases.ready.get(block)
        known = made is not None and (
            made[0] == warp or self.clocks.known[warp, made[0] % self.clocks.team_warps] > made[1]
        )
        if not known:
            raise SimtError(op, "nothing before it sees to it that the arrivals are ready")

    def run_arrive(self, op: simt.ArriveOp, active: Mask) -> None:
        warps = self.whole_warps(op, active)
        for warp in warps:
            self.check_ready(op, warp, warp // self.clocks.block_warps)
        phase = self.spread(op.phase)[warps * LANES]
        expected = np.zeros_like(warps)
        if op.bytes is not None:
            per_warp = self.spread(op.bytes).astype(np.int64).reshape(-1, LANES).sum(axis=1)
            expected = per_warp[warps]
        self.clocks.tick(warps)
        self.events += 1
        for warp, number, count in zip(warps, phase, expected):
            self.phases.arrive(
                warp // self.clocks.block_warps, number, count, self.clocks.known[warp]
            )

    def run_wait_arrivals(self, op: simt.WaitOp, active: Mask) -> Strand:
        warps = self.whole_warps(op, active)
        numbers = self.spread(op.phase)[warps * LANES]
        for warp, number in zip(warps, numbers):
            block = warp // self.clocks.block_warps
            self.check_ready(op, warp, block)
            self.phases.waited.add((block, number))
            if number < 0:
                continue
            complete = partial(self.phases.is_complete, block, number, self.clocks.block_warps)
            missing = f"waits for phase {number}, which is not complete"
            yield from self.wait_until(complete, op, missing)
            if self.phases.is_complete(block, number + 1, self.clocks.block_warps):
                raise SimtError(op, f"waits for phase {number}, and the next one is complete")
            self.clocks.acquire(warp, self.phases.known[block, number])
        return []

    def run_peer(self, op: simt.PeerOp, active: Mask) -> None:
        """The same buffer, in another block: every thread has its own answer."""
        self.values[op.result] = Peer(self.values[op.buffer], self.spread(op.rank))

    def run_send(self, op: simt.SendOp, active: Mask) -> None:
        """Cells arrive at once; who waits for the phase knows what the sender knew."""
        peer: Peer = self.values[op.buffer]
        buffer, taking = peer.buffer, self.selected(active, op.mask, op)
        cell, _ = self.addresses(buffer, op.index, op.offset.value.data, False)
        block = self.clocks.blocks // self.cluster * self.cluster + peer.rank
        self.write(op, buffer, taking, cell, block * buffer.cells, keep=False)
        phase, size = self.spread(op.phase), len(op.cells) * buffer.data.itemsize
        warps, lanes = np.unique(self.clocks.warps[taking], return_counts=True)
        self.clocks.tick_send(warps)
        self.events += 1
        for warp, count in zip(warps, lanes):
            thread = warp * LANES + int(np.argmax(taking[warp * LANES : (warp + 1) * LANES]))
            known = self.clocks.known[warp]
            self.check_ready(op, warp, int(block[thread]))
            self.phases.receive(int(block[thread]), int(phase[thread]), count * size, known)

    def run_cluster_barrier(self, op: Operation, active: Mask) -> Strand:
        yield from self.gather(op, active, "only some threads of a cluster reach it")
        return []

    def gather(self, op: Operation, active: Mask, missing: str) -> Strand:
        """The active warps wait for the others of their teams, which may come to it elsewhere."""
        warps, team = self.whole_warps(op, active), self.clocks.team_warps
        keys = [(int(warp) // team, int(self.passed[warp])) for warp in warps]
        self.passed[warps] += 1
        self.gathered.update(keys)
        self.events += 1
        for key in dict.fromkeys(keys):
            yield from self.wait_until(partial(self.all_gathered, key), op, missing)
            if self.gathered[key] == team:
                # The first to go on sees to it that all know each other.
                self.gathered[key] += 1
                self.clocks.meet(np.arange(key[0] * team, (key[0] + 1) * team), team)
        self.clocks.warp_syncs[active] += 1
        return []

    def all_gathered(self, key: tuple[int, int]) -> bool:
        """All warps of a team have come to its barrier of a number."""
        return self.gathered[key] >= self.clocks.team_warps

    def run_tile_barrier(self, op: simt.TileBarrierOp, active: Mask) -> Strand:
        """A barrier of the blocks that hold a tile: as numbered, all of them come to each."""
        warps = self.whole_warps(op, active)
        number = self.spread(op.number)[warps * LANES]
        if (number != self.passed[warps] + 1).any():
            raise SimtError(op, "the barriers of a tile are not numbered one after the other")
        if op.blocks.value.data * self.clocks.block_warps != self.clocks.team_warps:
            raise SimtError(op, f"a tile has {self.clocks.team_warps} warps")
        yield from self.gather(op, active, "only some blocks of a tile reach it")
        return []

    def message_words(self, op: simt.PostOp | simt.TakeOp, k: int, active: Mask) -> Ints:
        """Where cell k of a message begins, for the active threads."""
        at = np.full(self.count, op.places[k], dtype=np.int64)
        if op.index is not None:
            at = at + self.spread(op.index).astype(np.int64)
        return at[active]

    def messages_in(self, op: simt.PostOp | simt.TakeOp) -> Messages:
        """What has been said in a buffer in this launch."""
        buffer: Buffer = self.values[op.buffer]
        if buffer not in self.messages:
            self.messages[buffer] = Messages(buffer.cells, self.clocks)
        return self.messages[buffer]

    def run_post(self, op: simt.PostOp, active: Mask) -> None:
        if op.number is None:
            self.post_plainly(op, active)
            return
        messages, who = self.messages_in(op), self.clocks.threads[active]
        number = self.spread(op.number)[active]
        for k, cell in enumerate(op.cells):
            unset = self.unset_of(cell)
            at, own = self.message_words(op, k, active), self.spread(cell)[active]
            messages.post(op, at, who, number, own, None if unset is None else unset[active])
        self.events += 1

    def post_plainly(self, op: simt.PostOp, active: Mask) -> None:
        """Words of a cell each, which barriers order."""
        buffer, who = self.values[op.buffer], self.clocks.threads[active]
        for k, cell in enumerate(op.cells):
            at, own = self.message_words(op, k, active), self.spread(cell)[active]
            buffer.check_bounds(op, at)
            buffer.note_write(op, at, who, self.clocks)
            buffer.data[at] = own.view(f"i{own.dtype.itemsize}")
            unset = self.unset_of(cell)
            buffer.unset[at] = False if unset is None else unset[active]

    def take_plainly(self, op: simt.TakeOp, active: Mask) -> None:
        """The same words."""
        buffer, who = self.values[op.buffer], self.clocks.threads[active]
        for k, result in enumerate(op.cells):
            at = self.message_words(op, k, active)
            buffer.check_bounds(op, at)
            buffer.note_read(op, at, who, self.clocks)
            value = np.zeros(self.count, dtype=dtype_of(result.type))
            unset = np.full(self.count, True)
            bits = buffer.data[at].astype(f"i{value.dtype.itemsize}")
            value[active], unset[active] = bits.view(value.dtype), buffer.unset[at]
            self.define(result, value, unset)

    def run_take(self, op: simt.TakeOp, active: Mask) -> Strand:
        self.check_whole_warps(op, active)
        if op.number is None:
            self.take_plainly(op, active)
            return []
        messages, who = self.messages_in(op), self.clocks.threads[active]
        number = self.spread(op.number)[active]
        places = [self.message_words(op, k, active) for k in range(len(op.cells))]
        words = simt.CELL_BYTES[op.cell_types[0]] // 4
        yield from self.wait_until(
            lambda: all(messages.have_come(op, at, number, words) for at in places),
            op,
            f"waits for message {int(number.max())}, which nobody sends",
        )
        for result, at in zip(op.cells, places):
            value = np.zeros(self.count, dtype=dtype_of(result.type))
            unset = np.full(self.count, True)
            cells = np.zeros(who.size, dtype=value.dtype)
            unset[active] = messages.take(at, who, cells)
            value[active] = cells
            self.define(result, value, unset)
        return []

    def whole_warps(self, op: Operation, active: Mask) -> Ints:
        """The warps that are active, with all their lanes."""
        self.check_whole_warps(op, active)
        return np.flatnonzero(active.reshape(-1, LANES)[:, 0])

    def run_warp_sync(self, op: Operation, active: Mask) -> None:
        self.check_whole_warps(op, active)
        self.clocks.warp_syncs[active] += 1

    def run_thread_id(self, op: gpu.ThreadIdOp, active: Mask) -> None:
        self.define(op.result, self.clocks.threads % self.block)

    def run_block_id(self, op: gpu.BlockIdOp, active: Mask) -> None:
        self.define(op.result, self.clocks.blocks)

    def run_unset(self, op: simt.UnsetOp, active: Mask) -> None:
        zero = np.zeros(self.count, dtype=dtype_of(op.result.type))
        self.define(op.result, zero, np.full(self.count, True))

    def ignore(self, op: Operation, active: Mask) -> None:
        """Nothing happens."""


WAITING: dict[type[Operation], Callable[..., Strand]] = {
    scf.ForOp: Launch.run_for,
    scf.IfOp: Launch.run_if,
    simt.WaitOp: Launch.run_wait_arrivals,
    simt.ClusterBarrierOp: Launch.run_cluster_barrier,
    simt.TileBarrierOp: Launch.run_tile_barrier,
    simt.TakeOp: Launch.run_take,
}
"""What may let other threads go on first."""


HANDLERS: dict[type[Operation], Callable[..., None]] = {
    simt.LoadOp: Launch.run_load,
    simt.OverrideOp: Launch.run_override,
    simt.PrefetchOp: Launch.run_prefetch,
    simt.StoreOp: Launch.run_store,
    simt.CopyAsyncOp: Launch.run_copy,
    simt.SharedOp: Launch.run_shared,
    simt.ShuffleOp: Launch.run_shuffle,
    simt.UniformOp: Launch.run_uniform,
    simt.AllOp: Launch.run_all,
    simt.UnsetOp: Launch.run_unset,
    simt.PhaseOp: Launch.ignore,
    simt.SplitOp: Launch.run_split,
    simt.JoinOp: Launch.run_join,
    nvvm.CpAsyncCommitGroupOp: Launch.run_commit,
    nvvm.CpAsyncWaitGroupOp: Launch.run_wait,
    nvvm.WarpSyncOp: Launch.run_warp_sync,
    simt.ExpectOp: Launch.run_expect,
    simt.ArriveOp: Launch.run_arrive,
    simt.PeerOp: Launch.run_peer,
    simt.SendOp: Launch.run_send,
    simt.PostOp: Launch.run_post,
    gpu.BarrierOp: Launch.run_barrier,
    gpu.ThreadIdOp: Launch.run_thread_id,
    gpu.BlockIdOp: Launch.run_block_id,
    gpu.ReturnOp: Launch.ignore,
}
