"""Machine code of time loops ends with the bits of the NumPy executor, on any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.blocked import passes
from support.catalogue import CATALOGUE, Domain, Entry, entry, star, sum_program
from support.compare import assert_same_bits
from support.description import Inputs, Program, random_inputs
from support.generate import programs
from support.programs import program_text
from support.sizes import spread
from timetile.lowering.cpu.convert_temporal_to_llvm import functions_of
from timetile.passes.analysis import skews
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine import llvm, teams
from timetile.runtime.machine.llvm import Processor
from timetile.runtime.machine.teams import PythonBarrier, Team, available_threads, thread_count
from timetile.runtime.native import loops as native
from timetile.runtime.native import program as machine_code
from timetile.runtime.native.loops import rotated
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

THREADS = (1, 2, 5)


@pytest.fixture
def large_teams(monkeypatch: pytest.MonkeyPatch):
    """Threads share even a few cells, and Python hears of each step."""
    monkeypatch.setattr(native, "CELLS_PER_THREAD", 1)
    monkeypatch.setattr(native, "CELLS_PER_CALL", 1)


def compiled_for(program: Program, executor: Executor, threads: int = 1) -> CompiledProgram:
    """A program, compiled anew."""
    return timetile.compile(program_text(program), executor=executor, threads=threads, cache=False)


def left(compiled: CompiledProgram, program: Program, inputs: Inputs, steps: int) -> Inputs:
    """The fields after a run on copies of the inputs."""
    found = inputs.copy()
    compiled(*found.arguments(program, steps))
    return found


def check(program: Program, steps: int, threads: tuple[int, ...] = THREADS) -> None:
    """Machine code ends like NumPy on any number of threads."""
    inputs = random_inputs(program, seed=steps)
    expected = left(compiled_for(program, "numpy"), program, inputs, steps)
    compiled = compiled_for(program, "cpu")
    for compiled.threads in threads:
        found = left(compiled, program, inputs, steps)
        assert_same_bits(program, expected, found, f"{steps} steps on {compiled.threads} threads")


CASES = spread([(case, domain) for case in CATALOGUE for domain in case.domains])
"""
The test of all executors runs each program on one thread; here several threads share a program.
"""


@pytest.mark.usefixtures("large_teams")
@pytest.mark.parametrize(("case", "domain"), CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_native_code_leaves_the_bits_of_every_program_of_the_catalogue(case: Entry, domain: Domain):
    check(case.make(domain), case.depth + 2)


@given(program=programs(), steps=st.integers(0, 9), threads=st.integers(1, 5))
def test_native_code_leaves_the_bits_of_drawn_programs(program: Program, steps: int, threads: int):
    note(program_text(program))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "CELLS_PER_THREAD", 1)
        check(program, steps, (threads,))


# Passes of many steps.


PASSES = {
    "depth": st.integers(1, 7),
    "rows": st.integers(1, 5),
    "columns": st.integers(1, 9),
    "threads": st.integers(1, 4),
}


@given(program=programs(), steps=st.integers(0, 16), **PASSES)
def test_many_steps_may_pass_over_a_field_at_once(
    program: Program, steps: int, depth: int, rows: int, columns: int, threads: int
):
    """Passes of any depth over any parts of a field end like single steps."""
    note(program_text(program))
    with passes(depth, rows, columns):
        check(program, steps, (threads,))


@pytest.mark.parametrize(("case", "domain"), CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_passes_of_many_steps_keep_the_bits_of_the_catalogue(case: Entry, domain: Domain):
    with passes(5, 3, 4):
        check(case.make(domain), 12)


@pytest.mark.parametrize("name", ["heat-1d", "heat-2d", "coupled-2d"])
def test_lags_shorter_by_a_cell_are_found(name: str, monkeypatch: pytest.MonkeyPatch):
    """Steps with a lag smaller by one cell end with other bits than NumPy."""
    case = entry(name)
    program = case.make(case.domains[0])
    needed = skews.needed_lags

    def less(rotation: Sequence[int], accesses: skews.Accesses, count: int) -> skews.Lags:
        lags = needed(rotation, accesses, count)
        return skews.Lags(lags.step - 1, lags.updates)

    with passes(4, 1, 1):
        check(program, 8, (1,))
        monkeypatch.setattr(skews, "needed_lags", less)
        with pytest.raises(AssertionError, match="8 steps on 1 threads"):
            check(program, 8, (1,))


OF_TWO_RANKS = """
func.func @both(%a: !stencil.field<[-1,41]xf64>, %b: !stencil.field<[-1,41]xf64>,
                %u: !stencil.field<[-1,21]x[-1,31]xf64>, %v: !stencil.field<[-1,21]x[-1,31]xf64>,
                %n: index) {
  %start = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:4 = scf.for %t = %start to %n step %one iter_args(%p = %a, %q = %b, %x = %u, %y = %v) -> (
      !stencil.field<[-1,41]xf64>, !stencil.field<[-1,41]xf64>,
      !stencil.field<[-1,21]x[-1,31]xf64>, !stencil.field<[-1,21]x[-1,31]xf64>) {
    %line = stencil.load %p : !stencil.field<[-1,41]xf64> -> !stencil.temp<?xf64>
    %sum = stencil.apply(%in = %line : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l = stencil.access %in[-1] : !stencil.temp<?xf64>
      %r = stencil.access %in[1] : !stencil.temp<?xf64>
      %s = arith.addf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %sum to %q(<[0], [40]>) : !stencil.temp<?xf64> to !stencil.field<[-1,41]xf64>
    %plane = stencil.load %x : !stencil.field<[-1,21]x[-1,31]xf64> -> !stencil.temp<?x?xf64>
    %product = stencil.apply(%in = %plane : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
      %l = stencil.access %in[-1, 0] : !stencil.temp<?x?xf64>
      %r = stencil.access %in[0, 1] : !stencil.temp<?x?xf64>
      %s = arith.mulf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %product to %y(<[0, 0], [20, 30]>)
      : !stencil.temp<?x?xf64> to !stencil.field<[-1,21]x[-1,31]xf64>
    scf.yield %q, %p, %y, %x : !stencil.field<[-1,41]xf64>, !stencil.field<[-1,41]xf64>,
      !stencil.field<[-1,21]x[-1,31]xf64>, !stencil.field<[-1,21]x[-1,31]xf64>
  }
  func.return
}
"""


@pytest.mark.parametrize("threads", THREADS)
def test_a_step_may_have_fields_of_one_axis_and_of_two(threads: int):
    left_by: list[list[np.ndarray]] = []
    for executor in ("numpy", "cpu"):
        rng = np.random.default_rng(3)
        fields = [rng.random(shape) for shape in ((42,), (42,), (22, 32), (22, 32))]
        with passes(3, 2, 5):
            compiled = timetile.compile(
                OF_TWO_RANKS, executor=executor, threads=threads, cache=False
            )
            compiled(*fields, 8)
        left_by.append(fields)
    for expected, found in zip(*left_by, strict=True):
        assert np.array_equal(expected, found)


BOUNDED = """
func.func private @mean(%0: f64, %1: f64, %2: f64) -> f64 {
  %third = arith.constant 3.000000e-01 : f64
  %s = arith.addf %0, %1 : f64
  %t = arith.addf %s, %2 : f64
  %r = arith.mulf %t, %third : f64
  func.return %r : f64
}
func.func @run(%A: !stencil.field<[-1,41]x[-1,18]xf64>, %B: !stencil.field<[-1,41]x[-1,18]xf64>,
               %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @mean(%a[-1, 0], %a[1, 0], %a[0, 1]) in <[0, 0], [40, 17]>
      outside #temporal.boundary<KIND>
  } : !stencil.field<[-1,41]x[-1,18]xf64>, !stencil.field<[-1,41]x[-1,18]xf64>
  func.return
}
"""


@pytest.mark.parametrize("kind", ["periodic", "mirror"])
def test_boundaries_are_updates_as_others(kind: str):
    """
    A periodic axis reaches across the whole box: no team has blocks for all updates of a step, and
    the updates run one by one.
    """
    text = BOUNDED.replace("KIND", kind)
    start = np.random.default_rng(4).random((2, 42, 19))
    expected = start.copy()
    timetile.compile(text, executor="numpy", cache=False)(*expected, 8)
    with passes(3, 2, 5):
        compiled = timetile.compile(text, executor="cpu", cache=False)
        for compiled.threads in THREADS:
            found = start.copy()
            compiled(*found, 8)
            assert np.array_equal(expected, found), compiled.threads


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("sides", [(900, 900), (40, 160, 160)])
def test_fields_beyond_a_core_s_cache_are_passed_over_by_many_steps(sides: tuple[int, ...]):
    """The unchanged choice of the runtime."""
    program = sum_program("f64", star(len(sides), 1))(sides)
    inputs = random_inputs(program, seed=6)
    expected = left(compiled_for(program, "numpy"), program, inputs, 10)
    compiled = compiled_for(program, "cpu")
    (code,) = compiled.native.loops.values()
    for compiled.threads in (1, 2):
        assert code.blocking(10, compiled.threads).depth > 1
        found = left(compiled, program, inputs, 10)
        assert_same_bits(program, expected, found, f"{sides} on {compiled.threads} threads")


def test_large_fields_are_shared_by_threads_as_they_are():
    """One axis of two spans, with the least number of cells of a thread unchanged."""
    program = sum_program("f32", star(1, 1))((2 * native.CELLS_PER_THREAD + 3,))
    check(program, 4, (1, 2, 3))


@pytest.mark.usefixtures("large_teams")
def test_python_can_be_where_threads_wait(monkeypatch: pytest.MonkeyPatch):
    """Where the C library has no barriers, as on macOS."""
    made: list[PythonBarrier] = []

    def barrier(threads: int) -> PythonBarrier:
        made.append(PythonBarrier(threads))
        return made[-1]

    monkeypatch.setattr(teams, "c_library", lambda: None)
    monkeypatch.setattr(teams, "make_barrier", barrier)
    llvm.binding().add_symbol(llvm.BARRIER, teams.barrier_function())
    try:
        check(entry("coupled-2d").make((19, 43)), 5, (3,))
    finally:
        monkeypatch.undo()
        llvm.binding().add_symbol(llvm.BARRIER, teams.barrier_function())
    assert made and not PythonBarrier.known


@pytest.mark.parametrize("steps", range(8))
def test_buffers_rotate_as_in_the_loop(steps: int):
    names, rotation = list("abcde"), [2, 0, 1, 4, 3]
    expected = names
    for _ in range(steps):
        expected = [expected[k] for k in rotation]
    assert rotated(names, rotation, steps) == expected


def temporal(program: Program) -> ModuleOp:
    """A program at temporal level."""
    return timetile.compile(program_text(program), executor="cpu", cache=False).module


@pytest.mark.parametrize("name", ["heat-2d", "roots-2d", "gray-scott-2d", "mixed-2d", "wave-3d"])
def test_inner_loops_are_vectorised(name: str):
    """No cell is computed alone, except for remaining cells at the end of a row."""
    case = entry(name)
    module = ModuleOp(functions_of(loops_of(temporal(case.make(case.domains[0])))))
    text = str(llvm.optimised(module, llvm.target_machine()))
    assert "x double>" in text or "x float>" in text
    assert "fmuladd" not in text and " fast " not in text and " contract " not in text


def test_code_of_several_updates_stays_out_of_its_callers():
    """Rows of a few cells at edges get short code, and rows inside do not."""
    text = BOUNDED.replace("KIND", "periodic")
    module = timetile.compile(text, executor="cpu", cache=False).module
    made = llvm.llvm_text(ModuleOp(functions_of(loops_of(module))), llvm.target_machine())
    updates = [line for line in made.splitlines() if "define" in line and ".update" in line]
    assert len(updates) > 1 and all(" noinline" in line for line in updates)
    assert {"optsize" in line for line in updates if ".part" not in line} == {True, False}


# The disk cache.


def kept_code(module: ModuleOp, cache: Cache) -> bytes:
    """The machine code of a program, from a cache."""
    return machine_code.code_of(module, loops_of(module), cache)


def test_machine_code_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module, cache = temporal(entry("heat-1d").make((7,))), Cache(tmp_path / "cache")
    made = kept_code(module, cache)

    def never(module: ModuleOp) -> bytes:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(machine_code, "object_code", never)
    assert kept_code(module, cache) == made
    with pytest.raises(AssertionError, match="compiled again"):
        kept_code(temporal(entry("heat-1d").make((8,))), cache)


@pytest.mark.parametrize(
    "other",
    [
        Processor("x86_64-unknown-linux-gnu", "znver9", "+avx"),
        Processor("aarch64-apple-darwin", "apple-m9", "+neon"),
    ],
)
def test_machine_code_of_another_processor_is_not_loaded(
    other: Processor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def of_another(module: ModuleOp) -> bytes:
        return b"of another"

    module, cache = temporal(entry("heat-1d").make((7,))), Cache(tmp_path / "cache")
    kept_code(module, cache)
    with monkeypatch.context() as patch:
        patch.setattr(machine_code, "processor", lambda: other)
        patch.setattr(machine_code, "object_code", of_another)
        assert kept_code(module, cache) == b"of another"
    assert kept_code(module, cache) != b"of another"


# Threads.


def test_the_number_of_threads_is_given_or_set_or_the_number_of_cores(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("TIMETILE_NUM_THREADS", raising=False)
    assert thread_count(None) == available_threads() >= 1
    monkeypatch.setenv("TIMETILE_NUM_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(7) == 7


@pytest.mark.parametrize("threads", [0, -1, True])
def test_threads_are_at_least_one(threads: int):
    with pytest.raises(ValueError, match=f"threads is a number from 1 on, got {threads!r}"):
        timetile.compile(program_text(entry("heat-1d").make((7,))), threads=threads)


@pytest.mark.parametrize("said", ["0", "-2", "many"])
def test_the_environment_says_a_number(said: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIMETILE_NUM_THREADS", said)
    message = (
        f"TIMETILE_NUM_THREADS is a number from 1 on, got '{said}'; unset it, or set it to one"
    )
    with pytest.raises(ValueError, match=message):
        thread_count(None)


def test_an_error_of_a_thread_is_raised_and_threads_end():
    def fails() -> None:
        raise ArithmeticError("on a thread")

    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="on a thread"), Team(2) as team:
        team.run([lambda: None, fails])
    assert threading.active_count() == before


def test_progress_is_told_of_all_steps(monkeypatch: pytest.MonkeyPatch):
    program = entry("heat-1d").make((211,))
    monkeypatch.setattr(native, "CELLS_PER_CALL", 3 * 211)
    compiled = timetile.compile(program_text(program), executor="cpu", cache=False)
    told: list[tuple[int, int]] = []
    inputs = random_inputs(program, seed=1)
    compiled(*inputs.arguments(program, 8), progress=lambda done, all: told.append((done, all)))
    assert told == [(3, 8), (6, 8), (8, 8)]


def test_arrays_may_lie_at_any_address():
    """NumPy's arrays may begin at any byte, not only at a multiple of the elements' size."""
    program = entry("heat-1d").make((211,))
    inputs = random_inputs(program, seed=2)
    expected = left(compiled_for(program, "numpy"), program, inputs, 5)
    for name, array in inputs.arrays.items():
        odd = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
        odd[...] = array
        inputs.arrays[name] = odd
    compiled = timetile.compile(program_text(program), executor="cpu", cache=False)
    compiled(*inputs.arguments(program, 5))
    assert_same_bits(program, expected, inputs, "odd addresses")
