"""Instructions of the threads of a warp, a block or a cluster together: shuffles, votes, barriers,
arrivals.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation

from timetile.dialects import nvvm
from timetile.lowering.ptx.memory import address
from timetile.lowering.ptx.waits import MOST_SLEEPS, begin_wait, end_wait
from timetile.lowering.ptx.writer import Writer


def print_shuffle(w: Writer, op: nvvm.ShflSyncOp) -> None:
    """Print a shuffle."""
    value, offset, clamp, mask = (
        w.use(v) for v in (op.val, op.offset, op.mask_and_clamp, op.thread_mask)
    )
    kind = op.kind.value.data
    w.line(f"shfl.sync.{kind}.b32 {w.define(op.res)}, {value}, {offset}, {clamp}, {mask}")


def print_redux(w: Writer, op: nvvm.ReduxSyncOp) -> None:
    """Print a reduction."""
    kind = op.kind.value.data
    signed = "u32" if kind.startswith("u") else "b32" if kind in ("and", "or", "xor") else "s32"
    value, mask = w.use(op.val), w.use(op.mask_and_clamp)
    word = f"redux.sync.{kind.removeprefix('u')}.{signed}"
    w.line(f"{word} {w.define(op.res)}, {value}, {mask}")


def print_vote(w: Writer, op: nvvm.VoteSyncOp) -> None:
    """Print a vote."""
    predicate, mask = w.use(op.pred), w.use(op.mask)
    word = f"vote.sync.{op.kind.value.data}.pred"
    w.line(f"{word} {w.define(op.res)}, {predicate}, {mask}")


def print_barrier(w: Writer, op: nvvm.BarrierOp) -> None:
    """Print a barrier of a block."""
    w.line("bar.sync 0")


def print_warp_sync(w: Writer, op: nvvm.WarpSyncOp) -> None:
    """Print a synchronisation of a warp."""
    w.line(f"bar.warp.sync {w.use(op.mask)}")


def print_mbarrier_init(w: Writer, op: nvvm.MbarrierInitOp) -> None:
    """Print the initialisation of an mbarrier."""
    w.line(f"mbarrier.init.shared.b64 {address(w, op.addr)}, {w.use(op.count)}")


def print_mbarrier_arrive(w: Writer, op: nvvm.MbarrierArriveOp) -> None:
    """Print an arrival at an mbarrier."""
    w.line(f"mbarrier.arrive.shared.b64 {w.define(op.res)}, {address(w, op.addr)}")


def print_mbarrier_wait(w: Writer, op: nvvm.MbarrierTryWaitParityOp) -> None:
    """
    Print a wait as a loop: the instruction returns when the phase is complete, or after a while
    chosen by the hardware. (With a given time, the assembler adds a sleep, at a cost in registers.)
    """
    done = w.register(i1)
    where, phase = address(w, op.addr), w.use(op.phase)
    again, polls = begin_wait(w, "wait")
    w.line(f"mbarrier.try_wait.parity.shared.b64 {done}, {where}, {phase}")
    end_wait(w, again, polls, f"!{done}", "0", MOST_SLEEPS)


def print_mbarrier_expect(w: Writer, op: nvvm.MbarrierArriveExpectTxOp) -> None:
    """Print an arrival with bytes to expect."""
    state, where = w.register(i64), address(w, op.addr)
    count = w.use(op.txcount)
    w.line(f"mbarrier.arrive.expect_tx.shared.b64 {state}, {where}, {count}")


def print_mapa(w: Writer, op: nvvm.MapaOp) -> None:
    """Print an address in another block of the cluster."""
    w.emit("mapa.shared::cluster.u32", op.res, op.operands)


def print_cluster_arrive(w: Writer, op: nvvm.ClusterArriveOp) -> None:
    """Print an arrival at the barrier of a cluster."""
    w.line("barrier.cluster.arrive.aligned")


def print_cluster_wait(w: Writer, op: nvvm.ClusterWaitOp) -> None:
    """Print a wait at the barrier of a cluster."""
    w.line("barrier.cluster.wait.aligned")


def print_fence_mbarrier_init(w: Writer, op: nvvm.FenceMbarrierInitOp) -> None:
    """Print the fence after an initialisation of mbarriers."""
    w.line("fence.mbarrier_init.release.cluster")


THREADS: dict[type[Operation], Callable[..., None]] = {
    nvvm.ShflSyncOp: print_shuffle,
    nvvm.ReduxSyncOp: print_redux,
    nvvm.VoteSyncOp: print_vote,
    nvvm.BarrierOp: print_barrier,
    nvvm.WarpSyncOp: print_warp_sync,
    nvvm.MbarrierInitOp: print_mbarrier_init,
    nvvm.MbarrierArriveOp: print_mbarrier_arrive,
    nvvm.MbarrierArriveExpectTxOp: print_mbarrier_expect,
    nvvm.MbarrierTryWaitParityOp: print_mbarrier_wait,
    nvvm.MapaOp: print_mapa,
    nvvm.ClusterArriveOp: print_cluster_arrive,
    nvvm.ClusterWaitOp: print_cluster_wait,
    nvvm.FenceMbarrierInitOp: print_fence_mbarrier_init,
}
