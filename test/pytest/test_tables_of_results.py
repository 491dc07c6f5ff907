"""Tables and figures of pages are those that the rows of results make."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GPUS = "several-gpus"


@pytest.mark.parametrize(
    ("page", "mark", "module", "section", "results"),
    [
        ("docs/performance.md", "table choice", "choice_table", "choice_section", "choice-h200"),
        ("README.md", "first figure", "choice_table", "first_figure", "choice-h200"),
        ("docs/several_gpus.md", "table two large", "several_gpus_tables", "large_section", GPUS),
        ("docs/several_gpus.md", "table two small", "several_gpus_tables", "small_section", GPUS),
        ("docs/performance.md", "table two short", "several_gpus_tables", "short_section", GPUS),
        ("docs/performance.md", "table types", "types_table", "stored_section", "types"),
    ],
)
def test_tables_of_pages_are_made_from_their_rows(
    page: str,
    mark: str,
    module: str,
    section: str,
    results: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    make = getattr(import_module(module), section)
    rows = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())
    text = (ROOT / page).read_text()
    assert f"<!-- {mark} -->\n{make(rows)}\n<!-- end of {mark} -->" in text, (
        "run python docs/make_performance.py or docs/several_gpus_tables.py"
    )
