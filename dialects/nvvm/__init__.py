"""The part of MLIR's nvvm dialect used by the kernels, with MLIR's names, operands and properties.

Operations print generically: MLIR reads the generic form in every release, whereas the pretty
syntax changes.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from timetile.dialects.nvvm.barriers import (
    ClusterArriveOp,
    ClusterWaitOp,
    FenceMbarrierInitOp,
    MapaOp,
    MbarrierArriveExpectTxOp,
    MbarrierArriveOp,
    MbarrierInitOp,
    MbarrierTryWaitParityOp,
)
from timetile.dialects.nvvm.copies import (
    CacheModifierAttr,
    CpAsyncCommitGroupOp,
    CpAsyncOp,
    CpAsyncWaitGroupOp,
)
from timetile.dialects.nvvm.warps import (
    BarrierOp,
    BlockIdXOp,
    ReduxKindAttr,
    ReduxSyncOp,
    ShflKindAttr,
    ShflSyncOp,
    SpecialRegisterOp,
    ThreadIdXOp,
    VoteKindAttr,
    VoteSyncOp,
    WarpSyncOp,
)

Nvvm = Dialect(
    "nvvm",
    [
        ThreadIdXOp,
        BlockIdXOp,
        BarrierOp,
        WarpSyncOp,
        ShflSyncOp,
        ReduxSyncOp,
        VoteSyncOp,
        CpAsyncOp,
        CpAsyncCommitGroupOp,
        CpAsyncWaitGroupOp,
        MbarrierInitOp,
        MbarrierArriveOp,
        MbarrierArriveExpectTxOp,
        MbarrierTryWaitParityOp,
        MapaOp,
        ClusterArriveOp,
        ClusterWaitOp,
        FenceMbarrierInitOp,
    ],
    [ShflKindAttr, ReduxKindAttr, VoteKindAttr, CacheModifierAttr],
)

__all__ = [
    "BarrierOp",
    "BlockIdXOp",
    "CacheModifierAttr",
    "ClusterArriveOp",
    "ClusterWaitOp",
    "CpAsyncCommitGroupOp",
    "CpAsyncOp",
    "CpAsyncWaitGroupOp",
    "FenceMbarrierInitOp",
    "MapaOp",
    "MbarrierArriveExpectTxOp",
    "MbarrierArriveOp",
    "MbarrierInitOp",
    "MbarrierTryWaitParityOp",
    "Nvvm",
    "ReduxKindAttr",
    "ReduxSyncOp",
    "ShflKindAttr",
    "ShflSyncOp",
    "SpecialRegisterOp",
    "ThreadIdXOp",
    "VoteKindAttr",
    "VoteSyncOp",
    "WarpSyncOp",
]
