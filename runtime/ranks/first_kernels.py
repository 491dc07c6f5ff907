"""
Launches with rims first: rims are computed before the cells inside, and travel meanwhile.

A launch followed by an exchange is two or three kernels of one schedule, made by `store-box`: the
cells that other parts read, on an urgent stream, and the cells inside:

    |ghosts| rim                        inside                        rim |ghosts|

Behind the rims, the urgent stream copies them to the ghosts of the other parts, while blocks of the
cells inside still compute. No part waits for a copy, and no kernel for stores to another device.
Each rim fills the pipeline of planes once more. A launch stays whole where a rim is no slab along
the one axis that is cut, where rims would be half of the part, where pipelines would take longer
than another way, and where blocks wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Ghosts
from timetile.dialects.temporal import LoopOp, PartAttr
from timetile.dialects.tile import KernelOp
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.tiling.store_box import why_not
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.exchange_choice import BEGIN_SECONDS, filled_cost
from timetile.runtime.ranks.kernel_boxes import PartInKernel
from timetile.runtime.ranks.split_kernels import LARGEST_SHARE, with_store_box


@dataclass(frozen=True)
class FirstLaunch:
    """The kernels of a launch with rims first."""

    rims: tuple[ProgramKernels, ...]
    inside: ProgramKernels


def own_and_sent(
    loop: LoopOp, own: LoopOp, part: PartAttr, moved_ghosts: Ghosts, kernel: KernelOp
) -> tuple[CellBox, list[CellBox]] | None:
    """
    The part's cells, and its cells in ghosts of other parts (`moved_ghosts` of their zone), in the
    coordinates of a kernel. None if the kernel stores some of the cells not at all. `own`: the
    program's `loop`, cut and moved.
    """
    rank, known = part.rank.data, PartInKernel.of(loop, own, part, kernel)
    if known is None:
        return None
    transfers = list(part.decomposition.transfers_from(rank, known.whole, moved_ghosts))
    if any(transfer.target == rank for transfer in transfers):
        return None
    sent = [transfer.source_box.moved(known.distance) & known.cells for transfer in transfers]
    return None if any(box.is_empty for box in sent) else (known.cells, sent)


def slabs_of(own: CellBox, sent: list[CellBox], axis: int) -> list[CellBox]:
    """
    The cells inside, and the rims, slabs along an axis with all sent cells; none where a rim is no
    slab, or where rims would be half of the part.
    """
    low, high = own.lower[axis], own.upper[axis]
    first, last = low, high
    for box in sent:
        if box.lower[axis] == low:
            first = max(first, box.upper[axis])
        elif box.upper[axis] == high:
            last = min(last, box.lower[axis])
        else:
            return []
    if last - first < LARGEST_SHARE * (high - low):
        return []
    spans = [(first, last), *((a, b) for a, b in ((low, first), (last, high)) if a < b)]
    return [
        CellBox(
            (*own.lower[:axis], a, *own.lower[axis + 1 :]),
            (*own.upper[:axis], b, *own.upper[axis + 1 :]),
        )
        for a, b in spans
    ]


@dataclass(frozen=True)
class BlockSteps:
    """The work of a kernel's launch, in steps of the stream of a block."""

    blocks: int
    all: float
    """Steps of all blocks together."""
    longest: float
    """Steps of the longest block."""

    @staticmethod
    def of(kernels: ProgramKernels, name: str, depth: int) -> BlockSteps | None:
        """The work of a kernel of some steps; None where blocks wait for each other."""
        kernel = kernel_of(kernels, name)
        layout, geometry = kernel.layout, Geometry(kernel)
        if layout is None or layout.has_messages:
            return None
        shares = layout.blocks / layout.pack.data
        filled = (1 - filled_cost(depth)) * (geometry.fill + geometry.drain)
        steps = [geometry.steps(each.planes.data) - filled for each in geometry.used_variants]
        tiles = geometry.variant_numbers
        together = sum(count * each for count, each in zip(tiles, steps, strict=True))
        return BlockSteps(ceil(sum(tiles) * shares), together * shares, max(steps))

    def rounds(self, held: int) -> float:
        """Steps until the last block ends, with `held` blocks at once."""
        whole = self.longest * ceil_div(self.blocks, held)
        return whole if self.blocks <= held else self.all / held


def kernel_of(kernels: ProgramKernels, name: str) -> KernelOp:
    """The tiled kernel of a name."""
    return next(op for op in kernels.kernel_module(name).ops if isinstance(op, KernelOp))


def share_longer(
    whole: ProgramKernels, made: FirstLaunch, fact: PlannedKernel, seconds: float
) -> float:
    """
    The share of a whole launch, of so many seconds (0 if not predicted), that a launch with rims
    first takes longer; inf if blocks wait for each other.
    """
    found = [
        BlockSteps.of(each, fact.name, fact.steps) for each in (whole, made.inside, *made.rims)
    ]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return inf
    kernel = kernel_of(whole, fact.name)
    held = whole.options.target.resident_blocks(kernel.blocks_per_multiprocessor)
    alone, inside, *rims = known
    if inside.blocks > held:
        # Blocks of the inside start wherever a rim's block has ended.
        steps = (inside.all + sum(each.all for each in rims)) / held
    else:
        steps = inside.longest + sum(each.longest * ceil_div(each.blocks, held) for each in rims)
    begins = sum(each.blocks for each in rims) / held * BEGIN_SECONDS
    return steps / alone.rounds(held) - 1 + (begins / seconds if seconds else 0.0)


def first_launch(
    most: float,
    seconds: float,
    kernels: ProgramKernels,
    loop: LoopOp,
    own: LoopOp,
    part: PartAttr,
    moved_ghosts: Ghosts,
    fact: PlannedKernel,
) -> FirstLaunch | None:
    """
    The kernels of a launch on a part with rims first; None for a launch that stays whole. `most`:
    the share of a whole launch, of so many seconds (0 if not predicted), that it may take longer.
    """
    cut = [axis for axis, count in enumerate(part.decomposition.counts) if count > 1]
    if len(cut) != 1:
        return None
    kernel = kernel_of(kernels, fact.name)
    found = own_and_sent(loop, own, part, moved_ghosts, kernel)
    if found is None or not found[1]:
        return None
    boxes = slabs_of(*found, cut[0])
    if not boxes or any(why_not(kernel, box) for box in boxes):
        return None
    made = [with_store_box(kernels, box) for box in boxes]
    known = [each for each in made if each is not None]
    if len(known) < len(boxes):
        return None
    launch = FirstLaunch(tuple(known[1:]), known[0])
    return launch if share_longer(kernels, launch, fact, seconds) <= most else None
