"""Layers with short rows are stored alone during a run."""

import numpy as np
import pytest

import timetile
from timetile import Field
from timetile.dialects.temporal import ScratchOp
from timetile.passes.loops import store_layers
from timetile.runtime.program.compile import STORE_LAYERS, compile_part
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

SHAPE = (7, 9, 47)


@timetile.stencil
def layered(u: Field, f: Field, k: Field):
    here = (0, 0, 0)
    u.next[1:-1, 1:-1, 1:-1] = u[here] + 0.2 * (u[0, 0, -1] + u[0, 0, 1] - 2 * u[here])
    for rows in (slice(1, 5), slice(-5, -1)):
        f.next[1:-1, 1:-1, rows] = 0.5 * f[here] + k[here] * (u[0, 0, 1] - u[0, 0, -1])
        u.next[1:-1, 1:-1, rows] = u.next[here] + f.next[here]


@pytest.fixture(autouse=True)
def layers_of_any_size(monkeypatch: pytest.MonkeyPatch):
    """Volumes of a test are small, and the environment asks for fields of layers."""
    monkeypatch.setattr(store_layers, "LEAST_CELLS", 1)
    monkeypatch.setenv(STORE_LAYERS, "1")


def compiled(executor: Executor) -> CompiledProgram:
    """The program in an executor."""
    module = layered.module(SHAPE, "float64")
    return timetile.compile(module, executor=executor, halos="common", cache=False)


def scratch_fields(program: CompiledProgram) -> int:
    """The number of scratch fields of a program's source."""
    return sum(isinstance(op, ScratchOp) for op in program.kernels.source.walk())


def ends_of(program: CompiledProgram) -> tuple[list[bytes], list[object]]:
    """All fields after 1, 4 and 2 steps and a run with stops, and the latest fields of each run."""
    generator, latest = np.random.default_rng(5), list[object]()
    u, f, k = (generator.random(SHAPE) for _ in range(3))
    arrays = [u, u.copy(), f, f.copy(), k]
    going = tuple(arrays)
    for steps in (1, 4, 2):
        result = program(*going, steps=steps)
        going = result.buffers
        latest.append(result.latest)
    *_, (_, going) = program.snapshots(going, steps=3, every=2)
    return [each.tobytes() for each in arrays], latest


def test_calls_go_on_with_the_buffers_of_the_program():
    """Buffers change places after an odd number of steps, as without fields of layers."""
    program = compiled("planes")
    assert scratch_fields(program) == 4
    assert ends_of(program) == ends_of(compiled("numpy"))


def test_layers_stay_in_whole_fields_unless_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(STORE_LAYERS)
    assert scratch_fields(compiled("planes")) == 0


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
