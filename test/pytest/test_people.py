"""What users bring along: immutable arrays, random numbers, complex numbers, options in a loop."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import multiprocessing
import pickle
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import timetile
from timetile import Field, Scalar
from timetile.frontend.errors import StencilError

GENERATOR = np.random.default_rng(7)
OF_PYTHON = random.Random(7)

DRAWN = (
    "a step is called once, and a random number drawn in the step would be the same for all cells "
    "and steps; draw an array before, and pass it as a timetile.Field, or as a timetile.Series "
    "with a number for each step"
)


@timetile.stencil
def heat(u: Field, k: Field, c: Scalar):
    u.next = u[0, 0] + c * k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@timetile.stencil
def wave(u: Field):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + 0.1 * (around - 4 * u[0, 0])


class Immutable:
    """An array of a library with the array API whose arrays cannot be written."""

    device = "here"

    def __init__(self, cells: Any):
        self.cells = np.array(cells)
        self.cells.flags.writeable = False
        self.shape, self.dtype = self.cells.shape, self.cells.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.cells, dtype) if copy else self.cells

    def __dlpack__(self, **options: Any) -> Any:
        return self.cells.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.cells.__dlpack_device__()

    def __array_namespace__(self) -> Any:
        return Immutable

    @staticmethod
    def asarray(cells: Any, *, device: str, copy: bool) -> Immutable:
        assert device == "here" and copy
        return Immutable(cells)


def maker_of(library: str) -> Any:
    """What makes immutable arrays of a library."""
    return Immutable if library == "own" else importlib.import_module("jax.numpy").asarray


def run_with(library: str, check: Callable[..., None], *given: str) -> None:
    """Run a check: with JAX in a process of its own, as JAX's threads forbid forks ever after."""
    if library == "own":
        check(library, *given)
    elif importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    else:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(check, (library, *given))


def check_arrays(library: str, dtype: str) -> None:
    make, rng = maker_of(library), np.random.default_rng(1)
    u, k = (rng.random((17, 20)).astype(dtype) for _ in range(2))
    expected = heat.advance({"u": u, "k": k}, steps=5, c=0.2)["u"]
    given = {"u": make(u), "k": make(k)}
    state = heat.advance(given, steps=5, c=0.2)
    assert type(state["u"]) is type(given["u"]) and state["k"] is given["k"]
    assert np.asarray(state["u"]).tobytes() == expected.tobytes()
    assert np.asarray(given["u"]).tobytes() == u.tobytes()


