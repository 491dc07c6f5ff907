"""
The samples of the cost model's fit: measured kernels, one a line of JSON.

python benchmarks/samples.py

writes `benchmarks/samples/*.jsonl` anew from the tables in `benchmarks/results`. A line has the
program, the depth, the schedule, the speed, and the assembler's figures. `benchmarks/fit.py` reads
the samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from rows import read_schedule

from timetile.dialects.tile.schedule import Schedule

FOLDER = Path(__file__).parent
RESULTS, SAMPLES = FOLDER / "results", FOLDER / "samples"

SOURCES: Mapping[str, tuple[str, ...]] = {
    "h200-2d.jsonl": ("h200-search.json", "h200-2d.json", "h200-2d-again.json"),
    "h200-3d.jsonl": (
        "h200-search-3d.json",
        "h200-3d.json",
        "h200-3d-again.json",
        "h200-tiles.json",
        "h200-pairs.json",
    ),
}
"""The source tables of each file of samples."""


@dataclass(frozen=True)
class Sample:
    """A measured kernel."""

    program: str
    """In the notation of `benchmarks/measure.py`: `j2d5pt:f64:8352x8352`."""
    halos: str
    fp_division: str
    depth: int
    """Time steps of a launch."""
    schedule: str
    """The schedule as text: `#tile.schedule<...>`."""
    gcells_per_s: float
    """Median of several launches (10^9 cell updates a second)."""
    registers: int
    """Registers of a thread, as assembled."""
    spill_bytes: int
    commit: str
    """The commit of the compiler."""

    @property
    def whole_schedule(self) -> Schedule:
        """The schedule, with default parts."""
        return read_schedule(self.schedule).data


def entries_of(schedule: Schedule) -> dict[str, Any]:
    """The parts of a schedule other than the defaults, as JSON has them."""
    return json.loads(json.dumps(schedule.entries()))


def measured(row: Mapping[str, Any], kernel: Mapping[str, Any], commit: str) -> Sample:
    """The sample of a table's row with a measured kernel."""
    domain = "x".join(map(str, row["domain"]))
    return Sample(
        f"{row['stencil']}:{row['dtype']}:{domain}",
        row.get("halos", "common"),
        row.get("fp_division", "exact"),
        kernel["depth"],
        kernel["schedule"],
        kernel["gcells_per_s"],
        kernel["registers"],
        kernel["spill_bytes"],
        commit,
    )


def samples_of(name: str) -> Iterator[Sample]:
    """The samples of a table of results."""
    table: object = json.loads((RESULTS / name).read_text())
    if isinstance(table, dict):
        report = cast(dict[str, Any], table)
        for row in report["rows"]:
            for kernel in row["all"]:
                yield measured(row, kernel, report["commit"])
        return
    for row in cast(list[dict[str, Any]], table):
        if "error" not in row:
            yield measured(row, row, row["commit"])


def read_samples(name: str) -> list[Sample]:
    """The samples of a file below `benchmarks/samples`."""
    return [Sample(**json.loads(line)) for line in (SAMPLES / name).read_text().splitlines()]


def main() -> None:
    for name, sources in SOURCES.items():
        lines = [json.dumps(asdict(s)) for source in sources for s in samples_of(source)]
        (SAMPLES / name).write_text("\n".join(dict.fromkeys(lines)) + "\n")


if __name__ == "__main__":
    main()
