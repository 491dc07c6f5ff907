"""Wrong arguments are refused before anything runs, with the fact and the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.description import Array, random_inputs
from support.executors import executors
from support.programs import program_text
from timetile import CompiledProgram
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.program.compiled_program import Executor

DOMAIN = (5, 7)
SHAPE = (7, 9)


def compiled(executor: Executor) -> CompiledProgram:
    """Two fields of doubles, [-1, 6) x [-1, 8) each, and a number of steps."""
    text = program_text(entry("heat-2d").make(DOMAIN))
    return timetile.compile(text, executor=executor, depth=2, cache=False)


def good() -> list[Any]:
    return [np.ones(SHAPE), np.ones(SHAPE), 3]


def with_first(array: Any) -> Callable[[], list[Any]]:
    return lambda: [array, np.ones(SHAPE), 3]


def overlapping(start: int) -> list[Any]:
    """Two fields in one piece of memory; the second field begins `start` cells later."""
    cells = int(np.prod(SHAPE))
    memory = np.ones(start + cells)
    first, second = memory[:cells], memory[start:]
    return [first.reshape(SHAPE), second.reshape(SHAPE), 3]


def read_only() -> Array:
    array = np.ones(SHAPE)
    array.flags.writeable = False
    return array


@dataclass
class DeviceArray:
    """An object with `__cuda_array_interface__`, like arrays of CuPy and PyTorch."""

    pointer: int = 1 << 20
    shape: tuple[int, ...] = SHAPE
    typestr: str = "<f8"
    read_only: bool = False
    others: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.pointer, self.read_only),
            "version": 3,
            **self.others,
        }


@dataclass(frozen=True)
class Case:
    """Refused arguments, and the refusals."""

    name: str
    arguments: Callable[[], list[Any]]
    error: type[Exception]
    message: str


WRONG = [
    Case(
        "too-few",
        lambda: good()[:2],
        TypeError,
        "@run takes 3 arguments, and got 2",
    ),
    Case("too-many", lambda: [*good(), 1], TypeError, "@run takes 3 arguments, and got 4"),
    Case(
        "shape",
        with_first(np.ones((7, 8))),
        ValueError,
        "argument 0 (%u) has shape (7, 8), and its field [-1, 6) x [-1, 8), halos included, has "
        "shape (7, 9); pass an array of the field's shape",
    ),
    Case(
        "rank",
        lambda: [np.ones(SHAPE), np.ones(63), 3],
        ValueError,
        "argument 1 (%v) has shape (63,), and its field [-1, 6) x [-1, 8), halos included, has "
        "shape (7, 9); pass an array of the field's shape",
    ),
    Case(
        "element-type",
        with_first(np.ones(SHAPE, dtype=np.float32)),
        TypeError,
        "argument 0 (%u) has elements of float32, and its field of float64; pass it as float64",
    ),
    Case(
        "byte-order",
        with_first(np.ones(SHAPE, dtype=">f8")),
        TypeError,
        "argument 0 (%u) has elements of >f8, and its field of float64; pass it as float64",
    ),
    Case(
        "columns-first",
        with_first(np.ones(SHAPE, order="F")),
        ValueError,
        "argument 0 (%u) is not C-contiguous; pass np.ascontiguousarray(a)",
    ),
    Case(
        "strided",
        with_first(np.ones((7, 18))[:, ::2]),
        ValueError,
        "argument 0 (%u) is not C-contiguous; pass np.ascontiguousarray(a)",
    ),
    Case(
        "read-only",
        with_first(read_only()),
        ValueError,
        "argument 0 (%u) is read-only; pass a copy",
    ),
    Case(
        "a-list",
        with_first([[1.0] * 9] * 7),
        TypeError,
        "argument 0 (%u) is a list; pass a NumPy array or a device array",
    ),
    Case(
        "one-array-twice",
        lambda: [array := np.ones(SHAPE), array, 3],
        ValueError,
        "arguments 0 (%u) and 1 (%v) share memory; give every field separate memory",
    ),
    Case(
        "arrays-that-overlap",
        lambda: overlapping(62),
        ValueError,
        "arguments 0 (%u) and 1 (%v) share memory; give every field separate memory",
    ),
    Case(
        "an-array-for-a-scalar",
        lambda: [np.ones(SHAPE), np.ones(SHAPE), np.ones(3)],
        TypeError,
        "argument 2 (%steps) is a scalar, and got an array of shape (3,); pass a number",
    ),
    Case(
        "a-fraction-for-an-integer",
        lambda: [np.ones(SHAPE), np.ones(SHAPE), 2.5],
        TypeError,
        "argument 2 (%steps) is an integer, and got 2.5; pass an int",
    ),
    Case(
        "a-word-for-an-integer",
        lambda: [np.ones(SHAPE), np.ones(SHAPE), "3"],
        TypeError,
        "argument 2 (%steps) is an integer, and got '3'; pass an int",
    ),
]

ON_DEVICE = [
    Case(
        "device-and-host",
        lambda: [DeviceArray(), np.ones(SHAPE), 3],
        TypeError,
        "some fields are NumPy arrays and some are on the device; pass all of one kind",
    ),
    Case(
        "device-shape",
        with_first(DeviceArray(shape=(7, 8))),
        ValueError,
        "argument 0 (%u) has shape (7, 8), and its field [-1, 6) x [-1, 8), halos included, has "
        "shape (7, 9); pass an array of the field's shape",
    ),
    Case(
        "device-element-type",
        with_first(DeviceArray(typestr="<f4")),
        TypeError,
        "argument 0 (%u) has elements of float32, and its field of float64; pass it as float64",
    ),
    Case(
        "device-strides",
        with_first(DeviceArray(others={"strides": (144, 16)})),
        ValueError,
        "argument 0 (%u) is not C-contiguous; pass a contiguous copy",
    ),
    Case(
        "device-read-only",
        with_first(DeviceArray(read_only=True)),
        ValueError,
        "argument 0 (%u) is read-only; pass a copy",
    ),
    Case(
        "device-part-of-an-array",
        with_first(DeviceArray((1 << 20) + 8)),
        ValueError,
        "argument 0 (%u) begins at an address other than a multiple of 16 bytes; pass a copy",
    ),
    Case(
        "device-mask",
        with_first(DeviceArray(others={"mask": DeviceArray()})),
        ValueError,
        "argument 0 (%u) is masked; pass a plain array",
    ),
    Case(
        "device-arrays-that-overlap",
        lambda: [DeviceArray(1 << 20), DeviceArray((1 << 20) + 496), 3],
        ValueError,
        "arguments 0 (%u) and 1 (%v) share memory; give every field separate memory",
    ),
]


@pytest.mark.covering
@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("case", [*WRONG, *ON_DEVICE], ids=lambda case: case.name)
def test_arguments_that_do_not_fit_are_refused(case: Case, executor: Executor):
    arguments = case.arguments()
    before = [a.copy() for a in arguments if is_numpy_array(a)]
    with pytest.raises(case.error) as caught:
        compiled(executor)(*arguments)
    assert str(caught.value) == case.message
    after = [a for a in arguments if is_numpy_array(a)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_device_arrays_need_the_gpu_executor(executor: Executor):
    with pytest.raises(TypeError) as caught:
        compiled(executor)(DeviceArray(), DeviceArray(1 << 21), 3)
    assert str(caught.value) == (
        "the arguments are on the device, and the program was compiled for the "
        f"{executor} executor; pass NumPy arrays or compile with executor='gpu'"
    )


@pytest.mark.parametrize("executor", executors())
def test_a_negative_number_of_steps_is_refused(executor: Executor):
    with pytest.raises(ValueError) as caught:
        compiled(executor)(*good(), steps=-1)
    assert str(caught.value) == "the number of steps is not negative, got -1"


@pytest.mark.parametrize("executor", executors())
def test_arrays_may_lie_side_by_side_in_memory(executor: Executor):
    """Adjacent memory is not shared; arrays may begin anywhere in memory."""
    arguments = overlapping(63)
    compiled(executor)(*arguments)
    offset = np.ones(64)[1:].reshape(SHAPE)
    compiled(executor)(offset, np.ones(SHAPE), 3)


def test_an_argument_that_is_no_number_is_refused_for_a_scalar():
    program = entry("forced-2d").make(DOMAIN)
    run = timetile.compile(program_text(program), executor="cpu", cache=False)
    with pytest.raises(TypeError) as caught:
        run(*random_inputs(program, seed=1).arrays.values(), 0.25, 1j, 3)
    assert str(caught.value) == "argument 3 (%strength) is a number, and got 1j; pass a float"


@pytest.mark.parametrize("executor", executors())
def test_python_numbers_and_numpy_numbers_are_scalars(executor: Executor):
    """
    Python's and NumPy's numbers and arrays without axes are scalars, rounded to the program's type.
    """
    program = entry("forced-2d").make(DOMAIN)
    run = timetile.compile(program_text(program), executor=executor, depth=2, cache=False)
    inputs = random_inputs(program, seed=1)
    expected = inputs.copy()
    run(*expected.arrays.values(), 0.25, 2.0, 3)
    for dt, strength, steps in (
        (np.float32(0.25), np.int64(2), np.int32(3)),
        (np.array(0.25), 2, np.uint8(3)),
    ):
        found = inputs.copy()
        run(*found.arrays.values(), dt, strength, steps)
        for name, array in expected.arrays.items():
            assert np.array_equal(array, found.arrays[name])