@pytest.mark.parametrize("library", ["own", "jax"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_immutable_arrays_go_in_and_out(library: str, dtype: str):
    run_with(library, check_arrays, dtype)


def check_snapshots(library: str) -> None:
    make = maker_of(library)
    u = np.random.default_rng(2).random((12, 15)).astype(np.float32)
    kept = [state for _, state in wave.snapshots({"u": make(u)}, steps=6, every=2)]
    expected = [state for _, state in wave.snapshots({"u": u}, steps=6, every=2)]
    for found, wanted in zip(kept, expected, strict=True):
        for name in ("u", "u.prev"):
            assert np.asarray(found[name]).tobytes() == wanted[name].tobytes()


@pytest.mark.parametrize("library", ["own", "jax"])
def test_snapshots_of_immutable_arrays_stay(library: str):
    run_with(library, check_snapshots)


def of_numpy(u: Field):
    u.next = u[0] + np.random.random()


def of_a_generator(u: Field):
    u.next = u[0] + GENERATOR.normal()


def of_python(u: Field):
    u.next = random.random() * u[0]


def of_a_new_generator(u: Field):
    u.next = u[0] * np.random.default_rng(3).random()


def noise():
    return twice()


def twice():
    return 2 * OF_PYTHON.gauss(0, 1)


def of_a_helper(u: Field):
    u.next = u[0] + noise()


def of_a_maker(u: Field):
    u.next = u[0] + made()


def made():
    return np.random.default_rng(3).random()


def of_a_part(u: Field):
    u.next = sum(u[k] * GENERATOR.random() for k in (-1, 1))


def of_an_object(u: Field):
    u.next = u[0] + DRAWING.drawn_twice()


def of_a_list(u: Field):
    u.next = u[0] + DRAWINGS[0]()


def of_a_module(u: Field):
    u.next = u[0] + MODULE.GENERATOR.random()


class Drawing:
    """Draws numbers in its methods, and in calls."""

    def __init__(self):
        self.generator = np.random.default_rng(7)

    def drawn_twice(self):
        return self.generator.normal() + self()

    def __call__(self, *, of: Any = GENERATOR):
        return of.normal()


DRAWING = Drawing()
DRAWINGS = [partial(DRAWING)]
MODULE = sys.modules[__name__]


def add():
    """No function of points, though of an equal name."""
    return np.random.default_rng(3).random()


class Plate:
    """A plate with numbers of its own."""

    def __init__(self, k: float):
        self.k, self.drawn = k, np.random.default_rng(5)
        self.step = timetile.stencil(self.update)

    def update(self, u: Field):
        u.next = u[0] + self.k * (u[-1] + u[1] - 2 * u[0])

    def noisy(self, u: Field):
        u.next = u[0] + self.drawn.normal()


def test_methods_of_objects_are_steps():
    plates, u = [Plate(k) for k in (0.1, 0.25)], np.arange(6.0) ** 2
    for plate in plates:
        found = plate.step.on(executor="numpy").advance({"u": u})["u"]
        wanted = u[1:-1] + plate.k * (u[:-2] + u[2:] - 2 * u[1:-1])
        np.testing.assert_allclose(found[1:-1], wanted, rtol=1e-15)
    with pytest.raises(timetile.StencilError, match="a random number drawn in the step"):
        timetile.stencil(plates[0].noisy)


def test_a_wrong_name_of_numpy_points_at_the_line_of_the_step():
    numpy: Any = np

    def wrong(u: Field):
        u.next = numpy.sine(u[0])

    with pytest.raises(timetile.StencilError, match="has no attribute 'sine'; a step") as caught:
        timetile.stencil(wrong)
    assert caught.value.file == __file__


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (of_numpy, "np.random"),
        (of_a_generator, "GENERATOR"),
        (of_python, "random"),
        (of_a_new_generator, "np.random.default_rng"),
        (of_a_helper, "noise"),
        (of_a_maker, "made"),
        (of_a_part, "GENERATOR"),
        (of_an_object, "DRAWING.drawn_twice"),
        (of_a_list, "DRAWINGS"),
        (of_a_module, "MODULE.GENERATOR"),
    ],
)
def test_random_numbers_in_a_step_are_refused(step: Callable[..., None], place: str):
    with pytest.raises(StencilError) as caught:
        timetile.stencil(step)
    assert caught.value.reason == DRAWN
    assert caught.value.line == step.__code__.co_firstlineno + 1
    *_, line, mark = str(caught.value).splitlines()
    assert line[mark.index("^") : mark.rindex("^") + 1] == place


def test_numbers_drawn_before_are_taken():
    factor = float(np.random.default_rng(3).random())

    def scaled(u: Field):
        u.next = factor * u[0]

    assert timetile.stencil(scaled).advance({"u": np.ones(8)}, steps=1)["u"][3] == factor


def test_names_of_other_functions_in_a_step_draw_nothing():
    def helper(u: Field):
        return later(u) if TYPE_CHECKING else u[0]

    def sourced(u: Field, shot: timetile.Points):
        u.next = 0.5 * helper(u)
        shot.add(u)

    assert timetile.stencil(sourced).step.written == ("u",)

    def later(u: Field):
        return u[0]


def test_complex_arrays_of_real_fields_are_refused():
    with pytest.raises(TypeError) as caught:
        wave.advance({"u": np.zeros((8, 8), complex)})
    assert str(caught.value) == (
        "u has complex elements, and a timetile.Field is of real numbers; declare u as "
        "timetile.Complex"
    )


def test_equal_options_give_one_model():
    assert heat.on(depth=3, executor="cpu") is heat.on(executor="cpu", depth=3)
    assert heat.on(depth=3) is not heat.on(depth=2)
    assert heat.on(depth=3).on(depth=2) is not heat.on(depth=2)
    other: Any = heat
    assert other.on(parts=[2, 2]) is not other.on(parts=[2, 2])


def test_a_model_with_variants_is_copied(tmp_path: Path):
    wave.on(executor="cpu").advance({"u": np.ones((8, 8))}, steps=1)
    for twin in (copy.deepcopy(wave), pickle.loads(pickle.dumps(wave.step))):
        assert twin is not None
    assert copy.deepcopy(wave).on(executor="cpu") is not wave.on(executor="cpu")
