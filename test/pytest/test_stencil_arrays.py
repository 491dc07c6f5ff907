"""
The arrays of a state: copied and left unchanged, of NumPy and of other libraries; programs are
compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pytest

import timetile
from timetile import Field, Scalar
from timetile.frontend.arrays import copy_of, readable, seen_by_program
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil
def heat(u: Field, m: Field, k: Scalar):
    """Heat in a plate."""
    u.next = u[0, 0] + k * m[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


ON_CPU = heat.on(executor="cpu", cache=False)


def state(dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(2)
    return {name: random.random((12, 15)).astype(dtype) for name in "um"}


class Tensor:
    """As PyTorch's tensors in host memory are: cloned, and seen by NumPy without a copy."""

    def __init__(self, data: np.ndarray):
        self.data, self.shape, self.dtype = data, data.shape, f"torch.{data.dtype}"

    def __dlpack__(self, **_: Any) -> Any:
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        assert not copy
        return self.data

    def detach(self) -> Self:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.data.copy(order="A"))

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.data))

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[key] = value.data


class DeviceArray:
    """As CuPy's arrays in GPU memory are, as far as a copy goes."""

    made = 0

    def __init__(self, name: str, strides: tuple[int, ...] | None = None, offset: int = 0):
        DeviceArray.made += 1
        self.name, self.shape, self.dtype = name, (12, 15), np.dtype("float64")
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": "<f8",
            "data": (4096 * DeviceArray.made + offset, False),
            "strides": strides,
            "version": 3,
        }

    def copy(self) -> DeviceArray:
        return DeviceArray(self.name + "'")


@pytest.mark.parametrize("order", ["C", "F"])
def test_tensors_come_back_as_tensors(order: Any):
    plain = state()
    given = {name: Tensor(np.asarray(array, order=order)) for name, array in plain.items()}
    found = ON_CPU.advance(given, steps=3, k=0.2)
    expected = ON_CPU.advance(plain, steps=3, k=0.2)
    assert isinstance(found["u"], Tensor) and found["m"] is given["m"]
    assert np.array_equal(found["u"].data, expected["u"])
    assert np.array_equal(given["u"].data, plain["u"])


def test_a_step_of_second_order_takes_tensors():
    @timetile.stencil
    def wave(p: Field):
        p.next = 2 * p[0] - p.prev[0] + 0.2 * (p[-1] - 2 * p[0] + p[1])

    model = wave.on(executor="cpu", cache=False)
    now, before = np.random.default_rng(1).random((2, 20))
    expected = model.advance({"p": now, "p.prev": before}, steps=3)
    found = model.advance({"p": Tensor(now), "p.prev": Tensor(before)}, steps=3)
    assert expected.keys() == found.keys() == {"p", "p.prev"}
    assert all(np.array_equal(found[name].data, expected[name]) for name in expected)


def test_device_arrays_are_copied_by_their_own_library():
    array = DeviceArray("u")
    assert readable(array, ()) is array and readable(array, [array]).name == "u'"
    assert readable(DeviceArray("m", (8, 12 * 8)), ()).name == "m'"
    assert readable(DeviceArray("m", offset=8), ()).name == "m'"
    assert copy_of(array).name == "u'"
    assert seen_by_program(array) is array
    with pytest.raises(TypeError, match="the arguments are on the device, and the program was"):
        ON_CPU.advance({"u": array, "m": DeviceArray("m")}, k=0.2)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "fortran": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "read-only": lambda a: np.broadcast_to(a, a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout_are_taken(layout: str):
    plain = state()
    given = {name: LAYOUTS[layout](array) for name, array in plain.items()}
    found = ON_CPU.advance(given, steps=3, k=0.2)
    assert np.array_equal(found["u"], ON_CPU.advance(plain, steps=3, k=0.2)["u"])
    assert found["u"].flags.c_contiguous and found["u"].flags.writeable


def test_a_state_is_not_changed_by_later_steps():
    """Each state has separate arrays, even if the model holds others between calls."""
    states = [state()]
    for _ in range(4):
        states.append(ON_CPU.advance(states[-1], steps=3, k=0.2))
    kept = [one["u"].copy() for one in states]
    ON_CPU.advance(states[-1], steps=5, k=0.2)
    assert all(np.array_equal(one["u"], copy) for one, copy in zip(states, kept))
    assert len({one["u"].ctypes.data for one in states}) == len(states)


def test_a_program_is_compiled_once_for_each_shape_and_type():
    model = heat.on(executor="cpu", cache=False)
    first = model.program((12, 15))
    model.advance(state(), k=0.2)
    assert model.program((12, 15)) is first
    model.advance(state("float32"), k=0.2)
    assert "xf32>" in model.mlir and "xf64>" not in model.mlir
    assert model.program((12, 15), "float32") is not first
    assert model.on(executor="numpy").program((12, 15)) is not first


def test_a_model_prints_its_name_and_fields():
    assert heat.__doc__ == "Heat in a plate." and heat.__name__ == "heat"
    assert repr(heat) == f"<timetile model heat ({__file__}:{heat.step.place.line}) of u, m, k>"


def test_the_module_is_an_ordinary_program():
    """`timetile.compile` takes the text of a model's module."""
    given = state()
    ON_CPU.advance(given, steps=1, k=0.2)
    program = timetile.compile(ON_CPU.mlir, executor="cpu", cache=False)
    buffers = [given["u"].copy(), given["u"].copy(), given["m"]]
    result = program(*buffers, 0.2, 7)
    expected = ON_CPU.advance(given, steps=7, k=0.2)["u"]
    assert np.array_equal(result.buffers[0], expected)


@pytest.mark.usefixtures("chosen_among_kinds")
def test_explain_is_of_the_latest_arrays():
    ON_CPU.advance(state("float32"), k=0.2)
    assert "updates 10 x 13 cells (f32)" in str(ON_CPU.explain(steps=100))


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_coefficients_may_be_views_of_one_array(executor: Executor):
    """Read-only fields may share cells: a face has a cell on either side."""

    @timetile.stencil
    def flux(u: Field, c: Field, d: Field):
        u.next = c[0, 0] * u[-1, 0] + d[0, 0] * u[1, 0]

    faces, u = np.random.default_rng(8).random((13, 15)), state()["u"]
    model = flux.on(executor=executor, fp_contract="off", cache=False)
    for c, d in ((faces[:-1], faces[1:]), (faces[:-1], faces[:-1])):
        right = u.copy()
        right[1:-1] = c[1:-1] * u[:-2] + d[1:-1] * u[2:]
        found = model.advance({"u": u, "c": c, "d": d}, steps=1)["u"]
        assert found.tobytes() == right.tobytes()
