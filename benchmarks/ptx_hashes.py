"""
The hash of the PTX of every kernel of the benchmarks: a check for changes without effect on emitted
code.

    python benchmarks/ptx_hashes.py --check benchmarks/results/ptx-hashes.json
    python benchmarks/ptx_hashes.py --check benchmarks/results/ptx-hashes.json --sample 12
    python benchmarks/ptx_hashes.py --write benchmarks/results/ptx-hashes.json

A row is a program, its element type and size, and a schedule named by a result in
`benchmarks/results`. The schedule is pinned: a change of the cost model changes no row. `--write`
takes the rows from the results. `--sample N` takes N rows, spread over all kinds of tiles,
synchronisations and forms. Nothing is assembled, and no GPU is needed. All 179 rows take seven
minutes of one core, a sample of 12 some 15 seconds. The command ends with 1 if a kernel changed,
and names the kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from rows import read_schedule, source
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.tile.schedule import PARTS
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels, raise_program
from timetile.runtime.kernels.options import Halos, Options
from timetile.runtime.loading.modules import load

RESULTS = Path(__file__).parent / "results"
HASHES = RESULTS / "ptx-hashes.json"

KINDS = tuple(name for name, usual in PARTS.items() if isinstance(usual, StrEnum | bool))
"""Parts of a schedule covered by a sample: words, and decisions made or not."""


@dataclass(frozen=True)
class Row:
    """A program of the benchmarks under one schedule."""

    stencil: str
    dtype: str
    domain: tuple[int, ...]
    halos: str
    fp_division: str
    depth: int
    schedule: str

    @property
    def key(self) -> str:
        """The row as one line of text."""
        size = "x".join(map(str, self.domain))
        terms = f"halos {self.halos} division {self.fp_division}"
        return f"{self.stencil}:{self.dtype}:{size}:{self.depth} {terms} {self.schedule}"

    @property
    def kinds(self) -> set[str]:
        """The parts of the schedule about the kind of emitted code."""
        schedule = read_schedule(self.schedule).data
        kinds = {f"{name} {getattr(schedule, name)}" for name in KINDS}
        return kinds | {self.halos, f"{len(self.domain)} {self.dtype}"}


def measured_rows() -> Iterator[Row]:
    """The rows of all results with a schedule, each once."""
    seen: set[Row] = set()
    for path in sorted(set(RESULTS.glob("*.json")) - {HASHES}):
        table: object = json.loads(path.read_text())
        report = cast(dict[str, Any], table) if isinstance(table, dict) else {"rows": table}
        entries = cast(list[dict[str, Any]], report.get("rows", []))
        for entry in entries:
            if not {"stencil", "schedule", "depth", "halos"} <= set(entry):
                continue
            row = Row(
                entry["stencil"],
                entry["dtype"],
                tuple(entry["domain"]),
                entry["halos"],
                entry["fp_division"],
                entry["depth"],
                entry["schedule"],
            )
            if row not in seen:
                seen.add(row)
                yield row


def sample(rows: list[Row], most: int) -> list[Row]:
    """At most `most` rows; each row adds the most new kinds."""
    left, chosen = list(rows), list[Row]()
    counts: dict[str, int] = {}
    while left and len(chosen) < most:
        best = max(left, key=lambda row: sum(0.1 ** counts.get(kind, 0) for kind in row.kinds))
        left.remove(best)
        chosen.append(best)
        for kind in best.kinds:
            counts[kind] = counts.get(kind, 0) + 1
    return chosen


def kernel_hashes(row: Row) -> dict[str, str]:
    """The hash of each kernel's PTX, by the kernel's name."""
    text, _, _ = source(row.stencil, row.domain, row.dtype)
    options = Options(halos=cast(Halos, row.halos), fp_division=cast(FpDivision, row.fp_division))
    module = raise_program(load(text), options)
    for loop in loops_of(module):
        loop.schedule = read_schedule(row.schedule)
        write_depths(loop, [row.depth])
    kernels = ProgramKernels(module, options, None)
    target = options.target
    hashes: dict[str, str] = {}
    for loop in kernels.facts:
        for known in loop:
            lowered = kernels_of(kernels.hardware(known.name))
            ptx = print_module(lowered, target.isa.ptx_version, target.name)
            hashes[known.name] = sha256(ptx.encode()).hexdigest()[:16]
    return hashes


def described(row: Row) -> tuple[Row, dict[str, str]]:
    """A row with its hashes, or with the error that prevents them."""
    try:
        return row, kernel_hashes(row)
    except Exception as error:
        return row, {"error": f"{type(error).__name__}: {error}"}


def all_hashes(rows: Iterable[Row], processes: int) -> Iterator[tuple[Row, dict[str, str]]]:
    """The hashes of rows, in the rows' order."""
    if processes == 1:
        yield from map(described, rows)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(described, rows)


def read(path: Path) -> dict[Row, dict[str, str]]:
    """The rows of a file of hashes."""
    entries: list[dict[str, Any]] = json.loads(path.read_text())
    rows: dict[Row, dict[str, str]] = {}
    for entry in entries:
        kernels = entry.pop("kernels")
        rows[replace(Row(**entry), domain=tuple(entry["domain"]))] = kernels
    return rows


def write(path: Path, rows: dict[Row, dict[str, str]]) -> None:
    """Write rows and hashes, one row a line."""
    lines = [json.dumps({**asdict(row), "kernels": found}) for row, found in rows.items()]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def check(known: dict[Row, dict[str, str]], rows: list[Row], processes: int) -> int:
    """Compare rows with their known hashes; returns the number of different rows."""
    different = 0
    for number, (row, found) in enumerate(all_hashes(rows, processes), 1):
        changed = [
            name for name in {**known[row], **found} if known[row].get(name) != found.get(name)
        ]
        if changed:
            different += 1
            print(f"changed: {row.key}\n  {', '.join(changed)}{problem(found)}", flush=True)
        print(f"{number} of {len(rows)} rows, {different} changed", file=sys.stderr, flush=True)
    return different


def problem(found: dict[str, str]) -> str:
    """The error of a row without kernels."""
    return f" ({found['error']})" if "error" in found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", type=Path, metavar="FILE")
    what.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--sample", type=int, help="so many rows, of all kinds")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.write is not None:
        rows = list(measured_rows())
        rows = rows if options.sample is None else sample(rows, options.sample)
        found: dict[Row, dict[str, str]] = {}
        for row, hashes in all_hashes(rows, options.processes):
            found[row] = hashes
            write(options.write, found)
            print(f"{len(found)} of {len(rows)} rows{problem(hashes)}", file=sys.stderr, flush=True)
        return
    known = read(options.check)
    rows = list(known)
    rows = rows if options.sample is None else sample(rows, options.sample)
    different = check(known, rows, options.processes)
    print(f"{len(rows)} rows: the PTX of {different} changed")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
