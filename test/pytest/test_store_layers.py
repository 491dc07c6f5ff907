"""Layers with short rows are stored alone during a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from timetile import Field
from timetile.dialects.temporal import ScratchOp
from timetile.dialects.tile.kinds import TileLevel
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.lowering.pipelines import tile_passes
from timetile.passes.loops import store_layers
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.step_parts import region_parts
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program import whole_fields
from timetile.runtime.program.compile import compile_part
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

SHAPE = (7, 9, 47)


@timetile.stencil
def layered(u: Field, f: Field, g: Field, k: Field):
    """A wave with two memories in layers: the second reads the first beside its own cell."""
    here = (0, 0, 0)
    u.next[1:-1, 1:-1, 1:-1] = u[here] + 0.2 * (u[0, 0, -1] + u[0, 0, 1] - 2 * u[here])
    for rows in (slice(1, 5), slice(-5, -1)):
        f.next[1:-1, 1:-1, rows] = 0.5 * f[here] + k[here] * (u[0, 0, 1] - u[0, 0, -1])
        g.next[1:-1, 1:-1, rows] = 0.5 * g[here] + f.next[0, 0, 1] - f.next[0, 0, -1]
        u.next[1:-1, 1:-1, rows] = u.next[here] + g.next[here]


@pytest.fixture(autouse=True)
def layers_of_any_size(monkeypatch: pytest.MonkeyPatch):
    """Volumes and runs of a test are small."""
    monkeypatch.setattr(store_layers, "LEAST_CELLS", 1)
    monkeypatch.setattr(whole_fields, "LEAST_STEPS", 3)


@dataclass(frozen=True)
class InRegions(ModulePass):
    """Gives a time loop a schedule in regions, and the inside a tile of two warps."""

    name = "in-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [each for each in loops_of(op) if each.sweep is None]:
            split = StepInRegions(loop).split
            assert split is not None
            memory = Schedule(
                tile=TileLevel.BLOCK, cells=(1, 1, 2), lanes=(1, 1, 32), warps=(1, 2, 1), pack=1,
                ahead=0, resident=True, reads_memory=True, regions=True,
                cuts=region_parts(split, again=False),
            )  # fmt: skip
            inside = Schedule(
                tile=TileLevel.BLOCK, cells=(2, 1), lanes=(1, 32), warps=(2, 1), pack=1, ahead=1,
                occupancy=1,
            )  # fmt: skip
            loop.schedule, loop.inside = ScheduleAttr(memory), ScheduleAttr(inside)
        ChooseSchedulePass().apply(ctx, op)


PASSES = tuple(
    InRegions() if isinstance(each, ChooseSchedulePass) else each for each in tile_passes(depth=1)
)


def compiled(executor: Executor) -> CompiledProgram:
    """The program in an executor; of executors of kernels, in regions."""
    module, passes = layered.module(SHAPE, "float64"), None if executor == "numpy" else PASSES
    return timetile.compile(module, executor=executor, halos="common", passes=passes, cache=False)


def scratch_fields(program: CompiledProgram) -> int:
    """The number of scratch fields of a program's source."""
    return sum(isinstance(op, ScratchOp) for op in program.kernels.source.walk())


def drawn_fields() -> list[NDArray[np.float64]]:
    """Fields with equal cells in the buffers of a field."""
    generator = np.random.default_rng(5)
    u, f, g, k = (generator.random(SHAPE) for _ in range(4))
    return [u, u.copy(), f, f.copy(), g, g.copy(), k]


def bits(arrays: Sequence[NDArray[np.float64]]) -> list[bytes]:
    """The bits of fields."""
    return [each.tobytes() for each in arrays]


def ends_of(program: CompiledProgram) -> tuple[list[bytes], list[object]]:
    """All fields after runs of few and of more steps, and the latest fields of each run."""
    arrays, latest = drawn_fields(), list[object]()
    going = tuple(arrays)
    for steps in (1, 4, 2):
        result = program(*going, steps=steps)
        going = result.buffers
        latest.append(result.latest)
    *_, (_, going) = program.snapshots(going, steps=3, every=2)
    return bits(arrays), latest


def test_calls_go_on_with_the_buffers_of_the_program():
    """Buffers change places after an odd number of steps, as without fields of layers."""
    program = compiled("planes")
    assert scratch_fields(program) == 10
    assert ends_of(program) == ends_of(compiled("numpy"))


def test_layers_in_regions_keep_their_bits():
    program, fields, expected = compiled("simt"), drawn_fields(), drawn_fields()
    program(*fields, steps=3)
    compiled("numpy")(*expected, steps=3)
    assert bits(fields) == bits(expected)


@timetile.stencil
def damped(u: Field, k: Field):
    """A wave with a damped layer on one side: the coefficient alone is read in short rows."""
    inside = (slice(1, -1), slice(1, -1), slice(1, -1))
    u.next[inside] = u[0, 0, 0] + 0.2 * (u[0, 0, -1] - u[0, 0, 1])
    u.next[1:-1, 1:-1, 1:5] = u.next[0, 0, 0] * k[0, 0, 0]


def test_runs_of_few_steps_use_whole_fields():
    module = damped.module(SHAPE, "float64")
    program = timetile.compile(module, executor="planes", halos="common", depth=1, cache=False)
    assert scratch_fields(program) == 1
    fields = [np.ones(SHAPE) for _ in range(3)]
    program(*fields, steps=3)
    assert program.whole.made is None
    program(*fields, steps=2)
    assert program.whole.made is not None
    assert scratch_fields(program.whole.made) == 0


def test_runs_of_few_steps_are_of_the_program_compiled(tmp_path: Path):
    path = tmp_path / "layered.mlir"
    path.write_text(str(layered.module(SHAPE, "float64")))
    program = timetile.compile(path, executor="planes", halos="common", passes=PASSES, cache=False)
    path.write_text("no program")
    fields, expected = drawn_fields(), drawn_fields()
    program(*fields, steps=1)
    compiled("numpy")(*expected, steps=1)
    assert program.whole.made is not None and bits(fields) == bits(expected)


def test_parts_of_a_domain_keep_whole_fields():
    module = layered.module(SHAPE, "float64")
    assert scratch_fields(compile_part(module, executor="planes", cache=False)) == 0


@timetile.stencil
def plate(u: Field, f: Field):
    for rows in (slice(1, 5), slice(-5, -1)):
        f.next[1:-1, rows] = 0.5 * f[0, 0] + u[0, 1] - u[0, -1]
        u.next[1:-1, rows] = u[0, 0] + f.next[0, 0]


def test_plates_keep_whole_fields():
    module = plate.module((40, 90), "float64")
    assert scratch_fields(timetile.compile(module, executor="planes", cache=False)) == 0
