"""
Launches that store rims beside: cells in ghosts of other parts go to the others' memory at once.

The last launch before an exchange would leave ghosts that no launch reads. A kernel made by
`store-box` and `store-beside` stores the part's own cells only, and a second time to the ghost
zones of the other parts. No copy follows, and ghosts travel while the launch computes. A launch
stays as it is if kernels store parts of a step, if the part has cells that the kernel does not
store, if rims are no whole planes of memory, if vectors would not be aligned in the other memory,
or if the kernel would spill more registers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import value_bytes
from timetile.dialects.decomposition import Ghosts, Transfer
from timetile.dialects.syntax import cell_type
from timetile.dialects.temporal import LoopOp, PartAttr
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.loops.cut_domain import held_box
from timetile.passes.targets.hardware import VECTOR_BYTES
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.store_beside import StoreBesidePass, why_not_beside
from timetile.passes.tiling.store_box import StoreBoxPass, why_not
from timetile.runtime.cache.keys import key_of
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.kernel_boxes import PartInKernel
from timetile.runtime.ranks.rims import first_cell

MOST_SPILLED = 16
"""Bytes of registers that a kernel may spill more for storing beside."""


@dataclass(frozen=True)
class BesideLaunch:
    """
    The kernel of a launch that stores beside, and the places, among the launch's operands, of the
    fields stored beside, in the order of the kernel's further arguments.
    """

    kernels: ProgramKernels
    places: tuple[int, ...]


def is_whole_rows(field: CellBox, box: CellBox) -> bool:
    """A box has all cells of a field along all axes but the first."""
    return field.lower[1:] == box.lower[1:] and field.upper[1:] == box.upper[1:]


def boxes_in_kernel(
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
    boxes, size = list[CellBox](), least_bytes(kernel)
    for transfer in part.decomposition.transfers_from(rank, known.whole, moved_ghosts):
        box = sent_cells(transfer, known.whole, part)
        if box is None or not keeps_vectors(transfer, known.whole, part, size):
            return None
        boxes.append(box.moved(known.distance) & known.bounds)
    return None if any(box.is_empty for box in boxes) else (known.cells, boxes)


def sent_cells(transfer: Transfer, whole: CellBox, part: PartAttr) -> CellBox | None:
    """The cells of a transfer in the source's field; None if not whole rows in both fields."""
    held, other = held_box(whole, part), replace_rank(part, transfer.target)
    if transfer.target == part.rank.data or not is_whole_rows(held, transfer.source_box):
        return None
    return transfer.source_box if is_whole_rows(held_box(whole, other), transfer.box) else None


def keeps_vectors(transfer: Transfer, whole: CellBox, part: PartAttr, cell_bytes: int) -> bool:
    """
    Whether vectors that are aligned in the part's own memory are aligned in the other's. Cells
    move by whole rows, whose bytes a kernel's vectors divide; a domain of one axis has a
    single row, cut anywhere.
    """
    if len(whole.lower) > 1:
        return True
    source = first_cell(held_box(whole, part), transfer.source_box)
    target = first_cell(held_box(whole, replace_rank(part, transfer.target)), transfer.box)
    return (target - source) * cell_bytes % VECTOR_BYTES == 0


def least_bytes(kernel: KernelOp) -> int:
    """The bytes of the smallest cells that a kernel stores."""
    stores = [stage for stage in kernel.stages if isinstance(stage, StoreOp)]
    return min(value_bytes(cell_type(stage.field)) for stage in stores)


def replace_rank(part: PartAttr, rank: int) -> PartAttr:
    """The part of another rank."""
    return PartAttr(rank, part.decomposition, part.zone, part.steps.data)


def with_stores_beside(
    kernels: ProgramKernels, own: CellBox, boxes: Sequence[CellBox]
) -> ProgramKernels | None:
    """
    The kernels of a part, storing a box, and some boxes beside; None if passes were given without
    tiling.
    """
    passes: list[ModulePass] = list(kernels.options.passes or ())
    names = [each.name for each in passes]
    if DeviceTilingPass.name not in names:
        return None
    lower = tuple(cell for box in boxes for cell in box.lower)
    upper = tuple(cell for box in boxes for cell in box.upper)
    at = names.index(DeviceTilingPass.name) + 1
    passes[at:at] = [StoreBoxPass(own.lower, own.upper), StoreBesidePass(lower, upper)]
    return ProgramKernels(
        kernels.source, replace(kernels.options, passes=tuple(passes)), kernels.cache
    )


def spills_more(kernels: ProgramKernels, made: ProgramKernels, name: str) -> bool:
    """Whether a kernel spills more registers for storing beside."""
    return made.kernel(name).spill_bytes > kernels.kernel(name).spill_bytes + MOST_SPILLED


def decode_answer(parts: Parts) -> bool:
    """A decoded answer. Raises ValueError or LookupError for other parts."""
    return bool(json.loads(parts["answer.json"]))


def may_store_beside(kernels: ProgramKernels, made: ProgramKernels, name: str) -> bool:
    """Whether a kernel may store beside, found now or kept in the cache."""
    key, cache = key_of(made.key, "beside", kernels.key, name), kernels.cache
    kept = None if cache is None else cache.decoded(key, decode_answer)
    if kept is not None:
        return kept
    answer = not spills_more(kernels, made, name)
    if cache is not None:
        cache.write(key, {"answer.json": json.dumps(answer).encode()})
    return answer


def beside_launch(
    kernels: ProgramKernels,
    loop: LoopOp,
    own: LoopOp,
    part: PartAttr,
    moved_ghosts: Ghosts,
    fact: PlannedKernel,
) -> BesideLaunch | None:
    """The kernel of a launch on a part that stores beside; None for a launch as it is."""
    ops = kernels.kernel_module(fact.name).ops
    kernel = next(op for op in ops if isinstance(op, KernelOp))
    found = boxes_in_kernel(loop, own, part, moved_ghosts, kernel)
    if found is None or not found[1] or why_not(kernel, found[0]):
        return None
    if why_not_beside(kernel, [found[0], *found[1]]):
        return None
    made = with_stores_beside(kernels, *found)
    if made is None or not may_store_beside(kernels, made, fact.name):
        return None
    ops = made.kernel_module(fact.name).ops
    roles = next(op for op in ops if isinstance(op, KernelOp)).roles.data
    places = tuple(fact.roles.index(role) for role in roles[len(fact.roles) :])
    return BesideLaunch(made, places)
