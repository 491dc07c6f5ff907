"""
Launches in pieces: cells that need no ghosts, and rims that do.

A launch that waits for ghosts leaves a GPU idle while rims travel. In pieces, the kernel of the
cells inside starts at once; rims are pulled and computed meanwhile on a second stream. The pieces
are kernels of their own, of one schedule, made by `store-box`:

    |ghosts| rim ...                     inside                     ... rim |ghosts|

A rim is as wide as the ghosts and the reach of a launch. Each rim fills the pipeline once more, for
as many planes as a launch reaches; kernels that read every tap from memory have no pipeline. A
launch stays whole if that takes longer than an exchange, and where pieces are not possible: all
blocks run at once anyway, blocks wait for each other, the domain is cut along several axes, or rims
would be half of the part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, PartAttr
from timetile.dialects.tile import KernelOp
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.ghosts import StepMargins
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.store_box import StoreBoxPass, why_not
from timetile.runtime.cache.keys import key_of
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.of_program import ProgramKernels

LEAST_WAVES = 1.5
"""
Waves of blocks from which a launch is split. The one wave of a warp's tiles fills the device to the
end of a launch, and a rim would run behind.
"""

PIECES_SECONDS = 24e-6
"""
What pieces take more than a whole launch: marks and waits between streams of all GPUs, and copies
between (two H200s, two launches of 12 us an exchange).
"""

SHORTEST_LAUNCH = 5e-4
"""
Seconds of a predicted launch from which pieces may take less: kernels of rims start late (two
H200s: a step of elastic waves in FP32 of 118 us took 179 us in pieces, with its exchange).
"""

LARGEST_SHARE = 0.5
"""Rims have at most this share of a part's planes."""


@dataclass(frozen=True)
class SplitLaunch:
    """The kernels of the pieces of a launch."""

    inside: ProgramKernels
    rims: tuple[ProgramKernels, ...]


def has_many_waves(kernel: KernelOp, kernels: ProgramKernels) -> bool:
    """Whether a launch of a kernel has enough blocks for pieces, none of which waits for others."""
    layout = kernel.layout
    if layout is None or layout.has_messages:
        return False
    blocks = Geometry(kernel).blocks
    held = kernels.options.target.resident_blocks(kernel.blocks_per_multiprocessor)
    return blocks >= LEAST_WAVES * held


def boxes_of(loop: LoopOp, part: PartAttr, steps: int) -> list[CellBox]:
    """
    The cells of a launch of some steps on a part: inside, and the rims beside other parts. None
    where pieces are not possible.
    """
    box = CellBox.of(written_bounds(loop))
    counts = part.decomposition.counts
    cut = [axis for axis, count in enumerate(counts) if count > 1]
    if len(cut) != 1 or len(counts) != len(box.lower):
        return []
    (axis,) = cut
    reach = next(islice(StepMargins(loop).zones(), steps - 1, None))[axis]
    fields = [CellBox.of(field_bounds(arg)) for arg in loop.body.block.args]
    ends = part.decomposition.ends(part.rank.data, axis)
    low, high = box.lower[axis], box.upper[axis]
    below, above = part.zone[axis]
    first = max(field.lower[axis] for field in fields) + below + reach[0]
    last = min(field.upper[axis] for field in fields) - above - reach[1]
    first, last = low if ends[0] else first, high if ends[1] else last
    if last - first < LARGEST_SHARE * (high - low) or (first, last) == (low, high):
        return []
    spans = [(first, last), *((a, b) for a, b in ((low, first), (last, high)) if a < b)]
    return [
        CellBox(
            (*box.lower[:axis], a, *box.lower[axis + 1 :]),
            (*box.upper[:axis], b, *box.upper[axis + 1 :]),
        )
        for a, b in spans
    ]


def filled_share(kernel: KernelOp, boxes: Sequence[CellBox]) -> float:
    """
    Planes of rims' pipelines, over the planes of a launch; 0 for a kernel without a stream. A
    pipeline fills for as many planes as the launch reaches on both sides.
    """
    stream, bounds = kernel.stream_axis, CellBox.of(kernel.bounds)
    if stream is None:
        return 0.0
    geometry = Geometry(kernel)
    filled = (geometry.fill + geometry.drain) * (len(boxes) - 1)
    return filled / (bounds.upper[stream] - bounds.lower[stream])


def with_store_box(kernels: ProgramKernels, box: CellBox) -> ProgramKernels | None:
    """The kernels of a part for the cells of a box; None if passes were given without tiling."""
    passes: list[ModulePass] = list(kernels.options.passes or ())
    names = [each.name for each in passes]
    if DeviceTilingPass.name not in names:
        return None
    passes.insert(names.index(DeviceTilingPass.name) + 1, StoreBoxPass(box.lower, box.upper))
    options = replace(kernels.options, passes=tuple(passes))
    return ProgramKernels(kernels.source, options, kernels.cache)


def encode_boxes(boxes: Sequence[CellBox]) -> Parts:
    """Boxes as parts of a cache entry."""
    return {"boxes.json": json.dumps([[box.lower, box.upper] for box in boxes]).encode()}


def decode_boxes(parts: Parts) -> list[CellBox]:
    """The boxes encoded by `encode_boxes`. Raises TypeError or ValueError for other parts."""
    return [CellBox(tuple(a), tuple(b)) for a, b in json.loads(parts["boxes.json"])]


def pieces_of(
    kernels: ProgramKernels, loop: LoopOp, part: PartAttr, fact: PlannedKernel, most: float
) -> list[CellBox]:
    """The cells of a launch in pieces, found now or kept in the cache; none for a whole launch."""
    key, cache = key_of(kernels.key, "pieces", str(part), fact.name, str(most)), kernels.cache
    kept = None if cache is None else cache.decoded(key, decode_boxes)
    if kept is not None:
        return kept
    boxes = boxes_of(loop, part, fact.steps)
    if boxes:
        ops = kernels.kernel_module(fact.name).ops
        kernel = next(op for op in ops if isinstance(op, KernelOp))
        whole = any(why_not(kernel, box) for box in boxes)
        if whole or filled_share(kernel, boxes) >= most or not has_many_waves(kernel, kernels):
            boxes = []
    if cache is not None:
        cache.write(key, encode_boxes(boxes))
    return boxes


def split_launch(
    kernels: ProgramKernels, loop: LoopOp, part: PartAttr, fact: PlannedKernel, most: float
) -> SplitLaunch | None:
    """
    The pieces of a launch on a part; None for a launch that stays whole. `most`: the share of a
    launch that pieces hide of an exchange.
    """
    boxes = pieces_of(kernels, loop, part, fact, most)
    made = [with_store_box(kernels, box) for box in boxes]
    known = [each for each in made if each is not None]
    if not known or len(known) < len(boxes):
        return None
    return SplitLaunch(known[0], tuple(known[1:]))
