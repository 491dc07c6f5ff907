"""Refuses random numbers drawn by a step: traced once, a step would keep the numbers."""

from __future__ import annotations

import dis
import inspect
import pickle
import random
import sysconfig
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from timetile.frontend.errors import SourcePlace, StencilError, place_in

MAKERS = {"default_rng", "RandomState"}
"""NumPy's functions that make a generator."""


KINDS = (np.random.Generator, np.random.RandomState, random.Random)
"""Generators of NumPy and of Python."""

LIBRARIES = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, "<frozen")
"""How the files of installed code begin."""

DEEPEST = 3
"""How many calls below a called function are followed."""


def surroundings(function: Callable[..., object]) -> dict[str, Any]:
    """The values that a function takes from around itself, and of a method's object, by name."""
    around = inspect.getclosurevars(function)
    own = getattr(getattr(function, "__self__", None), "__dict__", {})
    return {**own, **around.globals, **around.nonlocals}


def is_helper(value: object) -> bool:
    """Whether a value is a function of the user's own code, which a step may call."""
    if not isinstance(value, FunctionType) or value.__code__.co_filename.startswith(LIBRARIES):
        return False
    return (value.__module__ or "").partition(".")[0] != "timetile"


def with_helpers(function: FunctionType) -> list[FunctionType]:
    """A called function, and the functions of the user's own code that are called below."""
    found = level = [function]
    for _ in range(DEEPEST):
        values = {id(v): v for each in level for v in surroundings(each).values() if is_helper(v)}
        level = [value for value in values.values() if value not in found]
        found = [*found, *level]
    return found


def state_of(generator: Any) -> bytes:
    """The state of a generator; the system's has none."""
    if isinstance(generator, random.SystemRandom):
        return b""
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    if isinstance(generator, random.Random):
        return pickle.dumps(generator.getstate())
    return pickle.dumps(generator.get_state())


class RandomNumbers:
    """The states of the generators that a step function may use, before the function is called."""

    def __init__(self, function: Callable[..., object]):
        self.function = function
        self.makers = MAKERS & set(function.__code__.co_names)
        """The names behind which a generator is made."""
        self.generators: dict[str, list[Any]] = {}
        """The generators behind each name."""
        for name, value in surroundings(function).items():
            if isinstance(value, KINDS):
                self.generators[name] = [value]
            elif is_helper(value):
                self.look_into(name, with_helpers(value))
        self.before = self.states()

    def look_into(self, name: str, called: list[FunctionType]) -> None:
        """Note the generators of functions called by a name of the step."""
        around = (value for each in called for value in surroundings(each).values())
        self.generators[name] = [value for value in around if isinstance(value, KINDS)]
        if any(MAKERS & set(each.__code__.co_names) for each in called):
            self.makers = {*self.makers, name}

    def states(self) -> dict[str, object]:
        """The states by name: of NumPy's and Python's own generators, and of generators around."""
        own = pickle.dumps(np.random.get_state()), random.getstate()
        around = {name: [state_of(each) for each in some] for name, some in self.generators.items()}
        return {"random": own, **around}

    def check(self, place: SourcePlace) -> None:
        """Raise StencilError if the step has drawn a number, or makes a generator."""
        after = self.states()
        used = {name for name, state in self.before.items() if after[name] != state}
        used |= self.makers
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
