"""
The types of a step's arguments are found where Python's type hints are: under other names, as text,
among the names of a function around the step, and within `typing.Annotated`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pytest

import timetile

if TYPE_CHECKING:
    from types import NoneType as OnlyForTypeCheckers


def module_under_another_name() -> timetile.Model:
    import timetile as tt

    @tt.stencil
    def step(u: tt.Field, k: tt.Scalar) -> None:
        u.next = k * u[0]

    return step


def type_under_another_name() -> timetile.Model:
    from timetile import Field as F
    from timetile import Scalar as S

    @timetile.stencil(reach=0)
    def step(u: F, k: S) -> None:
        u.next = k * u[0]

    return step


def beside_a_name_for_type_checkers() -> timetile.Model:
    @timetile.stencil
    def step(u: timetile.Field, k: timetile.Scalar) -> OnlyForTypeCheckers:
        u.next = k * u[0]

    return step


def annotated() -> timetile.Model:
    @timetile.stencil
    def step(u: Annotated[timetile.Field, "kelvin"], k: Annotated[timetile.Scalar, "1"]) -> None:
        u.next = k * u[0]

    return step


@pytest.mark.parametrize(
    "make",
    [
        module_under_another_name,
        type_under_another_name,
        beside_a_name_for_type_checkers,
        annotated,
    ],
)
def test_types_are_found_as_python_finds_them(make: Callable[[], timetile.Model]):
    run = make().on(executor="numpy").advance({"u": np.ones(4)}, k=3.0)
    np.testing.assert_array_equal(run["u"], np.full(4, 3.0))
