"""
Steps on arrays of integers and truth values, alone and beside floats: types and bits are those of
NumPy, which evaluates the same function on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import timetile
from support.drawn_models import model_with
from timetile import Field, Scalar
from timetile.frontend.errors import StencilError
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model
from timetile.runtime.program.compiled_program import Executor

SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
ALL = (*INTEGERS, "bool", "float32", "float64")

SIZES = (13, 35)


class Cells:
    """An array in the place of a field: an index gives the neighbours of all inner cells."""

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, offsets: tuple[int, int]) -> Any:
        rows, columns = self.array.shape
        down, right = offsets
        return self.array[1 + down : rows - 1 + down, 1 + right : columns - 1 + right]


where: Callable[[Any, Any, Any], Any] = np.where

Expression = Callable[[Any, Any], Any]


def binary(function: Callable[[Any, Any], Any]) -> Expression:
    """A function of two neighbours."""
    return lambda u, v: function(u[-1, 0], v[0, 1])


OF_INTEGERS: dict[str, Expression] = {
    "sum": binary(lambda a, b: a + b),
    "difference and product": binary(lambda a, b: (a - b) * a),
    "floor division": binary(lambda a, b: a // b),
    "remainder": binary(lambda a, b: a % b),
    "remainder of a number": binary(lambda a, b: (a + b) % 7 - 5 // b),
    "bits": binary(lambda a, b: (a & b) ^ (a | ~b)),
    "shifts": binary(lambda a, b: (a << 3) + (b >> 2)),
    "shifts by cells": binary(lambda a, b: (a << (b & 7)) | (a >> (b & 15))),
    "extremes": binary(lambda a, b: np.maximum(a, b) - np.minimum(a, 3)),
    "negative": binary(lambda a, b: -a + abs(b)),
    "power": binary(lambda a, b: a**3 + np.square(b)),
    "choice": binary(lambda a, b: where(a > b, a, where(a == b, 1, 0))),
    "far number": binary(lambda a, b: where(a < 300, 100, 0) + where(b > -1, a, b)),
    "clip": binary(lambda a, b: np.clip(a, 1, 100)),
    "floor": binary(lambda a, b: np.floor(a) + np.ceil(b)),
    "conversions": binary(
        lambda a, b: (a.astype(np.int8) + b.astype(np.uint16)).astype(np.int64) * 3
    ),
}

OF_FLOATS: dict[str, Expression] = {
    "quotient": binary(lambda a, b: a / (b * b + 1)),
    "weak": binary(lambda a, b: 0.5 * a - b / 3),
    "root": binary(lambda a, b: np.sqrt(abs(a.astype(np.float64))) + b),
    "comparison": binary(lambda a, b: where((a > 0.5) & (b <= 2), a, b * 1.5)),
    "truth": binary(lambda a, b: (a > b) * a + b * 1.0),
}


def drawn(dtype: str, seed: int) -> Any:
    """Random numbers of the whole range of a type, and small ones."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(SIZES) < 0.5
    small = rng.integers(0 if dtype.startswith("u") else -9, 10, SIZES).astype(dtype)
    if dtype.startswith("float"):
        return rng.standard_normal(SIZES).astype(dtype) + small
    limits = np.iinfo(dtype)
    wild = rng.integers(limits.min, limits.max, SIZES, dtype, endpoint=True)
    return np.where(rng.random(SIZES) < 0.5, wild, small)


def model_of(*expressions: Expression) -> Model:
    """A model of fields u, v, w0, w1 ...: each w has the new values of an expression."""
    targets = [f"w{number}" for number in range(len(expressions))]

    def step(**fields: Field) -> None:
        for target, expression in zip(targets, expressions, strict=True):
            fields[target].next = expression(fields["u"], fields["v"])

    return model_with(step, ["u", "v", *targets])


