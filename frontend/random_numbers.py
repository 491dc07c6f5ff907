"""Refuses random numbers drawn by a step: traced once, a step would keep the numbers."""

from __future__ import annotations

import dis
import inspect
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from timetile.frontend.errors import SourcePlace, StencilError, place_in

MAKERS = {"default_rng", "RandomState"}
"""NumPy's functions that make a generator."""


def generators(function: Callable[..., object]) -> dict[str, Any]:
    """
    NumPy's generators among the names that a function takes from around itself, and among the
    attributes of the object of a method.
    """
    around = inspect.getclosurevars(function)
    own = getattr(getattr(function, "__self__", None), "__dict__", {})
    found = {**own, **around.globals, **around.nonlocals}
    kinds = (np.random.Generator, np.random.RandomState)
    return {name: value for name, value in found.items() if isinstance(value, kinds)}


def state_of(generator: Any) -> bytes:
    """The state of a generator of NumPy."""
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    return pickle.dumps(generator.get_state())


class RandomNumbers:
    """The states of the generators that a step function may use, before the function is called."""

    def __init__(self, function: Callable[..., object]):
        self.function = function
        self.generators = generators(function)
        self.before = self.states()

    def states(self) -> dict[str, object]:
        """The states by name: of NumPy's and Python's own generators, and of generators around."""
        own = pickle.dumps(np.random.get_state()), random.getstate()
        around = {name: state_of(generator) for name, generator in self.generators.items()}
        return {"random": own, **around}

    def check(self, place: SourcePlace) -> None:
        """Raise StencilError if the step has drawn a number, or makes a generator."""
        after = self.states()
        used = {name for name, state in self.before.items() if after[name] != state}
        used |= MAKERS & set(self.function.__code__.co_names)
        if used:
            raise StencilError(
                "a step is called once, and a random number drawn in the step would be the same "
                "for all cells and steps; draw an array before, and pass it as a timetile.Field, "
                "or as a timetile.Series with a number for each step",
                self.place(used) or place,
            )

    def place(self, used: set[str]) -> SourcePlace | None:
        """The first use of one of the names in the function; None for a use elsewhere."""
        for instruction in dis.get_instructions(self.function):
            if instruction.argval in used:
                return place_in(self.function.__code__, instruction.offset)
        return None
