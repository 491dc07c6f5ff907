"""The schedules of steps that store several fields, and of single steps bound by memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

import timetile
from support.candidates import considered
from timetile.dialects.tile import KernelOp
from timetile.frontend.model import Model
from timetile.passes.scheduling.worth import by_worth

pytestmark = pytest.mark.usefixtures("chosen_by_model")


@timetile.stencil
def pair(u: timetile.Field, v: timetile.Field):
    u.next = u[0, 0] + 0.1 * v[0, 0]
    v.next[1:-1, 1:-1] = v[0, 0] + 0.1 * (u.next[1, 0] - u.next[0, -1])


@timetile.stencil
def three(u: timetile.Field, v: timetile.Field, w: timetile.Field):
    u.next = u[0, 0] + 0.1 * (v[0, 1] - w[-1, 0])
    v.next[1:-1, 1:-1] = v[0, 0] + 0.1 * (u.next[0, 0] - u.next[0, -1])
    w.next[1:-1, 1:-1] = w[0, 0] + 0.1 * (u.next[1, 0] - u.next[0, 0])


@timetile.stencil
def wave(u: timetile.Field, m: timetile.Field):
    far = u[-4, 0, 0] + u[4, 0, 0] + u[0, -4, 0] + u[0, 4, 0] + u[0, 0, -4] + u[0, 0, 4]
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * (far - 6 * u[0, 0, 0])


PLATE, CUBE = (8192, 8192), (512, 512, 512)


@pytest.mark.parametrize(("step", "levels"), [(pair, {"warp"}), (three, {"warp", "block"})])
def test_warps_share_strips_in_steps_that_store_many_fields(step: Model, levels: set[str]):
    found = considered(str(step.module(PLATE, "float32")), 2)
    assert {c.schedule.tile for c in found if len(c.schedule.cells) == 1} == levels


def test_strips_inside_are_free_of_the_boxes_of_updates():
    text = str(pair.module(PLATE, "float32"))
    strips = [c for c in considered(text, 2) if c.schedule.tile == "warp"]
    assert {c.schedule.guards for c in strips} == {"rim"}
    compiled = timetile.compile(text, executor="planes", halos="common", depth=2, cache=False)
    kernel = next(op for op in compiled.kernels.tiled.ops if isinstance(op, KernelOp))
    assert any(variant.is_interior for variant in kernel.variants or ())


@pytest.mark.parametrize(("share", "wide"), [(0.99, True), (0.97, False)])
def test_of_single_steps_that_compute_wide_rows_of_a_thread_come_first(share: float, wide: bool):
    """Cells side by side in a thread are read from shared memory as vectors."""
    found = considered(str(wave.module(CUBE, "float32")), 1)
    tile = next(c for c in found if c.schedule.cells == (2, 1) and c.schedule.tile == "block")
    busy = replace(tile.cost, compute_seconds=2 * tile.cost.memory_seconds)
    column = replace(tile, cost=busy)
    row = replace(column, schedule=replace(tile.schedule, cells=(1, 2)), worth=share * tile.worth)
    assert by_worth([column, row])[0] is (row if wide else column)


def test_of_single_steps_nearly_alike_the_one_with_fewest_registers_comes_first():
    """Four planes are kept on each side, and the memory decides."""
    found = considered(str(wave.module(CUBE, "float32")), 1)
    best = max(found, key=lambda each: each.worth)
    assert found[0].worth >= 0.95 * best.worth
    near = [c for c in found if c.worth >= 0.95 * best.worth and c.schedule.tile == "block"]
    assert found[0].cost.registers == min(c.cost.registers for c in near) < best.cost.registers
