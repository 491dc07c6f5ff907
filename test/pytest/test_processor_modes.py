"""Results and kernels do not depend on the modes of floating point of the caller's thread."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import timetile
from timetile.runtime.cache.store import Cache
from timetile.runtime.machine.floating_point import library_of_modes, standard_modes
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the modes are set by the bits of an x86-64 processor"
)

MXCSR = 28
"""The byte of the word with the modes in `fenv_t` of x86-64."""

MODES = {
    "subnormals are zero": 0x8040,
    "rounding down": 0x2000,
    "rounding up": 0x4000,
    "rounding to zero": 0x6000,
}

SMALL = np.float32(1e-40)


@contextmanager
def modes(bits: int) -> Generator[None]:
    """This thread computes in other modes."""
    library = library_of_modes()
    found, other = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
    library.fegetenv(found)
    library.fegetenv(other)
    word = ctypes.c_uint32.from_buffer(other, MXCSR)
    word.value |= bits
    library.fesetenv(other)
    try:
        yield
    finally:
        library.fesetenv(found)


def program(dtype: str, constant: str, cells: int) -> str:
    """A sweep that multiplies by a third and adds a constant."""
    field = f"!stencil.field<[0,{cells}]x{dtype}>"
    temp = f"!stencil.temp<[0,{cells}]x{dtype}>"
    return f"""
func.func @scale(%u : {field}, %v : {field}) {{
  %a = stencil.load %u : {field} -> {temp}
  %b = stencil.apply(%x = %a : {temp}) -> ({temp}) {{
    %third = arith.constant 0.3333333333 : {dtype}
    %small = arith.constant {constant} : {dtype}
    %c = stencil.access %x[0] : {temp}
    %d = arith.mulf %c, %third : {dtype}
    %e = arith.addf %d, %small : {dtype}
    stencil.return %e : {dtype}
  }}
  stencil.store %b to %v(<[0], [{cells}]>) : {temp} to {field}
  return
}}
"""


def numbers(dtype: str, cells: int) -> np.ndarray:
    """Subnormal, small and usual numbers."""
    rng = np.random.default_rng(5)
    tiny = float(np.finfo(dtype).smallest_normal)
    scales = np.array([1.0, tiny, tiny * 2**-10])[rng.integers(0, 3, cells)]
    return np.asarray(rng.uniform(-4, 4, cells) * scales, dtype)


NUMBERS = {dtype: numbers(dtype, 300) for dtype in ("float32", "float64")}


def scaled(text: str, executor: Executor, threads: int | None, cache: Cache | bool) -> np.ndarray:
    """The cells after a run, compiled and run in the modes of this moment."""
    dtype = "float32" if "f32" in text else "float64"
    compiled = timetile.compile(text, executor=executor, threads=threads, cache=cache, arch="sm_90")
    u, v = NUMBERS[dtype].copy(), np.zeros(300, dtype)
    compiled(u, v)
    return v.view(f"u{v.itemsize}")


def test_other_modes_change_numpy_s_results():
    """The tests below would pass without modes."""
    for name, bits in MODES.items():
        with modes(bits):
            differs = NUMBERS["float64"] * 0.3333333333
        assert not np.array_equal(differs, NUMBERS["float64"] * 0.3333333333), name


@pytest.mark.covering(times=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype, constant", [("f32", "1.0e-40"), ("f64", "3.0e-310")])
@pytest.mark.parametrize(
    "executor, threads", [("cpu", 1), ("cpu", 3), ("numpy", None), ("planes", None), ("ptx", None)]
)
def test_runs_compute_in_the_standard_modes(
    mode: str, dtype: str, constant: str, executor: Executor, threads: int | None
):
    text = program(dtype, constant, 300)
    wanted = scaled(text, executor, threads, cache=False)
    with modes(MODES[mode]):
        found = scaled(text, executor, threads, cache=False)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("executor", ["cpu", "ptx"])
def test_nothing_in_the_cache_was_made_in_other_modes(executor: Executor, tmp_path: Path):
    text = program("f32", "1.0e-40", 300)
    with modes(MODES["subnormals are zero"]):
        scaled(text, executor, None, Cache(tmp_path / "one"))
    kept = scaled(text, executor, None, Cache(tmp_path / "one"))
    assert np.array_equal(kept, scaled(text, executor, None, Cache(tmp_path / "two")))


def test_constants_of_a_python_step_are_converted_in_the_standard_modes():
    def step(u: timetile.Field):
        u.next = u[0] + 1e-40

    with modes(MODES["subnormals are zero"]):
        module = timetile.stencil(step).module((64,), "float32")
    assert str(module) == str(timetile.stencil(step).module((64,), "float32"))


def test_the_caller_s_modes_are_given_back():
    text = program("f32", "1.0e-40", 300)
    with modes(MODES["subnormals are zero"]):
        scaled(text, "cpu", 2, cache=False)
        assert np.add(SMALL, np.float32(0)) == 0
    assert np.add(SMALL, np.float32(0)) == SMALL


def test_the_caller_s_modes_are_given_back_after_an_error():
    with modes(MODES["subnormals are zero"]):
        with pytest.raises(ValueError), standard_modes():
            assert np.add(SMALL, np.float32(0)) == SMALL
            raise ValueError
        assert np.add(SMALL, np.float32(0)) == 0
