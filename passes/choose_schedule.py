"""choose-schedule: how deep, how wide and where, written on the loop for the later passes.

After: `temporal.loop ... depths [10, 8, 4, 2, 1] schedule {tile = "warp", cells = array<i64: 4>, ...}`

The candidates are few (`schedule_space.py`): tiles held by a warp for one and two axes, by a block for small plates and
for three, by a cluster or the device, several widths, every depth whose planes fit the registers. `candidates.py` asks the cost model (`cost`) of
each, and the fastest wins. The choice is a pure function of the IR, the options and the target.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.temporal import LoopOp
from timetile.passes.arch import Arch, arch_named
from timetile.passes.candidates import Candidate, candidates
from timetile.passes.diagnostics import check_options, refuse
from timetile.passes.schedule_space import schedules
from timetile.passes.temporal_fusion import write_depths


def choose(loop: LoopOp, module: ModuleOp, arch: Arch, depth: int | None) -> Candidate | None:
    """
    The fastest candidate by the model, the first of equals. Where not even one step fits the registers,
    or not the depth that is asked for, they are spilled, and where the fields of one step do not fit the shared memory,
    blocks are lean. Tiles that stay, which have nothing but registers, are no choice then.
    """
    found = candidates(loop, module, arch, depth)
    for lean in (False, True):
        if not found:
            spilled = candidates(loop, module, arch, depth or 1, may_spill=True, lean=lean)
            found = [candidate for candidate in spilled if not candidate.schedule.stays]
    return found[0] if found else None


@dataclass(frozen=True)
class ChooseSchedulePass(ModulePass):
    """Choose a schedule for every time loop; see the module's documentation."""

    name = "choose-schedule"

    arch: str = "sm_90"
    depth: int | None = None
    multiprocessors: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, depth=1, multiprocessors=1)
        arch = arch_named(self.arch, self.multiprocessors)
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if not loop.updates or loop.schedule is not None:
                continue
            given = max(loop.depth_list) if loop.depths is not None else self.depth
            chosen = choose(loop, op, arch, given)
            if chosen is None and given is not None:
                # What was asked for does not fit the model's limits: the first layout may still do.
                loop.schedule = next(schedules(loop, arch)).to_attribute()
            elif chosen is None:
                refuse(
                    loop,
                    "no schedule of one step fits a multiprocessor, as its taps reach too far or its fields are too many; give "
                    "device-tiling a layout with fewer cells",
                )
            else:
                given = chosen.depth
                loop.schedule = chosen.schedule.to_attribute()
            if loop.depths is None:
                assert given is not None
                write_depths(loop, [given])
