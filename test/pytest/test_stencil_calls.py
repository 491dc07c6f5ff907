"""Errors in a call of a model name the field and its line, and change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Model, Scalar

# Calls.


@pytest.fixture
def model() -> Model:
    @timetile.stencil
    def wave(p: Field, m: Field, row: Field, k: Scalar):
        p.next = p.prev[0, 0] + k * m[1, 0] * p[0, -1] + row[None, 0]

    return wave.on(executor="cpu", cache=False)


ONES = np.ones((4, 6))


RIGHT = {"p": ONES, "m": ONES, "row": np.ones(6)}


def label(model: Model) -> str:
    return f"wave ({__file__}:{model.step.place.line})"


WRONG_CALLS: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
    (
        {"m": None},
        {},
        TypeError,
        "m is a NoneType; pass an array of NumPy, CuPy, JAX or PyTorch, as np.asarray(a)",
    ),
    (
        {"m": [1.0]},
        {},
        TypeError,
        "m is a list; pass an array of NumPy, CuPy, JAX or PyTorch, as np.asarray(a)",
    ),
    (
        {"m": ONES.astype(object)},
        {},
        TypeError,
        "m has elements of object, and fields are of float64, float32, float16, bfloat16, int8, "
        "int16, int32, int64, uint8, uint16, uint32, uint64, bool; pass a.astype(np.float64)",
    ),
    (
        {"m": np.ma.masked_array(ONES)},
        {},
        TypeError,
        "m is masked, and the mask would be ignored; pass a plain array, as a.filled(0)",
    ),
    (
        {"p.prev": ONES.astype(np.float32)},
        {},
        TypeError,
        "p.prev has elements of float32, and p of float64; pass both of one type",
    ),
    (
        {"m": np.ones((4, 5))},
        {},
        ValueError,
        "m has shape (4, 5), and p has (4, 6); pass m of shape (4, 6)",
    ),
    (
        {"row": np.ones(4)},
        {},
        ValueError,
        "row has shape (4,), and p has (4, 6); pass row of shape (6,)",
    ),
    (
        {"p.prev": np.ones((4, 5))},
        {},
        ValueError,
        "p.prev has shape (4, 5), and p has (4, 6); pass p.prev of shape (4, 6)",
    ),
    (
        {"p": np.ones(4)},
        {},
        ValueError,
        "p has shape (4,), and {label} indexes it along 2 axes; pass an array of as many axes",
    ),
    (
        {"q": ONES},
        {},
        TypeError,
        "{label} has no place for q; its arguments are an array for m, p, p.prev, row",
    ),
    ({}, {"q": 1}, TypeError, "{label} has no place for q; its arguments are a number for k"),
    ({}, {"steps": -1}, ValueError, "the number of steps is not negative, got -1"),
    (
        {"p": np.ones((1, 6)), "m": np.ones((1, 6))},
        {},
        ValueError,
        "p.next in line {line} of {label} gets no new value along axis 0 of size 1, as the step "
        "reads 0 before and 1 behind each; pass larger arrays or another region",
    ),
]


@pytest.mark.parametrize(("arrays", "options", "kind", "text"), WRONG_CALLS)
def test_a_wrong_call_changes_nothing(
    model: Model, arrays: dict[str, Any], options: dict[str, Any], kind: type[Exception], text: str
):
    line = model.step.assignments[0].place.line
    with pytest.raises(kind) as caught:
        given: dict[str, Any] = {"k": 1.0, "steps": 2} | options
        model.advance(RIGHT | arrays, **given)
    assert str(caught.value) == text.format(label=label(model), line=line)


def test_a_state_is_a_mapping(model: Model):
    wrong: Any = ONES
    with pytest.raises(TypeError) as caught:
        model.advance(wrong, k=1.0)
    assert str(caught.value) == (
        "a state has an array for each field by its name, got ndarray; pass "
        '{"p": ..., "m": ..., "row": ...}'
    )


def test_a_missing_array_or_number_is_named(model: Model):
    with pytest.raises(TypeError) as caught:
        model.advance({"p": ONES}, k=1.0)
    assert (
        str(caught.value)
        == f'{label(model)} needs an array for m, row; pass {{"m": ...}} in the state'
    )
    with pytest.raises(TypeError) as caught:
        model.advance(RIGHT)
    assert str(caught.value) == f"{label(model)} needs a number for k; pass k=..."


def test_a_model_that_has_not_run_asks_for_a_shape(model: Model):
    unknown = "has not run, and the shapes of the arrays are not known; advance a state, or call "
    with pytest.raises(RuntimeError) as caught:
        _ = model.mlir
    assert str(caught.value) == f"{label(model)} {unknown}module(shape)"
    with pytest.raises(RuntimeError) as caught:
        model.explain()
    assert str(caught.value) == f"{label(model)} {unknown}program(shape)"
    with pytest.raises(ValueError) as wrong:
        model.module((4,))
    assert str(wrong.value) == (
        f"the shape (4,) is not of the 2 axes of {label(model)}; give a size for each"
    )
    half: Any = "complex64"
    known = "float64, float32, .*, bool; got 'complex64'"
    with pytest.raises(ValueError, match=f"the type of a field is one of {known}"):
        model.module((4, 6), half)


def test_remarks_of_the_compiler_name_the_line_of_the_source(model: Model):
    places = {str(op.location) for op in model.module((4, 6)).walk() if op.name == "stencil.store"}
    line = model.step.assignments[0].place.line
    assert len(places) == 1 and f'"{__file__}":{line}:' in places.pop()