def check(
    expressions: Iterable[Expression], types: tuple[str, str], executors: tuple[Executor, ...]
) -> None:
    """Compare expressions, all in a single step, with NumPy's evaluation."""
    given = tuple(expressions)
    u, v = drawn(types[0], 1), drawn(types[1], 2)
    with np.errstate(all="ignore"):
        wanted = [expression(Cells(u), Cells(v)) for expression in given]
    arrays = {"u": u, "v": v}
    arrays.update({f"w{k}": np.zeros(SIZES, each.dtype) for k, each in enumerate(wanted)})
    model = model_of(*given)
    for executor in executors:
        found = chosen(model, executor, fp_contract="off", cache=False).advance(arrays)
        for k, each in enumerate(wanted):
            inner = found[f"w{k}"][1:-1, 1:-1]
            assert inner.dtype == each.dtype, (k, executor)
            assert inner.tobytes() == np.ascontiguousarray(each).tobytes(), (k, executor)


def chosen(model: Model, executor: Executor, **options: Any) -> Model:
    """A model for an executor; kernels have two steps, without a search for a schedule."""
    if executor not in ("numpy", "cpu"):
        options["depth"] = 2
    return model.on(executor=executor, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_have_the_bits_of_numpy(dtype: str):
    # Comparing uint64 with a number below 0 is refused.
    names = [name for name in OF_INTEGERS if (name, dtype) != ("far number", "uint64")]
    check([OF_INTEGERS[name] for name in names], (dtype, dtype), ("numpy", "cpu"))


MIXED = [
    ("int8", "uint8"), ("uint8", "int32"), ("int16", "uint32"), ("uint16", "int64"),
    ("bool", "int8"), ("uint8", "bool"), ("int32", "int8"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("types", MIXED, ids="-".join)
def test_integers_of_two_types_meet_as_in_numpy(types: tuple[str, str]):
    names = ("sum", "remainder", "bits", "choice", "extremes", "conversions")
    check([OF_INTEGERS[name] for name in names], types, ("cpu",))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "types",
    [
        ("float32", "uint8"), ("float64", "int8"), ("float32", "float64"), ("int32", "float32"),
        ("float64", "uint16"), ("int64", "float64"), ("uint8", "int16"),
    ],
    ids="-".join,
)  # fmt: skip
def test_integers_meet_floats_as_in_numpy(types: tuple[str, str]):
    check(OF_FLOATS.values(), types, ("cpu",))


OF_TRUTH: dict[str, Expression] = {
    "sum": binary(lambda a, b: a + b),
    "product": binary(lambda a, b: a * b),
    "extremes": binary(lambda a, b: np.maximum(a, b) ^ np.fmin(a, b)),
    "absolute": binary(lambda a, b: abs(a) | ~b),
    "count": binary(lambda a, b: 0 + a + b),
    "square": binary(lambda a, b: np.square(a) + b),
    "second power": binary(lambda a, b: a**2 + b**2),
    "third power": binary(lambda a, b: a**3 - b),
}


def test_arithmetic_of_truth_values_has_the_types_of_numpy():
    check(OF_TRUTH.values(), ("bool", "bool"), ("numpy", "cpu"))


@pytest.mark.covering
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("remainder", ("int8", "int8")), ("bits", ("uint16", "uint16")),
        ("choice", ("uint8", "int32")), ("conversions", ("int64", "uint32")),
        ("shifts by cells", ("uint64", "uint64")),
    ],
)  # fmt: skip
def test_kernels_have_the_bits_of_numpy(name: str, types: tuple[str, str], executor: Executor):
    check([OF_INTEGERS[name]], types, (executor,))


@timetile.stencil(boundary="periodic")
def life(c: Field):
    n = sum(c[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    c.next = timetile.where((n == 3) | ((n == 2) & (c[0, 0] == 1)), 1, 0)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "ptx"])
