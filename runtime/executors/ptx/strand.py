"""
Strands: warps of one number in all blocks of a launch without waits for each other, run together on
a common way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from timetile.dialects.tile import LANES
from timetile.runtime.executors.ptx.arithmetic import KINDS, Array
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Ints, Mask, some

if TYPE_CHECKING:
    from timetile.runtime.executors.ptx.memory import PtxMemory
    from timetile.runtime.executors.ptx.waiting import Barriers


class Surroundings(Protocol):
    """The parts of a launch shared by all lanes."""

    parameters: dict[str, Array]
    memory: PtxMemory
    barriers: Barriers


class Strand:
    """
    The lanes of a warp of some blocks: their registers and places in the code. Registers are bits:
    an array for each name, of the type written last.
    """

    def __init__(self, launch: Surroundings, number: int, warp: int, blocks: Ints, block: int):
        self.launch, self.number, self.held = launch, number, blocks
        lane = np.arange(blocks.size * LANES, dtype=np.int64)
        self.lanes = lane.size
        self.blocks = blocks[lane // LANES]
        self.threads = self.blocks * block + warp * LANES + lane % LANES
        self.warp, self.block_warps = warp, block // LANES
        self.shape = (self.lanes,)
        self.at = np.zeros(self.lanes, dtype=np.int64)
        """The next instruction of each lane."""
        self.blocked = np.zeros(self.lanes, dtype=bool)
        """Whether the lane waits at a barrier."""
        self.asleep = np.zeros(self.lanes, dtype=bool)
        """Whether the lane has looked in vain."""
        self.ended = np.zeros(self.lanes, dtype=bool)
        self.values: dict[str, Array] = {
            "%tid.x": (self.threads % block).astype(np.uint32),
            "%ctaid.x": self.blocks.astype(np.uint32),
        }
        self.unset: dict[str, Mask] = {}
        """For each register with unset lanes, the mask of unset lanes."""
        self.committed = np.zeros(self.lanes, dtype=np.int64)
        """Groups of asynchronous copies closed by each lane."""

    def read(self, name: str, kind: np.dtype[Any]) -> Array:
        """A register as an array of a type of equal size."""
        value = self.values.get(name)
        if value is None:
            value = self.values[name] = np.zeros(self.lanes, dtype=kind)
            self.unset[name] = np.full(self.lanes, True)
        # Comparing types of NumPy takes long, and most registers have the very type.
        return value if value.dtype is kind or value.dtype == kind else value.view(kind)

    def any_unset(self, names: tuple[str, ...]) -> Mask | None:
        """The lanes in which some register is unset; None if all are set."""
        found: Mask | None = None
        if self.unset:
            for name in names:
                mask = self.unset.get(name)
                if mask is not None and mask is not found:
                    found = mask if found is None else found | mask
        return found

    def write(self, name: str, value: Array, mask: Mask | None, unset: Mask | None = None) -> None:
        """Set a register in the lanes of a mask, or in all."""
        if value.shape != self.shape:
            value = np.broadcast_to(value, self.shape)
        if mask is None:
            self.values[name] = value
            if unset is not None and some(unset):
                self.unset[name] = unset
            elif self.unset:
                self.unset.pop(name, None)
            return
        known = self.values.get(name)
        if known is not None and known.itemsize != value.itemsize:
            # Arguments of calls have one name in all calls, and any width.
            del self.values[name]
        self.values[name] = np.where(mask, value, self.read(name, value.dtype))
        left = self.unset.get(name)
        if left is None and unset is None:
            return
        new = np.zeros(self.lanes, dtype=bool) if left is None else left & ~mask
        if unset is not None:
            new |= unset & mask
        if some(new):
            self.unset[name] = new
        else:
            self.unset.pop(name, None)

    def guarded(self, name: str, negated: bool, mask: Mask | None, text: str) -> Mask:
        """
        The lanes of a mask with a true predicate. Raises SimtError if the predicate is unset in one
        of the lanes.
        """
        holds = self.read(name, KINDS["pred"])
        self.check_set((name,), mask, text, "its predicate")
        holds = ~holds if negated else holds
        return holds if mask is None else holds & mask

    def check_set(self, names: tuple[str, ...], mask: Mask | None, text: str, what: str) -> None:
        """Raise SimtError if a register is unset in a participating lane."""
        unset = self.any_unset(names)
        if unset is not None and some(unset if mask is None else unset & mask):
            raise SimtError(text, f"{what} depends on an unset register")

    def taking(self, mask: Mask | None) -> Ints:
        """The lanes of a mask, by number."""
        return np.arange(self.lanes) if mask is None else np.flatnonzero(mask)

    def whole_warps(self, mask: Mask | None, text: str) -> Ints:
        """The blocks with warps in a mask. Raises SimtError for a part of a warp."""
        if mask is None:
            return self.held
        lanes = mask.reshape(-1, LANES)
        present = lanes.any(axis=1)
        if some(present != lanes.all(axis=1)):
            raise SimtError(text, "only some lanes of a warp reach it")
        return self.held[present]

    def warps_of(self, blocks: Ints) -> Ints:
        """The numbers, among all warps of the launch, of the strand's warps in some blocks."""
        return blocks * self.block_warps + self.warp

    def lanes_of(self, blocks: Ints) -> Mask:
        """The strand's lanes in some blocks."""
        return np.isin(self.blocks, blocks)
