"""Schedules left out for registers come back where one alike is slow and takes far fewer."""

import pytest

import timetile
from timetile import Field
from timetile.passes.scheduling.assembled import AssembledKernel, with_kernel
from timetile.passes.scheduling.candidates import Trials
from timetile.passes.scheduling.left_out import left_out
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.scheduling.turns import instructions_of
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options

TARGET, DEPTH = target_named("sm_90"), 12


@timetile.stencil
def heat(u: Field):
    u.next = u[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@pytest.mark.parametrize(("times", "slower", "tried"), [(2, 3, True), (1, 3, False), (2, 1, False)])
def test_tiles_like_a_slow_one_with_half_of_the_registers_come_back(
    times: int, slower: int, tried: bool
):
    module = raise_program(heat.module((8192, 8192), "float64"), Options(halos="common"))
    (loop,) = loops_of(module)
    trials = Trials(loop, module, TARGET)
    known = trials.compared(DEPTH, schedules(loop, TARGET)).found
    cost = known[0].cost
    issued = slower * instructions_of(cost)
    seen = with_kernel(known[0], AssembledKernel(cost.registers // times, 0.0, issued), TARGET)
    more = left_out(trials.spilling(), [seen], known)
    assert bool(more) == tried
    assert {each.depth for each in more} <= {DEPTH} and not set(more) & set(known)
