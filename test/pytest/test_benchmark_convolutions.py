"""The programs of the table of convolutions: weighted sums, however weights are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timetile
from support.benchmark_scripts import scripts

with scripts("convolutions") as found:
    (SCRIPT,) = found

DOMAIN = (7, 9)


def after_a_step(chosen: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The cells before and after a step."""
    compiled = timetile.compile(
        chosen.text(), executor="numpy", fp_reassoc=chosen.options["fp_reassoc"], cache=False
    )
    bounds = [p.bounds for p in compiled.parameters if p.bounds is not None]
    shape = [high - low for low, high in zip(bounds[0].lb, bounds[0].ub)]
    before = np.random.default_rng(2).random(shape)
    after = before.copy()
    compiled(before.copy(), after, *chosen.numbers, 1)
    return before, after


@pytest.mark.parametrize("weights", ["constants", "scalars", "array", "separable"])
def test_a_filter_is_a_weighted_sum(weights: str):
    """Four weights along each axis, one more before the cell than behind."""
    chosen = replace(SCRIPT.Filter(4, "f64", weights), domain=DOMAIN)
    before, after = after_a_step(chosen)
    halo = max(chosen.reach)
    expected = sum(
        weight * before[halo + y : halo + y + DOMAIN[0], halo + x : halo + x + DOMAIN[1]]
        for (y, x), weight in chosen.terms
    )
    np.testing.assert_allclose(after[halo:-halo, halo:-halo], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("edges", "mode"), [("zero", "constant"), ("mirrored", "edge"), ("wrapped", "wrap")]
)
def test_edges_of_a_filter_continue_the_image(edges: str, mode: Any):
    """Cells mirrored at the side are the nearest cells, for 3 x 3 weights."""
    chosen = replace(SCRIPT.Filter(3, "f64", "constants", edges), domain=DOMAIN)
    before, after = after_a_step(chosen)
    around = np.pad(before, 1, mode=mode)
    expected = sum(
        weight * around[1 + y : 1 + y + DOMAIN[0], 1 + x : 1 + x + DOMAIN[1]]
        for (y, x), weight in chosen.terms
    )
    np.testing.assert_allclose(after, expected, rtol=1e-12)


def test_rows_have_names_and_the_figures_of_ssam():
    rows = list(SCRIPT.filters())
    assert len({each.key for each in rows}) == len(rows)
    assert {2, 20, 33} <= {each.side for each in rows if each.dtype == "f64"}
    plain = SCRIPT.row_of(SCRIPT.Filter(3), (48, 0, ""))
    assert (
        plain.ssam == 469 and not SCRIPT.row_of(SCRIPT.Filter(3, "f32", "array"), (0, 0, "")).ssam
    )
