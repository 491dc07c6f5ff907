"""The table of real programs: both starts beside the naive kernels and bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tables import TYPES, Row, number, table

COLUMNS = (
    "program", "type", "order", "kernels", "depth", "GPts/s, random", "quiet", "naive", "ratio",
    "bound", "of the bound", "model", "commit",
)  # fmt: skip


def program_cells(row: Row, quiet: float | None) -> tuple[str, ...]:
    """The cells of a row, and the speed from a quiet start."""
    speed, naive = row["gpts_per_s"], row["naive_gpts_per_s"]
    return (
        row["program"],
        TYPES[row["dtype"]],
        "free" if row["fp_reassoc"] == "on" else "",
        str(row["kernels_per_step"]),
        str(row["depth"]),
        number(speed, 1),
        number(quiet, 1),
        number(naive, 1) if naive else "",
        number(speed / naive, 2) if naive else "",
        number(row["copy_bound_one_step"], 1),
        number(row["share"], 2),
        number(row["predicted"], 1),
        row["commit"].rpartition(" ")[2],
    )


def program_rows(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """The rows with random cells."""

    def key(row: Row) -> tuple[str, str, str]:
        return row["program"], row["dtype"], row["fp_reassoc"]

    quiet = {key(row): row["gpts_per_s"] for row in rows if row["start"] == "quiet"}
    for row in sorted((row for row in rows if row["start"] == "random"), key=key):
        yield program_cells(row, quiet.get(key(row)))


def programs_section(rows: Sequence[Row]) -> str:
    """The table of all programs."""
    return table(COLUMNS, program_rows(rows))
