"""The table of the default beside other depths and tuning, and the first figure of the README."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tables import TYPES, Row, number, table

CHOICES = (
    "program", "type", "steps a launch", "GPts/s", "best depth tried", "GPts/s", "share", "tuned",
    "share", "compared", "predicted", "commit",
)  # fmt: skip

GOOD, TUNED = 0.93, 0.98
"""Asked shares of the best speed: by default, and by tuning."""

FOUND = "heat"
"""The program of the README's first figure."""


def name_of(row: Row) -> str:
    """A program and its type."""
    return f"{row['program']} in {TYPES[row['dtype']]}"


def listed(names: Iterable[str]) -> str:
    """Names as in a sentence."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def speed(value: float) -> str:
    """A speed in three digits, at least whole."""
    return number(value, 0 if value >= 100 else 1)


def choice_cells(row: Row) -> tuple[str, ...]:
    """The default of a program beside the best depth tried, and tuning."""
    return (
        row["program"],
        TYPES[row["dtype"]],
        str(row["default_depth"]),
        speed(row["default_gpts"]),
        str(row["best_depth"]),
        speed(row["best_gpts"]),
        number(row["ratio"], 2),
        speed(row["tuned_gpts"]),
        number(row["tuned_ratio"], 2),
        str(row.get("compared", "")),
        speed(row["predicted"]),
        row["commit"],
    )


def compared_rows(report: dict[str, Any]) -> list[Row]:
    """The rows with a best depth and a tuned speed, examples behind others, FP32 first."""
    rows = [row for row in report["rows"] if row.get("ratio") and row.get("tuned_ratio")]
    return sorted(rows, key=lambda r: ("/" in r["program"], r["program"], r["dtype"]))


def commits_of(rows: Sequence[Row]) -> str:
    """Commits with numbers of rows, most first."""
    counted = Counter(row["commit"] for row in rows).most_common()
    return listed(f"{count} of {name}" for name, count in counted)


def below(rows: Sequence[Row], key: str, least: float) -> str:
    """How many rows reach a share; others by name."""
    short = [row for row in rows if row[key] < least]
    found = f"{least} of the best in {len(rows) - len(short)} of {len(rows)} rows"
    shares = [f"{name_of(row)} ({row[key]:.2f})" for row in short]
    return found if not short else f"{found}, and less in {listed(shares)}"


def spilling(rows: Sequence[Row]) -> str:
    """A sentence on the rows with steady loops that spill."""
    found = [f"{name_of(r)} ({r['steady_spill_words']})" for r in rows if r["steady_spill_words"]]
    if not found:
        return "No steady loop spills."
    return f"Steady loops spill nothing, but for words of a turn in {listed(found)}."


def choice_section(report: dict[str, Any]) -> str:
    """A sentence on all rows, and the table."""
    rows = compared_rows(report)
    said = (
        f"{len(rows)} rows ({commits_of(rows)}), device copy {report['copy_tb_per_s']:.2f} TB/s. "
        f"The default reaches {below(rows, 'ratio', GOOD)}. Tuning reaches "
        f"{below(rows, 'tuned_ratio', TUNED)}; it compares as many schedules as the table says, "
        f"the choice among them. {spilling(rows)}"
    )
    return f"{said}\n\n{table(CHOICES, map(choice_cells, rows))}"


def first_figure(report: dict[str, Any]) -> str:
    """The README's first figure: the README's own program by default."""
    rows = {row["dtype"]: row for row in report["rows"] if row["program"] == FOUND}
    double, single = (rows[kind] for kind in ("f64", "f32"))
    domain = " x ".join(map(str, double["domain"]))
    copies = [1e3 * report["copy_tb_per_s"] / (2 * size) for size in (8, 4)]
    return (
        f"The heat step below, as written, runs at {speed(double['default_gpts'])} GPts/s in FP64 "
        f"and {speed(single['default_gpts'])} in FP32\non {domain} cells of an H200, at the "
        f"default; a device copy bounds one step a launch at {copies[0]:.0f} and {copies[1]:.0f}."
    )
