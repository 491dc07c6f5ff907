"""The simt dialect: operations of a thread missing from upstream's gpu dialect.

The dialect adds masked accesses of several cells, lane shuffles, asynchronous copies and waits.
Each is a single operation for the SIMT interpreter.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from timetile.dialects.simt.accesses import (
    MAY_BE_UNSET,
    LoadOp,
    OverrideOp,
    PrefetchOp,
    StoreOp,
    WriteOp,
)
from timetile.dialects.simt.arrivals import (
    ArriveOp,
    ClusterBarrierOp,
    ExpectOp,
    PeerOp,
    SendOp,
    WaitOp,
)
from timetile.dialects.simt.buffers import (
    CLUSTER_SPACE,
    GLOBAL_SPACE,
    SHARED_SPACE,
    OrderingEffects,
    address_space,
    buffer_element,
    buffer_type,
    cell_count,
)
from timetile.dialects.simt.copies import CopyAsyncOp, SharedOp
from timetile.dialects.simt.messages import (
    EndLaunchOp,
    LaunchesEndedOp,
    PostOp,
    TakeOp,
    TileBarrierOp,
)
from timetile.dialects.simt.threads import (
    AllOp,
    FmaUpOp,
    GuessOp,
    JoinOp,
    MarkOp,
    PickOp,
    ReciprocalOp,
    ReciprocalRootOp,
    ShuffleOp,
    SplitOp,
    UniformOp,
    UnsetOp,
)

Simt = Dialect(
    "simt",
    [
        LoadOp,
        StoreOp,
        OverrideOp,
        PrefetchOp,
        CopyAsyncOp,
        ShuffleOp,
        PickOp,
        UniformOp,
        AllOp,
        SharedOp,
        UnsetOp,
        MarkOp,
        ExpectOp,
        ArriveOp,
        WaitOp,
        ClusterBarrierOp,
        PeerOp,
        SendOp,
        PostOp,
        TakeOp,
        TileBarrierOp,
        LaunchesEndedOp,
        EndLaunchOp,
        SplitOp,
        JoinOp,
        ReciprocalOp,
        ReciprocalRootOp,
        FmaUpOp,
    ],
    [],
)

__all__ = [
    "CLUSTER_SPACE",
    "GLOBAL_SPACE",
    "MAY_BE_UNSET",
    "SHARED_SPACE",
    "AllOp",
    "ArriveOp",
    "ClusterBarrierOp",
    "CopyAsyncOp",
    "EndLaunchOp",
    "ExpectOp",
    "FmaUpOp",
    "GuessOp",
    "JoinOp",
    "LaunchesEndedOp",
    "LoadOp",
    "MarkOp",
    "OrderingEffects",
    "OverrideOp",
    "PeerOp",
    "PickOp",
    "PostOp",
    "PrefetchOp",
    "ReciprocalOp",
    "ReciprocalRootOp",
    "SendOp",
    "SharedOp",
    "ShuffleOp",
    "Simt",
    "SplitOp",
    "StoreOp",
    "TakeOp",
    "TileBarrierOp",
    "UniformOp",
    "UnsetOp",
    "WaitOp",
    "WriteOp",
    "address_space",
    "buffer_element",
    "buffer_type",
    "cell_count",
]
