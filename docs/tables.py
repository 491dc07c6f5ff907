"""Tables in Markdown, and their figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
"""What a measurement wrote."""

TYPES = {"f64": "FP64", "f32": "FP32"}
"""Types of cells as tables name them."""

NEAR = 0.97
"""A row so near to what is asked counts as met: two runs differ by as much."""


def number(value: float | None, digits: int = 0) -> str:
    """A figure of the table; empty if absent."""
    return "" if value is None else f"{value:.{digits}f}"


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
