"""Models and compiled programs in pickles, in copies and in other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile
from support.simulated import on_simulated
from timetile import Field, Scalar
from timetile.runtime.cache.store import Cache
from timetile.runtime.machine.teams import thread_count
from timetile.runtime.program.compiled_program import CompiledProgram

Again = Callable[[Any], Any]

HEAT = Path(__file__).parents[2] / "examples" / "heat2d.mlir"


@timetile.stencil
def heat(u: Field, c: Scalar):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    u.next = u[0, 0] + c * (around - 4 * u[0, 0])


@timetile.stencil
def long_step(u: Field):
    found = u[0]
    for k in range(1200):
        found = found + k * u[0]
    u.next = found


def is_low(u: Field) -> bool:
    """Whether all cells are below 0."""
    return bool(timetile.maximum(u[0, 0]) < 0)


def pickled(made: Any) -> Any:
    """An object, through a pickle."""
    return pickle.loads(pickle.dumps(made))


AGAIN = pytest.mark.parametrize("again", [pickled, copy.deepcopy, copy.copy])


def plates(count: int = 1) -> list[NDArray[Any]]:
    """Random plates."""
    rng = np.random.default_rng(5)
    return [rng.random((19, 23)) for _ in range(count)]


def run(program: CompiledProgram, steps: int) -> list[bytes]:
    """The bits of all buffers after some steps from one beginning."""
    u = np.random.default_rng(3).random((258, 258))
    buffers = [u, u.copy()]
    program(*buffers, steps=steps)
    return [buffer.tobytes() for buffer in buffers]


@AGAIN
@pytest.mark.parametrize("executor", ["cpu", "numpy"])
def test_a_program_that_has_run_gives_equal_bits_again(again: Again, executor: Any):
    program = timetile.compile(HEAT, executor=executor, threads=1, fp_contract="off")
    expected = run(program, 5)
    twin = again(program)
    assert twin is not program and twin.module is not program.module
    assert (twin.name, twin.executor, str(twin.module)) == (
        program.name, program.executor, str(program.module)
    )  # fmt: skip
    assert twin.kernels.options == program.kernels.options
    assert run(twin, 5) == expected


@AGAIN
def test_a_program_keeps_places_depth_and_warnings(again: Again, caplog: pytest.LogCaptureFixture):
    program = timetile.compile(HEAT, executor="cpu", depth=3, threads=1)
    twin = again(program)
    places = [[str(op.location) for op in each.module.walk()] for each in (program, twin)]
    assert places[0] == places[1] and any("heat2d.mlir" in place for place in places[0])
    assert twin.kernels.options.depth == 3 and twin.threads == 1
    run(twin, 1)
    assert "depth has no effect on the cpu executor" in caplog.text


def test_a_pickle_finds_its_kernels_in_the_cache(tmp_path: Path):
    cache = Cache(tmp_path)
    program = timetile.compile(HEAT, executor="planes", depth=2, cache=cache)
    expected = program.kernels.facts
    files = {path.name for path in tmp_path.glob("*.entry")}
    twin = pickled(program)
    assert twin.kernels.cache == cache and twin.kernels.key == program.kernels.key
    assert twin.kernels.facts == expected and "tiled" not in twin.kernels.__dict__
    assert {path.name for path in tmp_path.glob("*.entry")} == files


def test_a_pickle_holds_no_number_of_threads_of_this_machine(monkeypatch: pytest.MonkeyPatch):
    kept = pickle.dumps(timetile.compile(HEAT, executor="cpu"))
    monkeypatch.setenv("TIMETILE_NUM_THREADS", str(thread_count(None) + 3))
    assert pickle.loads(kept).threads == thread_count(None)


@AGAIN
def test_a_model_that_has_run_gives_equal_bits_again(again: Again):
    u = plates()[0]
    expected = heat.advance({"u": u}, steps=7, c=0.2)
    heat.advance({"u": u}, 4, until=is_low, every=2, c=0.2)
    twin = again(heat)
    assert twin.step.label == heat.step.label
    assert twin.advance({"u": u}, steps=7, c=0.2)["u"].tobytes() == expected["u"].tobytes()


@AGAIN
def test_states_stay_states(again: Again):
    state = heat.advance({"u": plates()[0]}, steps=3, c=0.2)
    twin = again(state)
    assert type(twin) is type(state) and twin.steps == 3 and not twin.stopped
    assert twin["u"].tobytes() == state["u"].tobytes()


@cache
def text_of_long_step() -> str:
    """The program of a step with a long expression."""
    return str(long_step.module((5,)))


@AGAIN
def test_long_expressions_are_no_deep_recursion(again: Again):
    twin = again(long_step.step)
    assert str(timetile.Model(twin).module((5,))) == text_of_long_step()


def advanced_elsewhere(u: NDArray[Any], c: float) -> Any:
    """The plate after some steps in a spawned process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        call = pool.apply_async(partial(heat.advance, steps=7, c=c), ({"u": u},))
        return call.get(timeout=120)


def test_a_model_runs_in_a_spawned_process():
    u = plates()[0]
    expected = heat.advance({"u": u}, steps=7, c=0.2)
    assert advanced_elsewhere(u, 0.2)["u"].tobytes() == expected["u"].tobytes()


def test_a_model_runs_under_joblib():
    joblib: Any = pytest.importorskip("joblib")
    expected = [heat.advance({"u": u}, steps=7, c=0.2) for u in plates(3)]
    found = joblib.Parallel(n_jobs=2)(
        joblib.delayed(heat.advance)({"u": u}, steps=7, c=0.2) for u in plates(3)
    )
    for state, wanted in zip(found, expected, strict=True):
        assert state["u"].tobytes() == wanted["u"].tobytes()


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_model_runs_under_dask(scheduler: str):
    dask: Any = pytest.importorskip("dask")
    expected = [heat.advance({"u": u}, steps=7, c=0.2) for u in plates(2)]
    tasks = [dask.delayed(heat.advance)({"u": u}, steps=7, c=0.2) for u in plates(2)]
    found = dask.compute(*tasks, scheduler=scheduler, num_workers=1)
    for state, wanted in zip(found, expected, strict=True):
        assert state["u"].tobytes() == wanted["u"].tobytes()


@AGAIN
def test_errors_come_whole_from_other_processes(again: Again):
    def wrong(u: Field):
        u.next = u[0] if u[0] > 0 else u[1]

    with pytest.raises(timetile.StencilError) as caught:
        timetile.stencil(wrong)
    twin = again(caught.value)
    assert str(twin) == str(caught.value) and "^" in str(twin)
    assert (twin.reason, twin.file, twin.line) == (
        caught.value.reason, caught.value.file, caught.value.line
    )  # fmt: skip


def test_a_program_on_several_gpus_is_copied():
    program, _ = on_simulated(HEAT.read_text(), 2, every=2)
    twin = copy.copy(program)
    assert (twin.decomposition, twin.exchange_every) == (program.decomposition, 2)
    assert str(twin.module) == str(program.module) and twin.placed is not program.placed


def test_a_program_of_ranks_is_not_pickled():
    comm: Any = pytest.importorskip("mpi4py.MPI").COMM_SELF
    program = timetile.compile(HEAT, comm=comm, executor="cpu", threads=1)
    with pytest.raises(TypeError) as caught:
        pickle.dumps(program)
    assert str(caught.value) == (
        "@heat2d runs on ranks, and is neither pickled nor copied; compile the program with comm "
        "in each process"
    )
