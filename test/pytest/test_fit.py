"""The fits of the cost model: their descriptions, and the script that judges fits."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from support.benchmark_scripts import BENCHMARKS, scripts
from timetile.passes.targets.target import FITS, target_named


@pytest.fixture(scope="module")
def fit() -> Iterator[ModuleType]:
    """The script `benchmarks/fit.py`."""
    with scripts("fit") as (script,):
        yield script


def test_a_fit_names_its_samples_and_undecided_parameters(fit: ModuleType):
    for made in FITS:
        named = set(fit.paths(made.parameters))
        assert set(made.unfitted) < named
        assert made.is_measured == bool(made.samples)
        for name in (*made.samples, *made.assembled):
            assert (BENCHMARKS / "samples" / name).stat().st_size
        assert all(fit.value_of(made.parameters, path) >= 0 for path in named)


def test_a_value_is_replaced_by_its_name(fit: ModuleType):
    target = target_named("sm_90")
    for path in fit.paths(target.parameters):
        now = fit.value_of(target.parameters, path)
        made = fit.with_value(target, path, now + 3)
        differing = [
            other
            for other in fit.paths(target.parameters)
            if fit.value_of(made.parameters, other) != fit.value_of(target.parameters, other)
        ]
        assert differing == [path] and fit.value_of(made.parameters, path) == now + 3


@pytest.mark.parametrize(
    ("predicted", "measured", "correlation"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1),
        ([1, 2, 2, 3], [1, 2, 2, 9], 1),
        ([1, 2, 3, 4], [2, 1, 4, 3], 0.6),
    ],
)
def test_rank_correlation_is_spearmans(
    fit: ModuleType, predicted: list[float], measured: list[float], correlation: float
):
    assert fit.rank_correlation(predicted, measured) == pytest.approx(correlation)


def test_samples_are_predicted_and_a_worse_value_deviates_more(fit: ModuleType):
    """Lines of three points move cells and compute little: the memory's speed decides."""
    samples = [s for s in fit.read_samples("h200-2d.jsonl") if s.program.startswith("j1d3pt:f64")]
    rows = {"j1d3pt:f64:10240000": list(fit.prepared("j1d3pt:f64:10240000", samples[::4]))}
    target = target_named("h200")
    now = fit.deviation(rows, target)
    worse = fit.with_value(target, "computing.pipe_efficiency", 0.2)
    assert now < 0.3 < fit.deviation(rows, worse)


def test_a_page_names_every_value_without_samples():
    page = (BENCHMARKS.parent / "docs" / "cost_model.md").read_text()
    named = {name for made in FITS for name in made.unfitted}
    assert named and not [name for name in named if f"`{name}`" not in page]


def test_lines_in_one_dimension_decide_the_speed_of_wide_lanes_and_nothing_of_plates(
    fit: ModuleType,
):
    """Parameters without influence on a handful of kernels are named."""
    samples = [s for s in fit.read_samples("h200-2d.jsonl") if s.program.startswith("j1d3pt:f64")]
    rows = {"j1d3pt:f64:10240000": list(fit.prepared("j1d3pt:f64:10240000", samples[::4]))}
    found = set(fit.undecided(rows, [], target_named("h200")))
    assert found.isdisjoint({"moving.two_vectors", "waiting.launch", "worth.level"})
    assert found >= {"registers.resident", "rim.wide", "worth.wide_sums", "spare.turns"}
