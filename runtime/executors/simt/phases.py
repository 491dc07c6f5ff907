"""The phases in which warps arrive."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from timetile.runtime.executors.simt.memory import Ints


class Phases:
    """The phases in which the warps of each block arrive, with the warps' knowledge."""

    def __init__(self, team_warps: int):
        self.arrived: Counter[tuple[int, int]] = Counter()
        self.missing: Counter[tuple[int, int]] = Counter()
        """Expected bytes still missing, by block and phase."""
        nobody = np.zeros(team_warps, dtype=np.int64)
        self.known: dict[tuple[int, int], Ints] = defaultdict(nobody.copy)
        self.ready: dict[int, tuple[int, int]] = {}
        """For each block, the warp that made the arrivals ready, and the time."""
        self.received: set[tuple[int, int]] = set()
        self.waited: set[tuple[int, int]] = set()

    def arrive(self, block: int, phase: int, expected: int, known: Ints) -> None:
        """Let a warp of a block arrive, with its knowledge."""
        self.arrived[block, phase] += 1
        self.missing[block, phase] += expected
        self.known[block, phase] = np.maximum(self.known[block, phase], known)

    def receive(self, block: int, phase: int, count: int, known: Ints) -> None:
        """Note that bytes have come from a warp of another block."""
        self.received.add((block, phase))
        self.missing[block, phase] -= count
        self.known[block, phase] = np.maximum(self.known[block, phase], known)

    def is_complete(self, block: int, phase: int, warps: int) -> bool:
        """All warps have arrived, and all bytes have come."""
        return self.arrived[block, phase] == warps and self.missing[block, phase] == 0
