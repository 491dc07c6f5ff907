"""Wrong uses of points in a step are refused, each by a sentence."""

from __future__ import annotations

from typing import Any

import pytest

import timetile
from timetile import Field, Points, repeat
from timetile.frontend.errors import StencilError


def early(u: Field, a: Points):
    u.next[0:5] = u[0]
    a.add(u)
    u.next[5:9] = u[0]


def unused(u: Field, a: Points):
    u.next = u[0]


def twice(u: Field, a: Points):
    u.next = u[0]
    a.add(u)
    a.read(u)


def unwritten(u: Field, v: Field, a: Points):
    u.next = u[0] + v[0]
    a.add(v)


def inner(u: Field, a: Points):
    for _ in repeat(2):
        u.next = u[0] + 1
        a.add(u)


def of_a_value(u: Field, a: Points):
    u.next = u[0]
    use: Any = a.add
    use(u[0])


@pytest.mark.parametrize(
    "step, text",
    [
        (early, "is assigned after a is used"),
        (unused, "is neither added nor read"),
        (twice, "is used twice"),
        (unwritten, "which gets none"),
        (inner, "call it at the end of the step"),
        (of_a_value, "takes a field of the step"),
    ],
)
def test_wrong_uses_are_refused(step: Any, text: str):
    with pytest.raises(StencilError, match=text):
        timetile.stencil(step)
