"""Runs of steps with complex fields: complex arrays in and out, pairs of real arrays inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np

from timetile.frontend.arrays import as_given, copy_of, is_immutable, type_of
from timetile.frontend.complex_fields import IMAG, REAL, field_of_part
from timetile.frontend.runs import StateRun
from timetile.frontend.steps import Step

A = TypeVar("A")

PREV = ".prev"


def names_of_parts(name: str) -> tuple[str, str]:
    """The names for both parts of an array in a state: `psi.real.prev` and so on for `psi.prev`."""
    own = name.removesuffix(PREV)
    end = PREV if name.endswith(PREV) else ""
    return field_of_part(own, REAL) + end, field_of_part(own, IMAG) + end


def in_parts(step: Step, state: Mapping[str, Any]) -> dict[str, Any]:
    """
    A state with two real arrays, copies, for each complex array of a complex field. Raises
    TypeError for real arrays of complex fields.
    """
    found: dict[str, Any] = {}
    for name, array in state.items():
        if name.removesuffix(PREV) not in step.pairs:
            found[name] = array
            continue
        if not hasattr(array, "dtype") or not type_of(array).startswith("complex"):
            raise TypeError(
                f"{name} is a complex field of {step.label}; pass an array of complex64 or "
                "complex128, as a.astype(np.complex128)"
            )
        given: Any = np.asarray(array) if is_immutable(array) else array
        real, imag = names_of_parts(name)
        found[real], found[imag] = copy_of(given.real), copy_of(given.imag)
    return found


def user_names(step: Step, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of fields, with a name for each pair."""
    parts = {part: name for name in step.pairs for part in names_of_parts(name)}
    return tuple(dict.fromkeys(parts.get(name, name) for name in names))


class ComplexRun(StateRun):
    """A run of a step with complex fields, over the run of the pairs."""

    def __init__(self, inner: StateRun, parts: Mapping[str, Any]):
        self.inner, self.parts, self.step = inner, parts, inner.step
        self.first, self.done = inner.first, inner.done

    @property
    def assigned(self) -> tuple[str, ...]:
        """The fields with new values, by the names of the state."""
        return user_names(self.step, self.inner.assigned)

    def go(self, steps: int) -> None:
        """Advance by some steps."""
        self.inner.go(steps)
        self.done = self.inner.done

    def state(self, given: Mapping[str, A]) -> dict[str, A]:
        """The state after the steps done, with the arrays of `given` for fields only read."""
        found = self.inner.state({**self.parts, **given})
        for name in self.step.pairs:
            for each in (name, f"{name}{PREV}"):
                real, imag = names_of_parts(each)
                if real not in found:
                    continue
                parts = found.pop(real), found.pop(imag)
                found[each] = given[name]
                if name in self.assigned:
                    found[each] = cast("A", complex_of_parts(*parts, given[name]))
        return found

    @property
    def of_parts(self) -> StateRun:
        """The run of the pairs."""
        return self.inner

    def spare(self) -> list[Any]:
        """Arrays of no state, perhaps written by kernels that still run."""
        return self.inner.spare()


def complex_of_parts(real: Any, imag: Any, given: Any) -> Any:
    """A complex array made of two parts, by the library of a given array."""
    whole = copy_of(given)
    whole.real[...] = real
    whole.imag[...] = imag
    return as_given(whole, given)
