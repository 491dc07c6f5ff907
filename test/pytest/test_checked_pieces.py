"""The steps between two checks leave the newest values, and the numbers of the check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.schedules import (
    JoinColumnsPass,
    Schedule,
    block_plane,
    block_row,
    named,
    warp_row,
)
from support.steps import noise
from timetile import Field
from timetile.dialects.temporal import Reduction
from timetile.frontend.checked_programs import mark_numbers
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.runtime.arithmetic.reductions import greatest_or_least, reduced
from timetile.runtime.executors.runners import PlannedRunner
from timetile.runtime.kernels import alternating
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering

PLATE, VOLUME = (17, 140), (5, 9, 40)


@timetile.stencil
def plate(u: Field, change: Field, least: Field):
    u.next = 0.5 * u[0, 0] + 0.125 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    change.next = abs(u.next[0, 0] - u[0, 0])
    least.next = u.next[0, 0] * u[0, 0]


@timetile.stencil
def volume(u: Field, change: Field, least: Field):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next = 0.25 * u[0, 0, 0] + 0.125 * around
    change.next = abs(u.next[0, 0, 0] - u[0, 0, 0])
    least.next = u.next[0, 0, 0] * u[0, 0, 0]


KINDS = (Reduction.MAXIMUM, Reduction.MINIMUM)


@dataclass(frozen=True)
class Joined(Schedule):
    """Chunks that go on in the next column: a warp has several chunks."""

    def passes(self, *depths: int) -> tuple[ModulePass, ...]:
        return (*super().passes(*depths), JoinColumnsPass(30, 15))


ROWS = [
    Schedule("warp", warp_row(), Buffering(ahead=1, period=3)),
    Schedule("chunks", warp_row(), planes=5),
    Schedule("not-streamed", warp_row(), streaming=None),
    Joined("joined", warp_row(), Buffering(ahead=1, period=3)),
    Schedule("block", block_row(), Buffering(ahead=2, period=2)),
    Schedule("other-axis", replace(warp_row(cells=2), stream_axis=1), planes=61),
    Schedule(
        "resident",
        replace(block_row(), cells=(5, 3), lanes=(1, 32), warps=(2, 1), stream_axis="none"),
        streaming=None,
    ),
]


def numbered(model: timetile.Model, shape: tuple[int, ...]) -> ModuleOp:
    """The program of a model whose last two fields take numbers."""
    program = model.on(executor="planes").program(shape, "float64")
    module = program.module.clone()
    mark_numbers(module, KINDS)
    return module


def ended(
    module: ModuleOp, u: Any, steps: int, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[Any, list[float]]:
    """The newest values after one launch, and the numbers of all warps, reduced."""
    program = timetile.compile(module, halos="common", cache=False, **options)

    def run(self: PlannedRunner, loop: Any, steps: int, buffers: Any, around: Any) -> Any:
        made = alternating.alternating_function(loop, self.kernels.facts_of(loop), [steps])
        self.depths = {fact.name: fact.steps for fact in self.kernels.facts_of(loop)}
        return self.host.run(made, [steps, *buffers, *around])

    monkeypatch.setattr(PlannedRunner, "run", run)
    numbers = [np.full(u.shape, end) for end in (-np.inf, -np.inf, np.inf, np.inf)]
    fields = [u.copy(), u.copy(), *numbers]
    program(*fields, steps)
    monkeypatch.undo()
    found = [reduced(kind, fields[2 + 2 * k]) for k, kind in enumerate(KINDS)]
    return fields[1], [float(number) for number in found]


def judged(model: timetile.Model, u: Any, steps: int) -> tuple[Any, list[float]]:
    """The newest values, and the numbers, of the plain loop."""
    one = np.zeros_like(u)
    state = model.on(executor="numpy").advance({"u": u, "change": one, "least": one}, steps)
    return state["u"], [
        float(reduced(kind, state[name])) for kind, name in zip(KINDS, ("change", "least"))
    ]


@pytest.mark.parametrize("schedule", ROWS, ids=named)
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
def test_the_last_launch_leaves_the_numbers_of_its_last_step(
    schedule: Schedule, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    u, module = noise(*PLATE), numbered(plate, PLATE)
    found = ended(module, u, 3, monkeypatch, executor=executor, passes=schedule.passes(3))
    want = judged(plate, u, 3)
    assert np.array_equal(found[0], want[0])
    assert found[1] == want[1]


def test_volumes_leave_the_numbers_of_their_last_step(monkeypatch: pytest.MonkeyPatch):
    schedule = Schedule("block", block_plane((4, 2), (2, 1)), planes=5)
    u, module = noise(*VOLUME), numbered(volume, VOLUME)
    found = ended(module, u, 2, monkeypatch, executor="simt", passes=schedule.passes(2))
    want = judged(volume, u, 2)
    assert np.array_equal(found[0], want[0])
    assert found[1] == want[1]


@pytest.mark.parametrize("kind", [Reduction.MAXIMUM, Reduction.MINIMUM])
def test_the_host_reduces_numbers_of_warps_as_a_reduction_does(kind: Reduction):
    # A GPU's NaN has all bits set but the sign.
    nan, zeros = np.uint64(2**63 - 1).view(np.float64), [0.0, -0.0]
    rows = [zeros, [-0.0, -0.0, -3], [0.0, 3, 0], [1, nan, 0], [-np.inf, np.inf], [*zeros, 5, -5]]
    for row in rows:
        cells = np.array(row)
        assert greatest_or_least(kind, cells).tobytes() == reduced(kind, cells).tobytes()
