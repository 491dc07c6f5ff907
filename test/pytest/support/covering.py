"""
Covering rows of a product of parameters: every value of every parameter occurs in a row, and values
of different parameters meet in as many pairs as possible for the few rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import pytest

Row = Mapping[str, int]
"""The number of each parameter's value."""


def row_of(item: pytest.Function) -> dict[str, Hashable]:
    """
    The values of a test's parameters; values given together by one mark count as a single value.
    Equal values are one object.
    """
    row: dict[str, Hashable] = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        row[str(mark.args[0])] = tuple(id(item.callspec.params[name.strip()]) for name in names)
    return row


def numbered(rows: Sequence[Mapping[str, Hashable]]) -> list[Row]:
    """The rows, with values numbered in order of appearance."""
    numbers: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)
    return [
        {name: numbers[name].setdefault(value, len(numbers[name])) for name, value in row.items()}
        for row in rows
    ]


def values_of(row: Row) -> list[tuple[str, int]]:
    return sorted(row.items())


def covering(rows: Sequence[Row], times: int = 1, first: int = 0, every: int = 1) -> list[int]:
    """
    The numbers of the kept rows, in order: each value occurs in `times` rows, or in all rows with
    the value if fewer.

    Each added row has the most values with missing rows; of equal rows, the row with the most new
    pairs; of equal rows, the row with the rarest values so far; then the first row. The values of
    all parameters but the longest are counted from `first`: two tests with equal parameters may
    keep different rows.

    With `every` above 1, every `every`-th value of the longest parameter is kept, counted from
    `first`: two tests of nearly equal statements share the cases.
    """
    sizes = {name: 1 + max(row[name] for row in rows) for name in rows[0]} if rows else {}
    shared = max(sizes, key=sizes.__getitem__, default="")

    def order(number: int) -> list[int]:
        longest = max(sizes.values())
        return [
            value if sizes[name] == longest else (value - first) % sizes[name]
            for name, value in rows[number].items()
        ]

    own = [n for n, row in enumerate(rows) if row[shared] % every == first % every]
    occurs = Counter(value for n in own for value in values_of(rows[n]))
    lacking = {value: min(times, count) for value, count in occurs.items()}
    seen: Counter[tuple[str, int]] = Counter()
    pairs: set[tuple[tuple[str, int], ...]] = set()
    left = sorted(own, key=order)
    kept: list[int] = []

    def worth(number: int) -> tuple[int, int, int]:
        values = values_of(rows[number])
        wanted = sum(seen[value] < lacking[value] for value in values)
        met = sum(pair not in pairs for pair in combinations(values, 2))
        return wanted, met, -sum(seen[value] for value in values)

    while left and any(seen[value] < count for value, count in lacking.items()):
        best = max(left, key=worth)
        left.remove(best)
        kept.append(best)
        seen.update(values_of(rows[best]))
        pairs.update(combinations(values_of(rows[best]), 2))
    return sorted(kept)
