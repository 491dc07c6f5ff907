"""
The number of generated cases, by profile: `check` few, `ci` (the default, used by `make test`)
some, `nightly` all. A profile is hypothesis' own: `pytest --hypothesis-profile=check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TypeVar

from hypothesis import settings

EXAMPLES = {"check": 2, "ci": 2, "nightly": 500}
"""How many examples hypothesis draws for each test, by profile."""

SHARES = {"check": 0.05, "ci": 0.1, "nightly": 1.0}
"""The share of a test's seeds, by profile."""

FEWEST = 2
"""The least number of cases of a test with enough cases."""

T = TypeVar("T")


def part_of(count: int) -> int:
    """The number of cases that run, for a number of cases in all."""
    share = SHARES[settings.get_current_profile_name()]
    return min(count, max(FEWEST, ceil(count * share)))


def seeds(count: int) -> range:
    """The first seeds of a number of seeds; all in `make nightly`."""
    return range(part_of(count))


def spread(cases: Sequence[T]) -> list[T]:
    """A part of the cases, at equal distances; all in `make nightly`."""
    wanted = part_of(len(cases))
    return [cases[k * len(cases) // wanted] for k in range(wanted)]


def few(cases: Sequence[T]) -> list[T]:
    """A part of the cases in `make check`; all elsewhere."""
    is_check = settings.get_current_profile_name() == "check"
    return spread(cases) if is_check else list(cases)


def half(cases: Sequence[T]) -> list[T]:
    """Every second case in `make test`, fewer in `make check`, and all cases in `make nightly`."""
    return list(cases) if is_nightly() else few(cases[::2])


def taking_turns(cases: Sequence[T], number: int) -> list[T]:
    """The case for an example's number; all cases in `make nightly`."""
    return list(cases) if is_nightly() else [cases[number % len(cases)]]


def is_nightly() -> bool:
    """Whether everything runs."""
    return settings.get_current_profile_name() == "nightly"
