"""Steps written as methods: each object has a model with its own numbers."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Scalar
from timetile.frontend.errors import StencilError


@dataclass
class Plate:
    """Heat with numbers of the object, a property and a helper."""

    rate: float = 0.25
    weights: tuple[float, ...] = (1.0, 1.0)

    @property
    def half(self) -> float:
        """A number made of another."""
        return self.rate / 2

    def around(self, u: Any) -> Any:
        """The neighbours along the first axis."""
        return self.weights[0] * u[-1, 0] + self.weights[1] * u[1, 0]

    @timetile.stencil
    def step(self, u: Field, *, k: Scalar):
        u.next = u[0, 0] + k * self.half * (self.around(u) - 2 * u[0, 0])


def stepped(u: np.ndarray[Any, Any], rate: float, below: float = 1.0) -> np.ndarray[Any, Any]:
    """A step of the plate with k = 1."""
    new = u.copy()
    new[1:-1] = u[1:-1] + rate / 2 * (below * u[:-2] + u[2:] - 2 * u[1:-1])
    return new


class Weights:
    """Weights with a number of their own."""

    below = 1.0

    def __getitem__(self, place: int) -> float:
        return 1.0 if place else self.below


U = np.random.default_rng(3).random((6, 5))


def after(plate: Plate) -> np.ndarray[Any, Any]:
    """The plate's field after a step."""
    state: dict[str, Any] = {"u": U}
    return plate.step.on(executor="numpy").advance(state, k=1.0)["u"]


def test_a_step_of_an_object_has_the_numbers_of_the_object():
    plate, other = Plate(), Plate(rate=0.5)
    np.testing.assert_allclose(after(plate), stepped(U, 0.25), rtol=1e-14)
    np.testing.assert_allclose(after(other), stepped(U, 0.5), rtol=1e-14)
    plate.rate = 0.5
    np.testing.assert_allclose(after(plate), stepped(U, 0.5), rtol=1e-14)
    plate.weights = (2.0, 1.0)
    np.testing.assert_allclose(after(plate), stepped(U, 0.5, 2.0), rtol=1e-14)


def test_equal_numbers_have_one_model():
    plate = Plate()
    model = plate.step
    plate.rate = 0.5
    assert plate.step is not model
    plate.rate = 0.25
    assert plate.step is model and Plate().step is not model


def test_a_changed_list_makes_another_model():
    plate: Any = Plate()
    plate.weights = [1.0, 1.0]
    model = plate.step
    plate.weights[0] = 2.0
    assert plate.step is not model


def test_a_changed_number_of_an_inner_object_makes_another_model():
    plate: Any = Plate()
    plate.weights = Weights()
    model = plate.step
    assert plate.step is model
    plate.weights.below = 2.0
    np.testing.assert_allclose(after(plate), stepped(U, 0.25, 2.0), rtol=1e-14)


class Doubled(Plate):
    """A plate with a step of its own beside that of its base."""

    @timetile.stencil
    def step(self, u: Field):
        u.next = 2 * self.rate * u[0, 0]


def test_the_step_of_a_base_has_a_model_of_its_own():
    plate = Doubled()
    own = plate.step
    assert super(Doubled, plate).step is not own
    assert plate.step is own


def test_zeros_of_both_signs_make_two_models():
    plate = Plate(rate=0.0)
    model = plate.step
    plate.rate = -0.0
    assert plate.step is not model


def test_an_attribute_that_the_step_does_not_read_makes_no_other_model():
    plate: Any = Plate()
    model = plate.step
    plate.u, plate.time, plate.log = np.ones((300, 300)), 1.0, object()
    assert plate.step is model


def test_an_object_with_slots_has_no_step():
    @dataclass(slots=True)
    class Narrow:
        rate: float = 0.25

        @timetile.stencil
        def step(self, u: Field):
            u.next = self.rate * u[0]

    with pytest.raises(StencilError, match="an object of Narrow has slots, and no place for mod"):
        _ = Narrow().step


def test_objects_with_steps_are_copied_and_pickled():
    plate = Plate()
    model = plate.step
    for other in (copy.deepcopy(plate), pickle.loads(pickle.dumps(plate))):
        assert other == plate and other.step is not model
        assert str(other.step.module((6, 5))) == str(model.module((6, 5)))


class Misspelt:
    """A step with a wrong name, which is declared and never set."""

    rate = 0.5
    rat: float

    @timetile.stencil
    def lost(self, u: Field):
        u.next = u[0] * self.rat


def test_the_error_of_a_method_is_at_the_line_of_the_attribute():
    with pytest.raises(StencilError) as caught:
        _ = Misspelt().lost
    assert "'Misspelt' object has no attribute 'rat'; an object has its attributes before" in str(
        caught.value
    )
    assert "u.next = u[0] * self.rat" in str(caught.value)


def test_a_step_of_a_class_needs_an_object():
    with pytest.raises(AttributeError, match=r"Plate\.step is a step of objects: take advance"):
        Plate.step.advance(u=U, k=1.0)
