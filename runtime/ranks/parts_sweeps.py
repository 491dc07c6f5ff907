"""
Sweeps on parts of several sites: each site runs the lines of its part, behind an exchange of the
ghosts read beside the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from timetile.dialects.temporal import SweepOp
from timetile.runtime.ranks.cut_program import CutProgram
from timetile.runtime.ranks.parted import STALE, PartedField, PartsMemory
from timetile.runtime.ranks.sites import Site

Exchanging = Callable[[Sequence[PartedField]], None]
"""Makes the ghosts of fields fresh."""


def run_on_parts(
    cuts: Sequence[CutProgram],
    sites: Sequence[Site],
    memory: PartsMemory,
    exchange: Exchanging,
    op: SweepOp,
    fields: Mapping[SSAValue, PartedField],
    numbers: Mapping[SSAValue, Any],
) -> None:
    """Run a sweep on fields in parts, in place, with the scalars as `numbers`."""
    read = dict.fromkeys(fields[field] for field in cuts[0].sweeps[op].read)
    stale = [each for each in read if each.cuts and each.age]
    if stale:
        exchange(stale)
    targets = [fields[target] for target in op.targets]
    for number, (cut, site) in enumerate(zip(cuts, sites, strict=True)):
        run = cut.sweeps[op]
        for target in targets:
            memory.wait_for_readers(target, number)
        if run.op is not None:
            site.sweep(
                run.op,
                {own: fields[v].buffers[number] for own, v in run.values.items() if v in fields},
                {own: numbers[v] for own, v in run.values.items() if v in numbers},
            )
    for target in targets:
        target.age, target.is_changed = STALE, True
        target.changed = target.cuts[0].whole if target.cuts else None
