"""Settings: predicted from a schedule before kernels exist, and read from placed kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.catalogue import entry
from support.programs import program_text
from timetile.dialects.tile import KernelOp, ScheduleAttr
from timetile.dialects.tile.schedule import Schedule
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.placed import layout_of
from timetile.passes.cost.setting import Setting
from timetile.passes.diagnostics import CompileError
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.loading.modules import load

PROGRAMS = (("heat-2d", (300, 410)), ("heat-3d", (40, 70, 130)), ("box-2d", (300, 410)))


def considered(name: str, domain: tuple[int, ...]) -> list[Schedule]:
    """The schedules compared for a program."""
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    target = target_named("h200")
    return [
        replace(schedule, blocks=(3, *schedule.blocks[1:])) if schedule.blocks else schedule
        for schedule in schedules(loop, target)
    ]


def placed_kernel(name: str, domain: tuple[int, ...], schedule: Schedule) -> KernelOp | None:
    """The kernel of two steps placed by a schedule; None if the tile is too small."""
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    loop.schedule = ScheduleAttr(schedule)
    write_depths(loop, [2])
    try:
        run_passes(tile_passes(), module)
    except CompileError as error:
        assert "its taps reach further than the tile is wide" in str(error)
        return None
    return next((op for op in module.ops if isinstance(op, KernelOp) and op.steps.data == 2), None)


@pytest.mark.parametrize(("name", "domain"), PROGRAMS)
@given(data=st.data())
def test_a_schedule_has_the_setting_of_the_kernel_placed_by_it(
    name: str, domain: tuple[int, ...], data: st.DataObject
):
    """Guards and joined planes depend on the program, too, and are left out."""
    schedule = data.draw(st.sampled_from(considered(name, domain)))
    kernel = placed_kernel(name, domain, schedule)
    if kernel is None:
        return
    foreseen, found = Setting.of(schedule), Setting.of_kernel(kernel)
    if layout_of(kernel).warps * layout_of(kernel).blocks == 1:
        # A single warp waits for nobody, however the schedule says it would.
        foreseen = replace(foreseen, splits=False)
    assert replace(foreseen, guards=found.guards, joins=found.joins) == found


@pytest.mark.parametrize(
    ("name", "domain", "shapes"),
    [
        ("heat-1d", (10_000,), {TileShape.LINE}),
        ("heat-2d", (300, 410), {TileShape.STRIP, TileShape.PLATE}),
        ("heat-3d", (40, 70, 130), {TileShape.PENCIL, TileShape.VOLUME}),
    ],
)
def test_a_schedule_has_the_shape_of_its_kernel(
    name: str, domain: tuple[int, ...], shapes: set[TileShape]
):
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    kernels, found = TrialKernels(loop, module), set[TileShape]()
    for schedule in considered(name, domain):
        facts = kernels.facts(2, schedule)
        assert facts is not None
        assert kernels.shape(schedule) is facts.shape
        found.add(facts.shape)
    assert found == shapes
