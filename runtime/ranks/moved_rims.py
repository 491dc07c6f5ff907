"""
Rims on the way from part to part: pulled by copies, or stored by the kernels of the part with the
cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Ghosts
from timetile.dialects.tile import LaunchOp
from timetile.runtime.ranks.beside_kernels import BesideLaunch
from timetile.runtime.ranks.first_kernels import FirstLaunch
from timetile.runtime.ranks.parted import PartedField, PartsMemory
from timetile.runtime.ranks.present_run import operands_of
from timetile.runtime.ranks.rims import RimCopy, rim_copies
from timetile.runtime.ranks.sites import Beside, Meetings, Pull, Site


def put_rims_first(
    found: FirstLaunch,
    site: Site,
    second: Site,
    op: LaunchOp,
    operands: Sequence[Any],
    sent: Sequence[Pull],
) -> None:
    """
    Put a launch on the stream of a part: rims on a second stream, with copies behind, and the cells
    inside meanwhile. The stream goes on behind both.
    """
    second.wait(site.mark())
    for kernels in found.rims:
        second.launch(kernels, op, operands)
    for rim in sent:
        second.pull(rim.source, rim.target, rim.copy)
    site.launch(found.inside, op, operands)
    site.wait(second.mark())


class MovedRims:
    """Moves rims between the parts of several sites. `ghosts`: moved cells of the ghost zone."""

    def __init__(self, sites: Sequence[Site], memory: PartsMemory, ghosts: Ghosts):
        self.sites, self.memory, self.ghosts = sites, memory, ghosts
        self.copies: dict[tuple[CellBox, int], list[RimCopy]] = {}
        self.have_met = False
        """Parts have waited for all work of their neighbours, and put no more on the streams."""
        self.pieces = 0
        """The number of launches in pieces: other streams wait for marks of all parts."""
        self.meetings: Meetings | None = None
        self.has_asked = False
        self.by_counts = False
        """Whether parts meet without marks now, in graphs of their own."""

    @property
    def can_count(self) -> bool:
        """Whether parts can meet without marks."""
        if not self.has_asked:
            self.meetings, self.has_asked = self.sites[0].meetings(self.sites), True
        return self.meetings is not None

    def exchange(self, fields: Sequence[PartedField]) -> None:
        """Make the ghosts of fields fresh: every site pulls cells from its neighbours."""
        if self.by_counts and self.meetings is not None:
            # A neighbour may overwrite rims behind the second meeting.
            self.meetings.exchange(self.neighbours(fields), self.pulls(fields))
            return
        sources = {pull.source for field in fields for pull in self.copies_of(field)}
        marks = {source: self.sites[source].mark() for source in sources}
        self.pull(fields, self.sites, marks)

    def pulls(self, fields: Sequence[PartedField]) -> dict[int, list[Pull]]:
        """The copies that make the ghosts of fields fresh, by part, about to be done."""
        found: dict[int, list[Pull]] = {}
        for field in fields:
            for each in self.copies_of(field):
                source, target = field.buffers[each.source], field.buffers[each.target]
                found.setdefault(each.target, []).append(Pull(source, target, each.copy))
            field.age, field.is_settled = 0, True
        self.have_met = False
        return found

    def pull(
        self,
        fields: Sequence[PartedField],
        sites: Sequence[Site],
        marks: Mapping[int, Any] | Sequence[Any],
    ) -> None:
        """
        Pull the ghosts of fields on the streams of some sites, behind marks of the parts' streams.
        """
        pulls = [(field, pull) for field in fields for pull in self.copies_of(field)]
        for target, site in enumerate(sites):
            own = [(field, pull) for field, pull in pulls if pull.target == target]
            waited = dict.fromkeys(pull.source for _, pull in own)
            if site is not self.sites[target]:
                waited = {target: None, **waited}
            for source in waited:
                if source != target or site is not self.sites[target]:
                    site.wait(marks[source])
            for field, pull in own:
                site.pull(field.buffers[pull.source], field.buffers[target], pull.copy)
            mark = site.mark() if own else None
            for field, pull in own:
                if pull.source != target and mark not in field.readers[pull.source]:
                    field.readers[pull.source].append(mark)
        for field in fields:
            field.age, field.is_settled = 0, True
        self.have_met = False

    def launch_beside(
        self,
        found: Sequence[BesideLaunch],
        order: Sequence[int],
        op: LaunchOp,
        operands: Sequence[Any],
        written: Sequence[PartedField],
    ) -> None:
        """
        Launch kernels that store ghosts of other parts, behind all work of parts with rims in
        common, and before all later work. `order`: of the parts.
        """
        if not self.have_met:
            self.meet(written)
        for number in order:
            for field in written:
                self.memory.wait_for_readers(field, number)
            beside: list[Beside] = []
            for place in dict.fromkeys(found[number].places):
                field = operands[place]
                copies = [each for each in self.copies_of(field) if each.source == number]
                beside += [Beside(field.buffers[each.target], each.copy) for each in copies]
            own = operands_of(operands, number)
            self.sites[number].launch(found[number].kernels, op, own, beside)
        self.meet(written)

    def launch_first(
        self,
        found: Sequence[FirstLaunch],
        order: Sequence[int],
        seconds: Sequence[Site],
        op: LaunchOp,
        operands: Sequence[Any],
        written: Sequence[PartedField],
    ) -> None:
        """
        Launch rims first on all parts, behind all work of parts with rims in common, and before all
        later work. `order`: of the parts.
        """
        if not self.have_met:
            self.meet(written)
        for number in order:
            for field in written:
                self.memory.wait_for_readers(field, number)
            sent = [
                Pull(field.buffers[number], field.buffers[each.target], each.copy)
                for field in written
                for each in self.copies_of(field)
                if each.source == number
            ]
            own, second = operands_of(operands, number), seconds[number]
            put_rims_first(found[number], self.sites[number], second, op, own, sent)
        self.meet(written)

    def neighbours(self, fields: Sequence[PartedField]) -> dict[int, tuple[int, ...]]:
        """For each part the parts with which it shares rims of fields."""
        found: dict[int, set[int]] = {}
        for each in (copy for field in fields for copy in self.copies_of(field)):
            if each.source != each.target:
                found.setdefault(each.source, set()).add(each.target)
                found.setdefault(each.target, set()).add(each.source)
        return {number: tuple(sorted(others)) for number, others in sorted(found.items())}

    def meet(self, fields: Sequence[PartedField]) -> None:
        """Let each part wait for all work so far of the parts with which it shares rims."""
        if self.by_counts and self.meetings is not None:
            self.meetings.meet(self.neighbours(fields))
            return
        pairs = {(each.source, each.target) for field in fields for each in self.copies_of(field)}
        marks = [site.mark() for site in self.sites]
        for number, site in enumerate(self.sites):
            for other in range(len(self.sites)):
                if {(number, other), (other, number)} & pairs:
                    site.wait(marks[other])

    def close(self) -> None:
        """Give back the meetings, after all work."""
        if self.meetings is not None:
            self.meetings.close()
        self.meetings, self.has_asked = None, False

    def copies_of(self, field: PartedField) -> list[RimCopy]:
        """The copies that make the ghosts of a field fresh, computed once for fields of a shape."""
        key = field.cuts[0].whole, field.dtype.itemsize
        if key not in self.copies:
            self.copies[key] = list(rim_copies(field.cuts, field.dtype.itemsize, self.ghosts))
        return self.copies[key]
