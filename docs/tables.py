"""Tables in Markdown, and their figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
"""What a measurement wrote."""


def number(value: float | None, digits: int = 0) -> str:
    """A figure of the table; empty if absent."""
    return "" if value is None else f"{value:.{digits}f}"


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
