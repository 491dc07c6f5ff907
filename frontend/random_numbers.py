"""Refuses random numbers drawn by a step: traced once, a step would keep the numbers."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from types import CodeType
from typing import Any, cast

import numpy as np

from timetile.frontend.called_names import (
    Called,
    DottedName,
    names_read,
    own_function,
    reached,
    value_of,
)
from timetile.frontend.errors import SourcePlace, StencilError, place_in

MAKERS = {"default_rng", "RandomState"}
"""NumPy's functions that make a generator."""

OWN = "random"
"""The name of the modules, and of functions, with generators of Python's and of NumPy's own."""

KINDS = (np.random.Generator, np.random.RandomState, random.Random)
"""Generators of NumPy and of Python."""

NameRead = tuple[CodeType, int]


def state_of(generator: Any) -> bytes:
    """The state of a generator; the system's has none."""
    if isinstance(generator, random.SystemRandom):
        return b""
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    if isinstance(generator, random.Random):
        return pickle.dumps(generator.getstate())
    return pickle.dumps(generator.get_state())


def own_states() -> object:
    """The states of NumPy's and Python's own generators."""
    return pickle.dumps(np.random.get_state()), random.getstate()


def makes_generator(value: Any) -> bool:
    """Whether a value is a function of the user's that makes a generator."""
    function = own_function(value)
    names = names_read(function.__code__) if function is not None else ()
    return any(MAKERS & set(name.parts) for name in names)


class RandomNumbers:
    """The states of random generators before a step is traced."""

    def __init__(self, function: Callable[..., object]):
        self.function = cast("Called", function)
        self.makers: list[NameRead] = []
        """Names behind which a generator is made."""
        self.uses: list[tuple[NameRead, Any, bytes]] = []
        """The generators behind a name, with their states."""
        known: set[tuple[str, ...]] = set()
        for name in names_read(self.function.__code__):
            if name.parts not in known:
                known.add(name.parts)
                self.look_behind(name)
        self.own = own_states()

    def look_behind(self, name: DottedName) -> None:
        """Note the generators behind a name of the step."""
        for part, offset in zip(name.parts, name.offsets, strict=True):
            if part in MAKERS:
                self.makers.append((name.code, offset))
        value, offset = value_of(self.function, name)
        place, found = (name.code, offset), reached(value)
        self.uses += [(place, each, state_of(each)) for each in found if isinstance(each, KINDS)]
        if any(map(makes_generator, found)):
            self.makers.append(place)

    def drawn(self) -> NameRead | None:
        """The first name behind which a number was drawn, or a generator is made; None if none."""
        for place, generator, state in self.uses:
            if state_of(generator) != state:
                return place
        return next(iter(self.makers), None)

    def own_name(self) -> NameRead | None:
        """The first name with the word of modules with generators of their own."""
        for name in names_read(self.function.__code__):
            if OWN in name.parts:
                return name.code, name.offsets[name.parts.index(OWN)]
        return None

    def check(self, place: SourcePlace) -> None:
        """Raise StencilError if the step has drawn a number, or makes a generator."""
        used = self.drawn()
        if used is None and self.own == own_states():
            return
        at = used or self.own_name()
        raise StencilError(
            "a step is called once, and a random number drawn in the step would be the same "
            "for all cells and steps; draw an array before, and pass it as a timetile.Field, "
            "or as a timetile.Series with a number for each step",
            place if at is None else place_in(*at),
        )
