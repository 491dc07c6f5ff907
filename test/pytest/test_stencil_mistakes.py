"""First attempts of NumPy's users: each is refused with a way out, or works like in NumPy."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Scalar, StencilError
from timetile.frontend.values import HINTS
from timetile.frontend.whole_fields import OF_ALL_CELLS, OF_NEIGHBOURS

numpy: Any = np
"""NumPy without types: NumPy's stubs refuse a cell's value as an argument of clip."""

HEAD = """\
import numpy as np
from timetile import Field, Scalar, coordinate, stencil, where
weights = np.ones(3)
@stencil
def step(u: Field, v: Field, k: Scalar):
"""

LINES: list[tuple[str, str]] = [
    (
        "u.next = np.sin(u)",
        "np.sin takes the values of a cell, and a field has a value at each cell; write the cell, "
        "as u[0, 0] for the cell's own",
    ),
    (
        "u.next = weights * u",
        "np.multiply takes the values of a cell, and a field has a value at each cell; write the "
        "cell, as u[0, 0] for the cell's own",
    ),
    (
        "u.next = u[0] - np.mean(u)",
        "np.mean is of all cells together, and a step computes one; call it on the arrays between "
        "two calls of advance, or write timetile.maximum, minimum or total in until=",
    ),
    (
        "u.next = np.roll(u.prev, 1)",
        "np.roll combines cells of an array, and a step reads them; write u[-1] for np.roll(u, 1)",
    ),
    (
        "u.next = np.linalg.norm(u)",
        "np.norm takes arrays, and a step computes one cell; write the step with the values "
        "around the cell, as u[-1] and u[0]",
    ),
    (
        "if u: u.next = u[0]",
        "a field has no truth value; write timetile.where(condition, a, b), with a condition of a "
        "cell as u[0] > 0",
    ),
    (
        "u.next = np.where(u == 1, u[0], 0.0)",
        "a field has a value at each cell, and is not compared; compare the cell's, as u[0, 0] > "
        "1, or, in until=, a number of all cells: timetile.maximum(u[0, 0]) > 1",
    ),
    (
        "u.next = u[0]; u.next -= 1",
        "new values are assigned once, not changed; add all to the value first, then write u.next "
        "= value",
    ),
    (
        "u.next = u[0] / u.shape[0]",
        "'Field' object has no attribute 'shape'; timetile.extent(axis) is the size of the arrays "
        "along an axis",
    ),
    (
        "u.next = u[...]",
        "u is indexed by Ellipsis, and offsets are whole numbers; write an int for each axis",
    ),
    (
        "u.next = np.where(u[0] > 0)",
        "np.where is not a function of one cell; write timetile.where(condition, a, b)",
    ),
    ("u.next = np.isnan(u[0])", "np.isnan is not supported in a step; write a != a"),
    (
        "u.next = u[0] * weights[coordinate(0)]",
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
        "boolean arrays are valid indices; an array of numbers is indexed by numbers; pass "
        "different numbers for cells as a timetile.Field",
    ),
]


@pytest.mark.parametrize(("line", "reason"), LINES, ids=lambda text: text[:40])
def test_a_first_attempt_is_told_what_to_write(tmp_path: Path, line: str, reason: str):
    path = tmp_path / "step.py"
    path.write_text(f"{HEAD}    {line}\n")
    with pytest.raises(StencilError) as caught:
        runpy.run_path(str(path))
    assert (caught.value.reason, caught.value.line) == (reason, 6)


@pytest.mark.parametrize("name", [*HINTS, *sorted(OF_NEIGHBOURS), *sorted(OF_ALL_CELLS)])
def test_hints_are_of_functions_of_numpy(name: str):
    assert callable(getattr(np, name))


def test_code_of_hints_computes_numpys_results():
    u, rest = np.array([-1.5, 0.0, np.nan, 2.5, 7.0, -0.0]), np.full(6, 2.0)

    @timetile.stencil
    def step(a: Field, b: Field, nan: Field, clip: Field, mod: Field, sign: Field, hypot: Field):
        nan.next = timetile.where(a[0] != a[0], 1.0, 0.0)
        clip.next = numpy.clip(a[0], -1, 3)
        mod.next = a[0] - b[0] * np.floor(a[0] / b[0])
        sign.next = timetile.where(a[0] > 0, 1.0, timetile.where(a[0] < 0, -1.0, 0.0))
        hypot.next = np.sqrt(a[0] ** 2 + b[0] ** 2)

    given = {"a": u, "b": rest} | dict.fromkeys(("nan", "clip", "mod", "sign", "hypot"), 0 * rest)
    model = step.on(executor="cpu", cache=False, fp_contract="off")
    with pytest.warns(RuntimeWarning, match="NaN"):
        found = model.advance(given)
    assert np.array_equal(found["nan"], np.isnan(u))
    assert np.array_equal(found["clip"], np.clip(u, -1, 3), equal_nan=True)
    assert np.array_equal(found["mod"], np.mod(u, rest), equal_nan=True)
    assert np.allclose(found["hypot"], np.hypot(u, rest), equal_nan=True)
    # NumPy's sign of NaN is NaN.
    assert np.array_equal(found["sign"], np.nan_to_num(np.sign(u)))


def test_an_array_without_axes_is_a_number():
    weight = np.array(2.0)

    @timetile.stencil
    def step(u: Field):
        u.next = weight * u[0]

    found = step.on(executor="cpu", cache=False).advance({"u": np.ones(4)})
    assert np.array_equal(found["u"], np.full(4, 2.0))


@pytest.fixture
def model() -> Any:
    @timetile.stencil
    def heat(u: Field, k: Scalar):
        u.next = u[0] + k * (u[-1] - 2 * u[0] + u[1])

    return heat.on(executor="cpu", cache=False)


STATE = {"u": np.ones(5)}


Call = Callable[[Any], object]

WRONG_CALLS: list[tuple[Call, type[Exception], str]] = [
    (
        lambda model: model(np.ones(5)),
        TypeError,
        '{label} is a model; advance a state: heat.advance({{"u": ...}}, steps=...)',
    ),
    (
        lambda model: model.on(exec="cpu"),
        TypeError,
        "on has no option exec; its options are executor, depth, arch, fp_contract, fp_division, "
        "fp_reassoc, gpu, threads, cache, tune, comm, parts, exchange_every, gpus",
    ),
    (
        lambda model: model.advance(STATE, 3.0, k=0.1),
        TypeError,
        "the number of steps is an int, got 3.0",
    ),
    (
        lambda model: model.snapshots(STATE, 3, 1.5, k=0.1),
        TypeError,
        "a run stops after every so many steps, an int, got 1.5",
    ),
    (
        lambda model: model.advance(STATE, k=np.ones(5)),
        TypeError,
        "argument k is a scalar, and got an array of shape (5,); pass a number",
    ),
    (
        lambda model: model.advance(STATE, k=timetile.Series("k")),
        TypeError,
        "k is a timetile.Scalar, and got a Series; declare k as timetile.Series, and pass an array "
        "with a number for each step",
    ),
    (
        lambda model: model.advance(STATE, k="fast"),
        TypeError,
        "argument k is a number, and got 'fast'; pass a float",
    ),
    (
        lambda model: model.advance({**STATE, "k": 0.1}),
        TypeError,
        "k is a number of {label}; pass k=...",
    ),
    (
        lambda model: model.advance({}, k=0.1),
        TypeError,
        '{label} needs an array for u; pass {{"u": ...}} in the state',
    ),
    (
        lambda model: model.advance(STATE, u=np.ones(5), k=0.1),
        TypeError,
        "u is in the state and passed by name, too; pass it once",
    ),
    (
        lambda model: model.advance(np.ones(5), u=np.ones(5), k=0.1),
        TypeError,
        "u is passed by name beside a ndarray; pass all arrays by name, or a state",
    ),
    (
        lambda model: model.advance({"u": np.ones(0)}, k=0.1),
        ValueError,
        "arrays of shape (0,) have no cells; pass some along each axis",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG_CALLS)
def test_a_wrong_call_is_told_what_to_pass(
    model: Any, call: Call, kind: type[Exception], text: str
):
    with pytest.raises(kind) as caught:
        call(model)
    assert str(caught.value) == text.format(label=model.step.label)


def test_fields_are_shown_by_their_names(capsys: pytest.CaptureFixture[str]):
    @timetile.stencil
    def step(u: Field):
        print(u, u.prev)
        u.next = u.prev[0]

    assert capsys.readouterr().out == "<timetile field u> <timetile field u.prev>\n"
    assert repr(step).startswith("<timetile model step (")
