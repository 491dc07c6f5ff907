"""Makes the tables on the pages of systems, from systems.json and convolutions.json.

python docs/make_systems.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from make_performance import DOCS, RESULTS, replace
from tables import TYPES, number, table

PAGES = DOCS / "systems"
SYSTEMS = ("ebisu", "an5d", "ssam", "dtb", "semi-stencil", "stencilgen")
COLUMNS = (
    "program", "type", "domain", "depth", "by name", "default", "ceiling", "authors", "on", "ratio",
    "twice",
)  # fmt: skip
CARDS = {"H100": "NVIDIA H100", "H200": "NVIDIA H200", "A100": "NVIDIA A100"}

REACHED, TWICE = 0.9, 2.0
"""The shares of the authors' own speed asked of pipelines by name, and of the default."""

Row = dict[str, Any]


def card(name: str) -> str:
    """The short name of a card."""
    return next((short for short, start in CARDS.items() if name.startswith(start)), name)


def program(row: Row) -> str:
    """The program of a row, with approximate quotients, or with what the pipeline leaves out."""
    said = [row["program"]]
    if row["fp_division"] == "fast":
        said.append("approximate quotients")
    if row["technique"]:
        said.append(row["technique"])
    if row["pipeline"].startswith(row["system"] + "{") and row["paper_gcells_per_s"]:
        said.append(f"`{row['pipeline']}`")
    return ", ".join(said)


def cells_of(row: Row) -> Iterator[str]:
    """One row of a table."""
    paper = row["paper_gcells_per_s"]
    yield program(row)
    yield TYPES[row["dtype"]]
    yield " x ".join(map(str, row["domain"]))
    yield "" if row["error"] else str(row["depth"])
    yield "refused" if row["error"] else number(row["gcells_per_s"])
    yield number(row["default_gcells_per_s"])
    yield f"{number(row['ceiling'])}, {row['ceiling_by']}" if row.get("ceiling") else ""
    yield number(paper) if paper else ""
    yield card(row["paper_device"])
    yield number(row["ratio"], 2) if paper else ""
    yield twice(row) if row["ratio"] else ""


def twice(row: Row) -> str:
    """Whether the default is twice as fast as the authors' code, or what that takes."""
    if row["default_ratio"] >= TWICE:
        return "met"
    share = share_for_twice(row)
    return "open" if not share else f"{number(share, 2)} of the ceiling"


def share_for_twice(row: Row) -> float:
    """The share of a row's ceiling that twice the authors' speed takes; 0 without a ceiling."""
    ceiling = row.get("ceiling", 0)
    return TWICE * row["paper_gcells_per_s"] / ceiling if ceiling else 0.0


def section(report: Row, system: str) -> str:
    """The table of a system, with a line on the card and the commit for each measurement."""
    rows = [row for row in report["rows"] if row["system"] == system]
    rows = [row for row in rows if not row["error"] or row["default_gcells_per_s"]]
    runs = sorted({(card(row["device"]), row["commit"]) for row in rows})
    measured = ", ".join(f"{name} at {commit}" for name, commit in runs)
    return f"GCells/s, measured on one {measured}:\n\n{table(COLUMNS, map(cells_of, rows))}\n"


def named(rows: Iterable[Row]) -> str:
    """The programs of rows, each once."""
    return ", ".join(dict.fromkeys(f"{row['program']} in {TYPES[row['dtype']]}" for row in rows))


def beside_authors(report: Row) -> str:
    """What rows with a figure of the authors' own code reach of the figure."""
    own = [row for row in report["rows"] if row["ratio"]]
    reached = [row for row in own if row["ratio"] >= REACHED]
    less = [row for row in own if row["default_ratio"] < TWICE]
    bound = [row for row in less if share_for_twice(row) >= 1]
    left = [row for row in less if row not in bound]
    said = (
        f"Of {len(own)} rows with a figure of the authors' own code, {len(reached)} reach "
        f"{REACHED} of the figure by name, and the default is at least twice as fast in "
        f"{len(own) - len(less)}."
    )
    if bound:
        said += f" The ceiling does not allow twice in {len(bound)} rows: {named(bound)}."
    if left:
        said += f" {len(left)} rows are open: {named(left)}."
    return f"{said} {highest_shares(report)}\n"


def highest_shares(report: Row) -> str:
    """The highest share that a default reaches of its ceiling, by resource."""
    highest: dict[str, float] = {}
    for row in report["rows"]:
        if row.get("ceiling"):
            share = row["default_gcells_per_s"] / row["ceiling"]
            resource = row["ceiling_by"]
            highest[resource] = max(share, highest.get(resource, 0.0))
    shares = ", ".join(f"{name} {number(share, 2)}" for name, share in sorted(highest.items()))
    return f"The highest share of a ceiling that a default reaches is, by resource: {shares}."


FILTERS = ("filter", "type", "weights", "edges", "cells", "GCells/s", "of a copy", "SSAM")
"""The columns of the table of convolutions."""


def filter_cells(row: Row) -> Iterator[str]:
    """One row of the table of convolutions."""
    yield row["filter"]
    yield TYPES[row["dtype"]]
    yield row["weights"]
    yield row["edges"]
    yield " x ".join(map(str, row["domain"]))
    yield number(row["gcells_per_s"])
    yield number(row["of_copy"], 2)
    yield number(row["ssam"]) if row["ssam"] else ""


def convolutions(report: Row) -> str:
    """The table of convolutions: by weights and edges, then by size."""
    rows = [row for row in report["rows"] if row["gcells_per_s"]]
    kinds = list(dict.fromkeys((r["weights"], r["edges"], len(r["domain"])) for r in rows))

    def place(row: Row) -> tuple[int, str, int]:
        kind = row["weights"], row["edges"], len(row["domain"])
        return kinds.index(kind), row["dtype"], int(row["filter"].split()[0])

    ordered = sorted(rows, key=place)
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    said = f"Measured on one {card(report['device'])} at {commits}"
    return f"{said}:\n\n{table(FILTERS, map(filter_cells, ordered))}\n"


def main() -> None:
    path: Path = RESULTS / "systems.json"
    report: Row = json.loads(path.read_text())
    for system in SYSTEMS:
        page = PAGES / f"{system.replace('-', '_')}.md"
        page.write_text(replace(page.read_text(), f"table {system}", section(report, system)))
    page = DOCS / "systems.md"
    page.write_text(replace(page.read_text(), "beside authors", beside_authors(report)))
    page, known = PAGES / "ssam.md", json.loads((RESULTS / "convolutions.json").read_text())
    page.write_text(replace(page.read_text(), "table convolutions", convolutions(known)))


if __name__ == "__main__":
    main()
