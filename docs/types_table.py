"""The table of 16-bit fields: speeds beside FP32, and errors."""

from __future__ import annotations

from typing import Any

from tables import Row, number, table

STORED = ("program", "cells in memory", "GPts/s", "of FP32", "largest error", "commit")


def stored_cells(row: Row) -> tuple[str, ...]:
    """A row: how fast a program runs with fields of a type, and how wrong the fields become."""
    error = row["largest_error"]
    return (
        row["program"],
        row["storage"],
        number(row["gpts_per_s"]),
        number(row["ratio_to_f32"], 2),
        f"{error:.1%}" if error else "",
        row["commit"][:8],
    )


def stored_section(report: dict[str, Any]) -> str:
    """The table with machine and command."""
    rows = [row for row in report["rows"] if not row["error"]]
    domains = dict.fromkeys(" x ".join(map(str, row["domain"])) for row in rows)
    facts = f"{report['device']}, {' and '.join(domains)} cells:"
    command = f"```console\n$ {report['command']}\n```"
    return f"{facts}\n\n{command}\n\n{table(STORED, map(stored_cells, rows))}"
