"""Makes the tables of two GPUs: python docs/several_gpus_tables.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tables import Row, number, table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

PREDICTED: list[Row] = json.loads((RESULTS / "several-gpus-predicted.json").read_text())["rows"]

COLUMNS = (
    "program", "cells of two GPUs", "weak efficiency", "of both at once", "predicted",
    "strong speed-up", "predicted", "GPts/s, strong", "rims", "commit",
)  # fmt: skip


def rims(row: Row) -> str:
    """How rims reach the neighbour."""
    launches = row.get("launches_an_exchange", 1)
    return row["rims"] + (f", every {launches} launches" if launches > 1 else "")


def line(weak: Row, strong: Row, predicted: Row) -> tuple[str, ...]:
    """The row of a program on a domain of two GPUs, beside what is predicted."""
    assert weak["commit"] == strong["commit"], "rows of one run"
    assert weak["equal_bits"] and strong["equal_bits"]
    return (
        f"{weak['program']} {weak['dtype']}",
        " x ".join(map(str, weak["domain"])),
        number(weak["weak_efficiency"], 3),
        number(weak["weak_of_apart"], 3),
        number(predicted["weak_efficiency"], 3),
        number(strong["strong_speedup"], 2),
        number(predicted["strong_speedup"], 2),
        number(strong["gpts_per_s"]),
        rims(weak),
        weak["commit"],
    )


def pairs(rows: Sequence[Row], size: str) -> dict[tuple[str, str], tuple[Row, Row]]:
    """The rows of weak and of strong scaling of a size, exchanging as chosen."""
    own = [
        row
        for row in rows
        if (row["size"], row["ranks"], row["parts_per_gpu"]) == (size, 2, 1)
        and row.get("exchange_every") is None
    ]
    weak, strong = (
        {(row["program"], row["dtype"]): row for row in own if name in row}
        for name in ("weak_efficiency", "strong_speedup")
    )
    return {key: (row, strong[key]) for key, row in weak.items()}


def section(rows: Sequence[Row], size: str) -> str:
    """The table of the rows of a size, beside predictions."""
    predicted = {(row["program"], row["dtype"]): row for row in PREDICTED if row["size"] == size}
    known = sorted(pairs(rows, size).items(), key=lambda each: each[0])
    return table(COLUMNS, (line(*found, predicted[key]) for key, found in known))


def large_section(report: Row) -> str:
    """The table of domains that fill GPUs."""
    return section(report["rows"], "fill")


def small_section(report: Row) -> str:
    """The table of small domains."""
    return section(report["rows"], "small")


def short_section(report: Row) -> str:
    """The table of both kinds of domains, without predictions and commits."""
    sizes = [pairs(report["rows"], size) for size in ("fill", "small")]
    lines = (
        (f"{program} {dtype}", *(cell for size in sizes for cell in short(*size[program, dtype])))
        for program, dtype in sorted(sizes[0])
    )
    columns = "program", "cells", "weak", "strong", "few cells", "weak", "strong"
    return table(columns, lines)


def short(weak: Row, strong: Row) -> tuple[str, ...]:
    """The cells of two GPUs, weak efficiency and strong speed-up."""
    shape = " x ".join(map(str, weak["domain"]))
    return shape, number(weak["weak_efficiency"], 3), number(strong["strong_speedup"], 2)


def main() -> None:
    from make_performance import replace

    report: Row = json.loads((RESULTS / "several-gpus.json").read_text())
    for name, sections in {
        "several_gpus.md": {"table two large": large_section, "table two small": small_section},
        "performance.md": {"table two short": short_section},
    }.items():
        page = ROOT / "docs" / name
        for mark, section in sections.items():
            page.write_text(replace(page.read_text(), mark, section(report)))


if __name__ == "__main__":
    main()
