"""
A part of a rank on a GPU.

Ghosts of ranks on the same host are pulled from the buffers of the other ranks, whose handles come
in messages. A link takes ghosts of other hosts from device to device. Without a link, these travel
through the memory of the hosts: rims are copied to a contiguous buffer of the site, and down to the
host; messages go as between processors; ghosts go up again the same way. MPI sees no pointer of a
device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Transfer
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LaunchOp
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.host.halos import compared_in_turn
from timetile.runtime.ranks.cut_program import CutProgram
from timetile.runtime.ranks.exchange import CutField, Exchange, array_part
from timetile.runtime.ranks.first_kernels import FirstLaunch
from timetile.runtime.ranks.moved_rims import put_rims_first
from timetile.runtime.ranks.near_ghosts import NearGhosts
from timetile.runtime.ranks.part_kernels import PartKernels, PlannedLoop
from timetile.runtime.ranks.parted import PartedField, PartsMemory
from timetile.runtime.ranks.parts_runner import PartsRunner, PresentRun
from timetile.runtime.ranks.peers import Peers, digest_of, words_of_all
from timetile.runtime.ranks.point_tables import merge_between_ranks
from timetile.runtime.ranks.present_run import operands_of
from timetile.runtime.ranks.rims import box_copy, extents_of
from timetile.runtime.ranks.shared_buffers import SharedBuffers
from timetile.runtime.ranks.sites import HANDLE_BYTES, RimLink, RimMessage, Site
from timetile.runtime.ranks.split_kernels import SplitLaunch

YES, NO = "yes", "no"


def taken(site: Site, field: PartedField, box: CellBox) -> Array:
    """The cells of a box of a part, on the host."""
    held, size = field.cuts[0].held, field.dtype.itemsize
    shape = tuple(extents_of(box))
    staging = site.new(shape, field.dtype)
    site.pull(field.buffers[0], staging, box_copy(held, box, box, box, size))
    cells = np.empty(shape, field.dtype)
    site.download(cells, staging, 0)
    site.free(staging)
    return cells


def give(site: Site, field: PartedField, box: CellBox, cells: Array) -> None:
    """Set the cells of a box of a part."""
    held, size = field.cuts[0].held, field.dtype.itemsize
    staging = site.new(cells.shape, field.dtype)
    site.upload(staging, cells)
    site.pull(staging, field.buffers[0], box_copy(box, box, held, box, size))
    site.free(staging)


class RankMemory(PartsMemory):
    """Memory of fields with a part on each rank; whole fields are gathered on every rank."""

    def __init__(
        self, site: Site, cuts: Callable[[SSAValue], tuple[CutField, ...]], exchange: Exchange
    ):
        super().__init__([site], cuts)
        self.exchange = exchange

    def gather_to(self, given: PartedField, cells: Array) -> None:
        super().gather_to(given, cells)
        if not given.cuts:
            return
        cut, peers = given.cuts[0], self.exchange.peers
        sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
        for rank in range(peers.count):
            box = cut.part.decomposition.owned(rank, cut.whole)
            if rank == peers.rank:
                continue
            if not cut.owned.is_empty:
                sent[rank].append(array_part(cells, cut.whole, cut.owned))
            if not box.is_empty:
                places[rank].append(array_part(cells, cut.whole, box))
        self.exchange.move(sent, places)

    def gather_notes(self, cut: CutProgram, placed: Sequence[Any], values: Sequence[Any]) -> None:
        for each in cut.tables:
            place = each.table.index
            self.sites[0].download(values[place], placed[place].buffers[0], 0)
        merge_between_ranks(self.exchange, cut.decomposition, cut.tables, values)

    def fetch(self, buffer: Any, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        """Cells at places, each from its owner, on every rank."""
        cells = np.empty(len(places), dtype)
        own = self.owners(buffer, places).get(0)
        if own is not None:
            cells[own[0]] = self.sites[0].fetch(buffer.buffers[0], own[1], dtype)
        if not buffer.cuts:
            return cells
        peers, cut = self.exchange.peers, buffer.cuts[0]
        others = [rank for rank in range(peers.count) if rank != peers.rank]
        chosen = {rank: cut.chosen(rank, places) for rank in others}
        received = {rank: np.empty(len(chosen[rank]), dtype) for rank in others}
        sent = {rank: [cells[own[0]]] for rank in others} if own is not None else {}
        self.exchange.move(sent, {rank: [into] for rank, into in received.items() if len(into)})
        for rank, into in received.items():
            cells[chosen[rank]] = into
        return cells


class RankSiteRunner(PartsRunner):
    """Runs the loops of a rank's part on a site, together with all ranks."""

    @property
    def can_record(self) -> bool:
        """Whether ghosts of all ranks come without work of the host. All ranks call."""
        return self.ghosts_nearby.are_all_near()

    def __init__(
        self,
        cut: CutProgram,
        kernels: PartKernels,
        site: Site,
        exchange: Exchange,
        notice: HaloNotice,
        progress: Progress | None = None,
    ):
        super().__init__([cut], kernels, [site], notice, progress)
        self.ghosts = exchange
        self.memory = RankMemory(site, self.cuts_of, exchange)
        self.memory.sweeps = self.sweep
        self.shared = SharedBuffers(site, exchange.peers)
        self.ghosts_nearby = NearGhosts(site, exchange, self.shared)
        self.link: RimLink | None = None
        """The link to ranks out of reach, if any."""
        self.has_tried = False
        self.agreed: dict[tuple[LoopOp, bool], int | None] = {}
        self.firsts: dict[tuple[int, str, bool], list[FirstLaunch] | None] = {}
        """The launches with rims first, as agreed by all ranks."""

    def has_common_halos(
        self, loop: LoopOp, number: int, steps: int, buffers: Sequence[PartedField]
    ) -> bool:
        """Whether the halos of all ranks are common."""
        own = super().has_common_halos(loop, number, steps, buffers)
        if self.kernels.options.halos != "compared" or not compared_in_turn(loop):
            return own
        return all(word == YES for word in words_of_all(self.ghosts.peers, YES if own else NO))

    def planning_rank(
        self, loop: LoopOp, found: Sequence[PlannedLoop | None], *, common: bool
    ) -> int | None:
        """0 where the launches of all ranks have equal arguments and steps, else None."""
        planned = found[0]
        if (loop, common) not in self.agreed:
            own = "idle"
            if planned is not None:
                run = self.cuts[0].loops[loop]
                values = list(run.loop.captures) + list(run.loop.scalars)
                names = [self.numbered(loop, run.values[value]) for value in values]
                own = repr((names, [(f.name, f.steps, str(f.roles)) for f in planned[1]]))
            digests = words_of_all(self.ghosts.peers, digest_of(own))
            same = own != "idle" and len(set(digests)) == 1
            self.agreed[loop, common] = 0 if same else None
        return self.agreed[loop, common]

    @staticmethod
    def numbered(loop: LoopOp, value: SSAValue) -> int:
        """The number of a field or scalar among the values taken by a loop of the program."""
        return [*loop.captures, *loop.scalars].index(value)

    def pieces_of(self, run: PresentRun, fact: PlannedKernel) -> list[SplitLaunch] | None:
        """None: the host waits for messages, and launches behind."""
        return None

    def first_of(
        self, run: PresentRun, fact: PlannedKernel, written: Sequence[PartedField]
    ) -> list[FirstLaunch] | None:
        """The own kernels of a launch with rims first, where each rank has some and is near."""
        is_settled = all(field.is_settled for field in written)
        if not is_settled or not self.ghosts_nearby.are_all_near():
            return None
        key = run.number, fact.name, run.common
        if key not in self.firsts:
            own = self.kernels.rims_first(*key[:2], common=run.common)
            words = words_of_all(self.ghosts.peers, NO if own is None else YES)
            self.firsts[key] = own if all(word == YES for word in words) else None
        return self.firsts[key]

    def launch_first(
        self,
        first: Sequence[FirstLaunch],
        op: LaunchOp,
        operands: Sequence[Any],
        written: Sequence[PartedField],
    ) -> None:
        """Make a launch with rims first, between two meetings with the neighbours."""
        (site,), (second,) = self.sites, self.second_sites()
        sent = self.ghosts_nearby.sent_rims(written)
        if not self.rims.have_met:
            self.ghosts_nearby.meet(written)
        put_rims_first(first[0], site, second, op, operands_of(operands, 0), sent)
        self.ghosts_nearby.meet(written)
        site.keep_pace()

    def exchange(self, fields: Sequence[PartedField]) -> None:
        """
        Make the ghosts of fields fresh, with a message for each pair of ranks: of cells, or of the
        handles of buffers in reach. A link takes rims to and from ranks out of reach.
        """
        if not fields:
            return
        if self.ghosts_nearby.are_all_near():
            self.ghosts_nearby.exchange(fields)
            return
        near = self.shared.near_ranks(fields[0].buffers[0])
        link = self.link_for(near)
        sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
        waiting: list[tuple[PartedField, CellBox, Array]] = []
        handles: list[tuple[PartedField, Transfer, Array]] = []
        self.sites[0].synchronize()
        for field in fields:
            self.put_sent(field, near, sent)
            for transfer in field.cuts[0].received:
                if transfer.source in near:
                    handle = np.empty(HANDLE_BYTES, np.uint8)
                    places[transfer.source].append(handle)
                    handles.append((field, transfer, handle))
                elif transfer.source != self.ghosts.peers.rank and link is None:
                    cells = np.empty(extents_of(transfer.box), field.dtype)
                    places[transfer.source].append(cells)
                    waiting.append((field, transfer.box, cells))
        self.ghosts.move(sent, places)
        for field, box, cells in waiting:
            give(self.sites[0], field, box, cells)
        self.pull_from_near(handles, [each for each in near if each in sent])
        if link is not None:
            link.exchange(*self.far_rims(fields, near))
        for field in fields:
            field.age, field.is_settled = 0, True

    def link_for(self, near: Container[int]) -> RimLink | None:
        """The link to ranks out of reach, made by all ranks the first time; None without."""
        if not self.has_tried:
            others = range(self.ghosts.peers.count)
            is_far = any(rank not in near and rank != self.ghosts.peers.rank for rank in others)
            self.link, self.has_tried = new_link(self.sites[0], self.ghosts.peers, is_far), True
        return self.link

    def far_rims(
        self, fields: Sequence[PartedField], near: Container[int]
    ) -> tuple[list[RimMessage], list[RimMessage]]:
        """The rims sent to and received from ranks out of reach."""
        sent: list[RimMessage] = []
        received: list[RimMessage] = []
        for field in fields:
            cut, size, buffer = field.cuts[0], field.dtype.itemsize, field.buffers[0]
            for transfer in cut.sent:
                if transfer.target not in near and transfer.target != self.ghosts.peers.rank:
                    box = transfer.source_box
                    copy = box_copy(cut.held, box, box, box, size)
                    sent.append(RimMessage(transfer.target, buffer, copy))
            for transfer in cut.received:
                if transfer.source not in near and transfer.source != self.ghosts.peers.rank:
                    box = transfer.box
                    copy = box_copy(box, box, cut.held, box, size)
                    received.append(RimMessage(transfer.source, buffer, copy))
        return sent, received

    def put_sent(
        self, field: PartedField, near: Container[int], sent: dict[int, list[Array]]
    ) -> None:
        """
        Add messages of a field to other ranks: the handle of the buffer, or cells where no link
        takes them. Cells of the rank's own ghosts are copied.
        """
        site, held = self.sites[0], field.cuts[0].held
        for transfer in field.cuts[0].sent:
            if transfer.target == self.ghosts.peers.rank:
                boxes = (held, transfer.source_box, held, transfer.box)
                copy = box_copy(*boxes, field.dtype.itemsize)
                site.pull(field.buffers[0], field.buffers[0], copy)
            elif transfer.target in near:
                handle = np.frombuffer(site.shared(field.buffers[0]), np.uint8)
                sent[transfer.target].append(handle)
            elif self.link is None:
                sent[transfer.target].append(taken(site, field, transfer.source_box))

    def pull_from_near(
        self, handles: Sequence[tuple[PartedField, Transfer, Array]], readers: Sequence[int]
    ) -> None:
        """
        Pull ghosts from buffers of other ranks, and wait until `readers` have pulled theirs: the
        next launch may overwrite rims.
        """
        if not handles and not readers:
            return
        site = self.sites[0]
        for field, transfer, handle in handles:
            cut, source = field.cuts[0], transfer.source
            held = cut.part.decomposition.held(source, cut.whole, cut.part.zone)
            boxes = (held, transfer.source_box, cut.held, transfer.box)
            copy = box_copy(*boxes, field.dtype.itemsize)
            site.pull(self.shared.open(handle.tobytes()), field.buffers[0], copy)
        site.synchronize()
        self.tell_readers({transfer.source for _, transfer, _ in handles}, readers)

    def tell_readers(self, sources: Iterable[int], readers: Iterable[int]) -> None:
        """Tell other ranks that their rims are pulled, and wait until `readers` say so."""
        done = {rank: [np.ones(1, np.uint8)] for rank in sources}
        self.ghosts.move(done, {rank: [np.empty(1, np.uint8)] for rank in readers})

    def end_run(self) -> None:
        """Close the buffers of other ranks."""
        self.ghosts_nearby.end_run()
        self.shared.end_run()

    def close(self) -> None:
        """Give back the link, too."""
        if self.link is not None:
            self.link.close()
            self.link = None
        self.ghosts_nearby.close()
        super().close()


def new_link(site: Site, peers: Peers, is_far: bool) -> RimLink | None:
    """
    A link between all ranks if a rank is out of another's reach; None if no rank is, or if a rank
    has no way around the memory of the host. All ranks call.
    """
    said = words_of_all(peers, f"{YES if is_far else NO} {site.why_no_link()}")
    answers = [word.partition(" ") for word in said]
    if all(far == NO for far, _, _ in answers):
        return None
    without = [(rank, problem) for rank, (_, _, problem) in enumerate(answers) if problem]
    if not without:
        return site.link(peers, words_of_all(peers, "" if peers.rank else site.link_name())[0])
    if peers.rank == 0:
        LOGGER.warning(
            "rank %d has no NCCL (%s): ghosts between hosts go through the memory of the hosts, "
            "and are slow; install timetile[nccl] on all ranks",
            *without[0],
        )
    return None