def test_the_game_of_life_has_the_cells_of_numpy(dtype: str, executor: Executor):
    cells = (np.random.default_rng(3).random((40, 45)) < 0.4).astype(dtype)
    expected = cells
    for _ in range(6):
        n = sum(
            np.roll(expected, (i, j), (0, 1))
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        expected = ((n == 3) | ((n == 2) & (expected == 1))).astype(dtype)
    found = chosen(life, executor).advance({"c": cells}, 6)["c"]
    assert found.dtype == expected.dtype and np.array_equal(found, expected)


@timetile.stencil(boundary="periodic")
def aligned(s: Field, coin: Field, beta: Scalar):
    """Spins of one colour of a checkerboard, flipped by Metropolis' rule."""
    near = s[-1, 0] + s[1, 0] + s[0, -1] + s[0, 1]
    worse = (2 * s[0, 0] * near).astype(np.float32)
    black = (timetile.coordinate(0) + timetile.coordinate(1)) % 2 == 0
    flips = black & ((worse <= 0) | (coin[0, 0] < 1 - worse * beta))
    s.next = timetile.where(flips, -s[0, 0], s[0, 0])


@pytest.mark.parametrize("executor", ["numpy", "cpu", "simt", "ptx"])
def test_spins_of_int8_run_beside_floats(executor: Executor):
    rng = np.random.default_rng(4)
    s = np.where(rng.random((24, 30)) < 0.5, -1, 1).astype(np.int8)
    coin, beta = rng.random(s.shape).astype(np.float32), 0.11
    found = chosen(aligned, executor).advance({"s": s, "coin": coin}, 3, beta=beta)["s"]
    for _ in range(3):
        near = sum(np.roll(s, 1 - 2 * k, axis) for axis in (0, 1) for k in (0, 1))
        worse = (2 * s * near).astype(np.float32)
        rows, columns = np.indices(s.shape)
        black = (rows + columns) % 2 == 0
        flips = black & ((worse <= 0) | (coin < 1 - worse * np.float32(beta)))
        s = np.where(flips, -s, s)
    assert found.dtype == np.int8 and np.array_equal(found, s)


@timetile.stencil
def grown(alive: Field, wall: Field):
    near = alive[-1, 0] | alive[1, 0] | alive[0, -1] | alive[0, 1]
    alive.next = (alive[0, 0] | near) & ~wall[0, 0]


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt", "ptx"])
def test_fields_of_truth_values_have_the_values_of_numpy(executor: Executor):
    rng = np.random.default_rng(5)
    alive, wall = rng.random((20, 34)) < 0.05, rng.random((20, 34)) < 0.3
    found = chosen(grown, executor).advance({"alive": alive, "wall": wall}, 4)["alive"]
    for _ in range(4):
        c = Cells(alive)
        new = alive.copy()
        near = c[-1, 0] | c[1, 0] | c[0, -1] | c[0, 1]
        new[1:-1, 1:-1] = (c[0, 0] | near) & ~wall[1:-1, 1:-1]
        alive = new
    assert found.dtype == np.bool_ and np.array_equal(found, alive)


@pytest.mark.parametrize(("dtype", "number"), [("uint8", 200), ("int32", -7), ("bool", 1)])
def test_cells_beyond_an_array_of_integers_have_a_number(dtype: DType, number: int):
    @timetile.stencil(boundary=timetile.value(number))
    def step(c: Field):
        c.next = timetile.where(c[-1, 0] > c[0, 1], c[-1, 0], c[0, 1])

    cells = drawn(dtype, 7)
    expected = cells
    for _ in range(3):
        wide = np.pad(expected, 1, constant_values=number)
        expected = np.maximum(wide[:-2, 1:-1], wide[1:-1, 2:])
    executors: tuple[Executor, ...] = ("numpy", "cpu", "planes", "ptx")
    model = chosen(step, "planes")
    program = model.program(cells.shape, dtype)
    for program.executor in executors:
        assert np.array_equal(model.advance({"c": cells}, 3)["c"], expected), program.executor


def test_a_number_beyond_an_array_is_a_number_of_its_type():
    @timetile.stencil(boundary=timetile.value(300))
    def step(c: Field):
        c.next = c[-1]

    with pytest.raises(ValueError, match=r"300.0 beyond an array is no number of uint8; give one"):
        step.advance({"c": np.zeros(9, np.uint8)})


def test_a_temporary_keeps_the_type_of_its_value():
    @timetile.stencil
    def step(u: Field):
        even = timetile.temporary(u[0] % 2 == 0)
        low = timetile.temporary(u[-1] & 15)
        u.next = timetile.where(even[1], low[-1], u[0])

    u = drawn("uint8", 6)[0]
    found = step.on(cache=False).advance({"u": u})["u"]
    expected = u.copy()
    for k in range(2, u.size - 1):
        expected[k] = u[k - 2] & 15 if u[k + 1] % 2 == 0 else u[k]
    assert np.array_equal(found, expected)


def test_a_condition_sums_all_cells_of_integers():
    cells = (np.random.default_rng(3).random((30, 33)) < 0.4).astype(np.uint8)
    seen: list[float] = []

    def until(c: Field) -> bool:
        seen.append(float(timetile.total(c[0, 0])))
        return False

    ended = life.advance({"c": cells}, 2, until=until)["c"]
    after = life.advance({"c": cells}, 1)["c"]
    # The value of a condition is that of the step before the newest.
    assert seen == [float(cells.sum()), float(after.sum())] and ended.dtype == np.uint8


def test_a_step_may_have_fields_of_several_kinds():
    """Before the first call, a step is refused only if it is wrong for arrays of every type."""

    @timetile.stencil
    def step(u: Field, n: Field, wide: Field, free: Field):
        low = (n[0] & 3) + (n[1] >> 1)
        # A converted coordinate has a type of its own, also if the type is its former one.
        odd = timetile.coordinate(0).astype(np.int64) & 1
        wide.next = (timetile.coordinate(0).astype(np.uint64) | wide[0]) % 1000
        u.next = timetile.where(free[0] & (u[1] > 0.5), 0.25 * u[0] + low, odd)

    rng = np.random.default_rng(8)
    u, n = rng.random(20), rng.integers(0, 100, 20, np.int32)
    wide, free = rng.integers(0, 2**63, 20, np.uint64), rng.random(20) < 0.5
    state = {"u": u, "n": n, "wide": wide, "free": free}
    found = step.on(executor="numpy", fp_contract="off").advance(state)
    low = (n[:-1] & 3) + (n[1:] >> 1)
    expected = np.where(free[:-1] & (u[1:] > 0.5), 0.25 * u[:-1] + low, np.arange(19) & 1)
    assert np.array_equal(found["u"][:-1], expected)
    assert np.array_equal(found["wide"], (np.arange(20).astype(np.uint64) | wide) % 1000)


WRONG: list[tuple[Expression, str, str]] = [
    (
        lambda u, v: u[0, 0] * 0.5 + v[0, 0],
        "uint8",
        "w0 has an array of uint8, and the value is of float64; write (...).astype(np.uint8), or "
        "pass w0 as float64",
    ),
    (
        lambda u, v: v[0, 0] + (u[0, 0] + 300),
        "uint8",
        "300 is no number of uint8, the type of the other operand; convert the operand, as "
        "a.astype(np.int64)",
    ),
    (
        lambda u, v: u[0, 0] - v[0, 0],
        "bool",
        "conditions have no difference, as in NumPy; write a ^ b for conditions that differ, ~a "
        "for the opposite, or timetile.where(a, 1.0, 0.0) for a number",
    ),
    (
        lambda u, v: (u[0, 0] & v[0, 0]).astype(np.int32),
        "bool",
        "w0 has an array of bool, and the value is of int32; write a condition, as a != 0, or pass "
        "w0 as int32",
    ),
    (
        lambda u, v: (u[0, 0] + v[0, 0]) << 1,
        "float32",
        "`<<` and `>>` are of integers; write a * 2**b for floats",
    ),
    (
        lambda u, v: u[0, 0] ** v[0, 0],
        "int32",
        "an integer's power has an exponent of 1 to 8, or a float; write products, or "
        "a.astype(np.float64)**b",
    ),
    (
        lambda u, v: u[0, 0] + v[0, 0].astype(np.int8),
        "uint64",
        "no type of integers holds both uint64 and int8; convert an operand, as a.astype(np.int64)",
    ),
]


@pytest.mark.parametrize(("expression", "dtype", "sentence"), WRONG)
def test_a_meaning_unlike_that_of_numpy_is_refused(
    expression: Expression, dtype: str, sentence: str
):
    arrays = {name: drawn(dtype, 1) for name in ("u", "v", "w0")}
    with pytest.raises(StencilError) as caught:
        model_of(expression).advance(arrays)
    assert caught.value.reason == sentence


def test_a_type_that_no_value_has_is_refused():
    with pytest.raises(StencilError, match="a value of a cell has no type float16; write astype"):
        model_of(lambda u, v: u[0, 0].astype(np.float16))
