"""Few rows of a product of parameters run, and every value runs in a row."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from support.covering import Row, covering, numbered, row_of


def rows_of(*sizes: int) -> list[Row]:
    """All rows of parameters with given numbers of values."""
    names = "abcd"
    return [dict(zip(names, row)) for row in product(*map(range, sizes))]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("sizes", [(5,), (2, 2), (9, 2), (5, 9, 2), (3, 1, 4, 2)], ids=str)
def test_every_value_is_kept_as_often_as_asked(sizes: tuple[int, ...], times: int):
    rows = rows_of(*sizes)
    counted = Counter(value for k in covering(rows, times) for value in rows[k].items())
    total = Counter(value for row in rows for value in row.items())
    assert all(counted[value] >= min(times, count) for value, count in total.items())


def test_as_few_rows_are_kept_as_the_longest_parameter_has_values():
    assert len(covering(rows_of(9, 2))) == 9
    assert len(covering(rows_of(9, 2), times=2)) == 18
    assert len(covering(rows_of(5, 9, 2))) == 9


def test_values_of_other_parameters_take_turns_in_rows():
    """Of two executors each runs half of the programs."""
    rows = rows_of(8, 2)
    assert Counter(rows[k]["b"] for k in covering(rows)) == {0: 4, 1: 4}


def test_another_first_value_keeps_the_others():
    rows = rows_of(8, 2)
    assert not set(covering(rows)) & set(covering(rows, first=1))


@pytest.mark.parametrize("every", [2, 3])
def test_rows_are_shared_between_tests(every: int):
    shares = [covering(rows_of(9), first=first, every=every) for first in range(every)]
    assert sorted(number for share in shares for number in share) == covering(rows_of(9))


def test_values_of_other_parameters_take_turns_in_a_share():
    rows = rows_of(8, 2)
    assert Counter(rows[k]["b"] for k in covering(rows, every=2)) == {0: 2, 1: 2}


def test_values_are_numbered_as_they_come():
    rows = [{"a": a, "b": b} for a, b in product("xyz", ("u", "v"))]
    assert numbered(rows) == rows_of(3, 2)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("alone", [1])
def test_values_given_together_count_as_one_value(
    first: int, second: int, alone: int, request: pytest.FixtureRequest
):
    assert isinstance(request.node, pytest.Function)
    assert row_of(request.node) == {
        "('first', 'second')": (id(first), id(second)),
        "alone": (id(alone),),
    }
