"""Makes the tables of what is asked of simulations: edges, time, points, checks, inner steps.

python docs/make_simulations.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from make_performance import DOCS, RESULTS, replace
from make_systems import card
from tables import NEAR, Row, number, table

COLUMNS = ("program", "with", "type", "cells", "on", "asked", "measured", "met", "commit")


@dataclass(frozen=True)
class Beside:
    """
    What a row is asked: a share of a speed, at `least`, or times of a duration, at `most`, beside
    the same program without the feature.
    """

    program: str
    feature: str
    type: str
    cells: str
    on: str
    limit: float
    measured: float
    commit: str
    is_most: bool = False

    @property
    def is_met(self) -> bool:
        """The row reaches what is asked, or nearly."""
        if self.is_most:
            return self.measured * NEAR <= self.limit
        return self.measured >= NEAR * self.limit

    def line(self) -> Iterator[str]:
        """The row of the table."""
        bound = "at most" if self.is_most else "at least"
        yield from (self.program, self.feature, self.type, self.cells, self.on)
        yield f"{bound} {self.limit:g}"
        yield number(self.measured, 2 if self.measured >= 1 else 3)
        yield "yes" if self.is_met else "**no**"
        yield self.commit


LEAST = {
    "periodic": 0.97, "mirror": 0.95, "value": 0.95, "series": 0.98, "until": 0.97,
    "source": 0.97, "receivers": 0.97, "source and receivers": 0.97,
}  # fmt: skip
"""The least share of the speed without a feature."""

TYPES = {"float32": "FP32", "float64": "FP64"}
EDGES = ("periodic", "mirror", "value")
MOST_ON_GPU, MOST_ON_CPU = 1.03, 1.5
"""The most times of a step of Devito's without points, and of Devito's own C on one thread."""

TIMES_NUMPY = 5.0
"""The least times as fast as NumPy on one thread."""


def read(name: str) -> Any:
    """A file of results: rows, or a report with rows."""
    return json.loads((RESULTS / name).read_text())


def cells(row: Row) -> str:
    """The domain in words."""
    return " x ".join(map(str, row["domain"]))


def where(row: Row) -> str:
    """The card, or the processor and its threads."""
    return card(row["device"]) if "threads" not in row else f"{row['device']}, one thread"


def of_feature(features: Sequence[str]) -> list[Beside]:
    """The rows of features of simulations.json, in the file's order."""
    found: list[Beside] = []
    for row in read("simulations.json"):
        if row["feature"] in features:
            more = f" every {row['every']} steps" if "every" in row else ""
            found.append(
                Beside(
                    row["program"], row["feature"] + more, TYPES[row["dtype"]], cells(row),
                    where(row), LEAST[row["feature"]], row["ratio"], row["commit"],
                )
            )  # fmt: skip
    return found


def points() -> Iterator[Beside]:
    """Points in plates and volumes, and in operators of Devito on a GPU and a processor."""
    for row in read("points.json"):
        if row["points"] != "none" and row["wave"] != "lattice":
            yield Beside(
                row["wave"], row["points"], TYPES[row["dtype"]], cells(row), where(row),
                LEAST[row["points"]], row["ratio"], row["commit"],
            )  # fmt: skip
    for row in read("devito-gpu.json")["rows"]:
        said, _, size = row["operator"].rpartition(" ")
        count = f"{row['points']} points"
        yield Beside(
            f"Devito's {said}", count, "FP32", size.replace("x", " x "), where(row),
            MOST_ON_GPU, row["ratio"], row["commit"], is_most=True,
        )  # fmt: skip
    beside_c = read("devito-points.json")
    for row in beside_c["rows"]:
        if row["points"] and row["threads"] is not None:
            said, _, size = row["operator"].rpartition(" ")
            count = f"{row['points']} points, beside Devito's C"
            yield Beside(
                f"Devito's {said}", count, "FP32", size.replace("x", " x "),
                f"{beside_c['machine'].partition(',')[0]}, one thread", MOST_ON_CPU, row["ratio"],
                beside_c["commit"], is_most=True,
            )  # fmt: skip


def section(words: str, found: Sequence[Beside]) -> str:
    """A sentence, and the table."""
    met = sum(each.is_met for each in found)
    lines = table(COLUMNS, (each.line() for each in found))
    said = f"{met} of {len(found)} rows reach what is asked, less {1 - NEAR:.0%}"
    return f"{words} {said}.\n\n{lines}"


def inner_words() -> str:
    """What inner steps reach of NumPy's speed."""
    rows: list[Row] = read("cavity.json")["rows"]
    found = ", ".join(f"{row['times_numpy']:.1f} on {cells(row)} cells" for row in rows)
    return f"**Steps with an inside**, beside NumPy on one thread ({TIMES_NUMPY:g} asked): {found}."


def made() -> str:
    """All tables."""
    sections = (
        ("**Edges** beside `keep` on equal cells.", of_feature(EDGES)),
        ("**Time**: a series beside a constant.", of_feature(["series"])),
        ("**Checks** of the greatest change, beside as many steps.", of_feature(["until"])),
        ("**Points** beside the same steps without points, or as said.", list(points())),
    )
    return "\n\n".join([*(section(*each) for each in sections), inner_words()])


def main() -> None:
    page = DOCS / "performance.md"
    page.write_text(replace(page.read_text(), "table simulations", made()))


if __name__ == "__main__":
    main()
