"""
Buffers of ranks of one host, read in place by other ranks.

A rank gives others the handle of a buffer, some bytes in a message, and others open the buffer:
rims then travel from GPU to GPU, without the memory of the host. Which ranks can open each other's
buffers is tried once, by all ranks. Buffers stay open up to the end of a run, where all ranks close
them and wait for each other: no rank frees memory that another has open.
"""

from __future__ import annotations

from typing import Any

from timetile.runtime.ranks.peers import Peers, words_of_all
from timetile.runtime.ranks.sites import Site


class SharedBuffers:
    """The opened buffers of other ranks. `site`: of the own rank."""

    def __init__(self, site: Site, peers: Peers):
        self.site, self.peers = site, peers
        self.opened: dict[bytes, Any] = {}
        self.near: frozenset[int] | None = None
        """The ranks that share buffers with this one both ways; None before the first try."""

    def near_ranks(self, buffer: Any) -> frozenset[int]:
        """The ranks with buffers in reach, tried with a buffer of each rank the first time."""
        if self.near is None:
            self.near = self.tried(buffer)
        return self.near

    def tried(self, buffer: Any) -> frozenset[int]:
        """The ranks with buffers in reach. All ranks call."""
        own = self.site.shared(buffer)
        said = words_of_all(self.peers, f"{self.site.host} {own.hex()}")
        reached: list[int] = []
        for rank, word in enumerate(said):
            host, _, handle = word.rpartition(" ")
            if rank == self.peers.rank or host != self.site.host or not handle:
                continue
            found = self.site.opened(bytes.fromhex(handle))
            if found is not None:
                self.site.close_opened(found)
                reached.append(rank)
        answers = words_of_all(self.peers, " ".join(map(str, reached)))
        return frozenset(rank for rank in reached if str(self.peers.rank) in answers[rank].split())

    def open(self, handle: bytes) -> Any:
        """A buffer of another rank. Raises RuntimeError if it is out of reach by now."""
        if handle not in self.opened:
            found = self.site.opened(handle)
            if found is None:
                raise RuntimeError("the memory of another rank's GPU is out of reach")
            self.opened[handle] = found
        return self.opened[handle]

    def end_run(self) -> None:
        """Close all buffers, and wait until all ranks have. All ranks call."""
        if self.near is None:
            return
        self.site.synchronize()
        while self.opened:
            self.site.close_opened(self.opened.popitem()[1])
        words_of_all(self.peers, "closed")
