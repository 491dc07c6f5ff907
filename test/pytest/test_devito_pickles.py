"""Operators of Devito on timetile are pickled and copied with their translation."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile.devito
from support.devito_case import drawn, dv, grid_of
from timetile.frontend.devito.builds import is_quick

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda operator: pickle.loads(pickle.dumps(operator)),
    "deepcopy": copy.deepcopy,
}


def diffusion(order: int = 6, **options: Any) -> tuple[Any, Any]:
    """A function with random cells, and an operator of the function that has run."""
    u = drawn(dv.TimeFunction(name="u", grid=grid_of(5, 6, 7), space_order=order))
    with timetile.devito.backend(executor="numpy", **options):
        operator = dv.Operator(dv.Eq(u.forward, u + 1e-3 * u.laplace))
    operator.apply(time_M=1)
    return u, operator


@pytest.mark.parametrize("name", COPIES)
def test_a_copied_operator_runs_on_timetile_and_gives_the_same_bits(name: str):
    u, operator = diffusion()
    assert is_quick(operator)
    copied = COPIES[name](operator)
    assert type(copied) is type(operator)
    before = np.array(u.data_with_halo)
    operator.apply(time_M=3)
    expected = np.array(u.data_with_halo)
    u.data_with_halo[:] = before
    assert copied.apply(time_M=3, u=u).ran_on.is_timetile
    np.testing.assert_array_equal(u.data_with_halo, expected)


def test_operators_of_equal_options_have_one_class():
    (_, plain), (_, equal), (_, deeper) = diffusion(2), diffusion(2), diffusion(2, depth=2)
    assert type(plain) is type(equal)
    assert type(plain) is not type(deeper)
    assert pickle.loads(pickle.dumps(type(deeper))) is type(deeper)


def test_the_c_of_an_operator_is_devitos():
    """The C is built when it is looked at; a block's size is a parameter of the C alone."""
    u, operator = diffusion()
    (_, sized), stock = diffusion(), dv.Operator(dv.Eq(u.forward, u + 1e-3 * u.laplace))
    sized.apply(time_M=1, x0_blk0_size=4)
    for each in (operator, sized):
        assert str(each) == str(stock)
        assert not is_quick(each)
