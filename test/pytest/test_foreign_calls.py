"""
Models called by XLA and by PyTorch: buffers of a GPU are advanced on the caller's stream, and
operators give the bits of `advance`.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import multiprocessing
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from support.driver import BookKeeper
from timetile import Complex, Field, Scalar
from timetile.frontend import xla_frames
from timetile.frontend.device_calls import CalledValue, DeviceCall, run_numbered

pytestmark = pytest.mark.usefixtures("chosen_among_few")


@timetile.stencil
def wave(p: Field, k: Field, c: Scalar):
    around = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p[0, 0]
    p.next = 2 * p[0, 0] - p.prev[0, 0] + c * k[0, 0] * around


@timetile.stencil
def turned(psi: Complex):
    psi.next = 1j * psi[0]


SHAPE = (20, 36)


def call(driver: BookKeeper, **fixed: Any) -> DeviceCall:
    """A call of a model on a GPU that computes nothing."""
    driver.homes |= dict.fromkeys((1 << 16, 2 << 16, 3 << 16), 0)
    single = np.dtype("float32")
    operands = [CalledValue(name, SHAPE, single, is_number=False) for name in ("p", "k")]
    operands.append(CalledValue("c", (), single, is_number=True))
    model = wave.on(executor="gpu", cache=False)
    return DeviceCall(model.advance, operands, ("p", "p.prev"), {"steps": 3, **fixed})


def test_a_call_stays_on_a_stream_and_gives_back_memory(driver: BookKeeper):
    number = call(driver).numbered()
    run_numbered(number, (1 << 16, 2 << 16, 3 << 16), (4 << 16, 5 << 16), 9)
    memory = driver.left.get("memory", 0)
    assert {stream for _, stream in driver.launched} == {9} and not driver.busy
    run_numbered(number, (1 << 16, 2 << 16, 3 << 16), (4 << 16, 5 << 16), 9)
    assert driver.left.get("memory", 0) == memory


def test_a_refused_call_gives_back_memory(driver: BookKeeper):
    wrong = call(driver, unknown=1)
    with pytest.raises(TypeError, match="has no place for unknown"):
        wrong.run((1 << 16, 2 << 16, 3 << 16), (4 << 16, 5 << 16), 9)
    assert "memory" not in driver.left


def doubled(number: int, given: Sequence[int], wanted: Sequence[int], stream: int) -> None:
    """Multiply six numbers; 7 is refused."""
    if number == 7:
        raise ValueError("seven is refused")
    cells, made = ((ctypes.c_float * 6).from_address(place) for place in (*given, *wanted))
    for k in range(6):
        made[k] = number * cells[k] + stream


def call_from_xla() -> None:
    """A function of Python is called by XLA, with its number, and its error is JAX's."""
    jax: Any = importlib.import_module("jax")
    xla_frames.register("doubled", "cpu", doubled)

    def run(x: Any, number: int) -> Any:
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("doubled", kind)(x, number=np.int64(number))

    x = np.arange(6, dtype=np.float32)
    assert np.array_equal(jax.jit(run, static_argnums=1)(x, 3), 3 * x)
    with pytest.raises(Exception, match="ValueError: seven is refused"):
        jax.block_until_ready(jax.jit(run, static_argnums=1)(x, 7))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_xla_calls_functions_of_python():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(call_from_xla)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_an_operator_of_pytorch_gives_the_bits_of_advance():
    torch: Any = importlib.import_module("torch")
    operator: Any = timetile.torch_operator(wave, "timetile_tests::wave")
    rng = np.random.default_rng(3)
    state = {name: rng.random(SHAPE) for name in ("p", "k")}
    tensors = {name: torch.from_numpy(cells) for name, cells in state.items()}

    def run(p: Any, k: Any) -> Any:
        once = operator({"p": p, "k": k}, 3, c=0.2)
        return operator(once, 2, c=0.2)["p"]

    expected = wave.advance(state, 5, c=0.2)["p"]
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    for made in (run, compiled):
        assert made(**tensors).numpy().tobytes() == expected.tobytes()
    with pytest.raises(TypeError, match="needs an array for k"):
        operator({"p": tensors["p"]}, 3, c=0.2)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_tensors_of_bfloat16_are_advanced():
    torch: Any = importlib.import_module("torch")
    cells = np.random.default_rng(3).random(SHAPE).astype(np.float32)
    narrow = {name: torch.from_numpy(cells).bfloat16() for name in ("p", "k")}
    ended = wave.advance(narrow, 2, c=0.2)["p"]
    assert ended.dtype == torch.bfloat16 and not (ended == narrow["p"]).all()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_complex_models_are_no_operators_of_pytorch():
    with pytest.raises(TypeError, match="takes tensors and numbers; call advance outside"):
        timetile.torch_operator(turned, "timetile_tests::turned")
