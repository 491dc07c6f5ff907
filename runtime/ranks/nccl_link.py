"""
Rims between GPUs of several hosts by NCCL, from GPU memory to GPU memory.

NCCL's calls return at once, and no call of NCCL has a limit on waiting: the host polls, looks at
the other ranks meanwhile, and gives up all of NCCL's work once a rank has failed, died, or come to
no end in time.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timetile.runtime.ranks.peers import Peers, missing, waiting_limit
from timetile.runtime.ranks.sites import RimMessage

if TYPE_CHECKING:
    from timetile.runtime.ranks.gpu_sites import GpuSite

SUCCESS, IN_PROGRESS = 0, 7
"""Results of NCCL's calls."""

IMPATIENT_POLLS = 1000
"""Polls before the host sleeps between two."""

NAP_SECONDS = 50e-6


def nccl() -> Any:
    """NCCL's Python package. Raises ImportError or RuntimeError without it or without NCCL."""
    return importlib.import_module("nccl.core")


def nccl_calls() -> Any:
    """NCCL's calls on pointers: the package looks for the device of an array, and may err."""
    return importlib.import_module("nccl.bindings.nccl")


def why_no_nccl() -> str:
    """Why the process has no NCCL; empty where it has."""
    try:
        if nccl().get_version().libnccl is None:
            return "libnccl is not installed"
    except (ImportError, RuntimeError, OSError) as problem:
        return " ".join(f"{problem}".split()) or type(problem).__name__
    return ""


def new_name() -> str:
    """A name for ranks to meet, of one rank for all."""
    return bytes(nccl().get_unique_id()).hex()


class NcclLink:
    """
    Rims to and from other ranks; see `RimLink`. `name`: of `new_name`. Made by all ranks together.
    Raises RankError if another rank does not come, RuntimeError for an error of NCCL.
    """

    def __init__(self, site: GpuSite, peers: Peers, name: str):
        self.site, self.peers, core = site, peers, nccl()
        self.core = core
        self.rooms: dict[tuple[str, int], Any] = {}
        """Buffers for rims on the way, by direction and number."""
        self.sizes: dict[tuple[str, int], int] = {}
        self.comm: Any = None
        others = [rank for rank in range(peers.count) if rank != peers.rank]
        with site.device.current():
            config = core.NCCLConfig(blocking=False)
            unique = core.UniqueId.from_bytes(bytes.fromhex(name))
            self.comm = core.Communicator.init(peers.count, peers.rank, unique, config)
            self.settle(others)
            self.handle = nccl_calls().Comm(self.comm.ptr)

    def exchange(self, sent: Sequence[RimMessage], received: Sequence[RimMessage]) -> None:
        """Send and receive rims, behind all work of the stream, and wait for the last."""
        ranks = [message.rank for message in (*sent, *received)]
        if not ranks:
            return
        with self.site.device.current():
            pointers = [self.packed(number, message) for number, message in enumerate(sent)]
            rooms = [self.room_for(number, message) for number, message in enumerate(received)]
            with self.core.group():
                for message, pointer in zip(sent, pointers):
                    self.put(nccl_calls().send, pointer, message)
                for message, pointer in zip(received, rooms):
                    self.put(nccl_calls().recv, pointer, message)
            self.settle(ranks)
            for number, message in enumerate(received):
                if not message.copy.is_contiguous:
                    room = self.rooms["received", number]
                    self.site.pull(room, message.buffer, message.copy)
            mark = self.site.mark()
            self.wait(lambda: self.has_come(mark), ranks)

    def put(self, call: Any, pointer: int, message: RimMessage) -> None:
        """Put a call on the stream, for the bytes of a rim."""
        kind = int(self.core.UINT8)
        call(pointer, message.copy.bytes, kind, message.rank, self.handle, self.site.stream)

    def packed(self, number: int, message: RimMessage) -> int:
        """The pointer of a sent rim: in its field if the rim is one row, else copied to a room."""
        copy = message.copy
        if copy.is_contiguous:
            return message.buffer.pointer + copy.source.first
        room = self.room("sent", number, copy.bytes)
        self.site.pull(message.buffer, room, copy)
        return room.pointer

    def room_for(self, number: int, message: RimMessage) -> int:
        """Where a received rim comes: to its field if the rim is one row, else to a room."""
        copy = message.copy
        if copy.is_contiguous:
            return message.buffer.pointer + copy.target.first
        return self.room("received", number, copy.bytes).pointer

    def room(self, way: str, number: int, size: int) -> Any:
        """A buffer of at least some bytes, kept for the next exchange."""
        key = way, number
        if self.sizes.get(key, 0) < size:
            if key in self.rooms:
                self.site.free(self.rooms.pop(key))
            self.rooms[key] = self.site.new((size,), np.dtype(np.uint8))
            self.sizes[key] = size
        return self.rooms[key]

    def settle(self, ranks: Iterable[int]) -> None:
        """Wait until NCCL has begun what it was asked for."""
        self.wait(lambda: self.state() == SUCCESS, ranks)

    def state(self) -> int:
        """Success, or in progress. Raises RuntimeError for an error of NCCL."""
        found = int(self.comm.get_async_error())
        if found not in (SUCCESS, IN_PROGRESS):
            raise RuntimeError(f"NCCL reports: {self.comm.get_last_error() or found}")
        return found

    def has_come(self, mark: Any) -> bool:
        """Whether all work before a mark is done. Raises RuntimeError for an error of NCCL."""
        self.state()
        return self.site.device.has_passed(mark)

    def wait(self, is_done: Callable[[], bool], ranks: Iterable[int]) -> None:
        """Poll until work with some ranks is done; give all work up if it never will be."""
        seconds = waiting_limit()
        polls, end = 0, time.monotonic() + seconds
        try:
            while not is_done():
                polls += 1
                if polls <= IMPATIENT_POLLS:
                    continue
                self.peers.look()
                if time.monotonic() > end:
                    raise missing(set(ranks), self.peers.count, seconds)
                time.sleep(NAP_SECONDS)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """End all of NCCL's work, done or not."""
        if self.comm is not None:
            with self.site.device.current():
                self.comm.abort()
            self.comm = None

    def close(self) -> None:
        """Give back NCCL's resources, and rooms, after all work."""
        self.site.synchronize()
        self.abort()
        while self.rooms:
            self.site.free(self.rooms.popitem()[1])
