"""A loop being run on parts, and the parts' fields among the operands of its launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import RoleKind
from timetile.lowering.plan_launches import PlannedKernel
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.cut_program import CutProgram, RankLoop
from timetile.runtime.ranks.exchange import CutField
from timetile.runtime.ranks.parted import PartedField
from timetile.runtime.ranks.rims import extents_of
from timetile.runtime.ranks.sites import Site


@dataclass(frozen=True)
class PresentRun:
    """A loop being run, with the facts and the kernels of its launches."""

    loop: LoopOp
    """The loop of the program."""
    of_part: RankLoop
    facts: dict[str, PlannedKernel]
    parts: Sequence[ProgramKernels]
    last_of_step: str
    """The kernel that ends a step in parts."""
    number: int
    """The number of the loop in the program."""
    common: bool
    """Whether buffers that take turns have common halos."""


def taken_by(cut: CutProgram, loop: LoopOp) -> list[SSAValue]:
    """The captured fields and scalars of a loop of a part, as values of the program."""
    run = cut.loops[loop]
    return [run.values[value] for value in (*run.loop.captures, *run.loop.scalars)]


def operands_of(operands: Sequence[Any], number: int) -> list[Any]:
    """The operands of a launch on a part: the part's buffers, and numbers."""
    return [
        operand.buffers[number] if isinstance(operand, PartedField) else operand
        for operand in operands
    ]


def places_of_fields(run: PresentRun, fact: PlannedKernel) -> tuple[list[int], list[int]]:
    """The places of read and of written fields among the operands of a launch."""
    read: list[int] = []
    written: list[int] = []
    for place, role in enumerate(fact.roles):
        kind, index = role.role
        if kind is RoleKind.TARGET:
            written.append(place)
        # A step in place leaves cells of the target unchanged.
        is_kept = kind is RoleKind.TARGET and not fact.reads_halos
        if kind in (RoleKind.SOURCE, RoleKind.CAPTURE) or (
            is_kept and run.loop.rotation[index] in run.of_part.exchanged
        ):
            read.append(place)
    return read, written


def launch_order(cuts: Sequence[CutProgram], sites: Sequence[Site]) -> list[int]:
    """
    The numbers of the parts in the order of launches. Of several parts on a device, parts beside
    other devices go first: their rims travel while the rest of the device's parts is computed.
    """
    if len(sites) == 1:
        return [0]
    part = cuts[0].part
    decomposition, domain = part.decomposition, part.decomposition.domain

    def is_inside(number: int) -> bool:
        transfers = decomposition.transfers_to(number, domain, part.zone)
        return all(sites[each.source].home == sites[number].home for each in transfers)

    return sorted(range(len(sites)), key=is_inside)


def part_frame(box: CellBox, cut: CutField, cell_bytes: int) -> HaloFrame:
    """
    The frame of a part's buffer around cells written by a loop, without ghosts of written cells:
    such ghosts differ in buffers that take turns, and their ages tell whether they are read.
    """
    sizes = extents_of(cut.held)
    low = [
        min(max(first - held, 0), size)
        for first, held, size in zip(box.lower, cut.held.lower, sizes)
    ]
    high = [
        max(min(last - held, size), least)
        for last, held, size, least in zip(box.upper, cut.held.lower, sizes, low)
    ]
    return HaloFrame(tuple(sizes), tuple(low), tuple(high), cell_bytes)


def same_halos(
    sites: Sequence[Site], box: CellBox, frame: HaloFrame, first: PartedField, other: PartedField
) -> bool:
    """Whether two fields have equal cells around a box."""
    for number, site in enumerate(sites):
        around = part_frame(box, first.cuts[number], frame.cell_bytes) if first.cuts else frame
        if site.halos_differ(around, first.buffers[number], other.buffers[number]):
            return False
    return True
