"""
Measure programs with edges at given depths, beside the chosen one.

    python benchmarks/edge_depths.py --out build/edge-depths.json --commit COMMIT --depths 3 4

Runs take turns as in `simulations.py`, whose programs these are. Bits are compared there.

A machine without a GPU compiles the kernels ahead into the cache, for a named architecture:

    python benchmarks/edge_depths.py --arch h200 --ahead --depths 3 4
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product, repeat
from pathlib import Path
from typing import Any

from simulated_programs import DTYPES, FEATURES, PROGRAMS, Domain
from simulations import (
    GpuFields,
    TimedRuns,
    arrays_of,
    depth_of,
    taken_kernels,
    timed,
    updated_cells,
)

import timetile
from timetile.frontend.field_types import DType
from timetile.runtime.device.gpu import device

Case = tuple[str, Domain, str, DType, int | None]
"""A program, its domain, a feature, a type and a depth."""

Options = dict[str, Any]
"""Options of a compilation: the executor, and the architecture if it is named."""


@dataclass(frozen=True)
class DepthRow:
    """A program with an edge at a depth, which may be the `chosen` one. 1e9 cells per second."""

    program: str
    feature: str
    dtype: str
    domain: Domain
    depth: int
    chosen: bool
    gpts_per_s: float
    commit: str


def program_of(case: Case, given: Options) -> timetile.CompiledProgram:
    """The program of a case."""
    program, domain, feature, dtype, depth = case
    model = PROGRAMS[program][0](feature, domain)
    return model.on(depth=depth, **given).program(domain, dtype)


def compiled_on_disk(case: Case, given: Options) -> tuple[Case, int]:
    """Compile a program into the cache. Returns the steps of its deepest kernel."""
    program = program_of(case, given)
    for kernels in {program.kernels, taken_kernels(program)}:
        for fact in kernels.facts[0]:
            kernels.kernel(fact.name)
    return case, depth_of(program)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/edge-depths.json"))
    parser.add_argument("--commit", default="", help="the commit, for the file")
    parser.add_argument("--arch", help="the architecture, as of kernels made ahead")
    parser.add_argument("--ahead", action="store_true", help="make kernels, and measure nothing")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--program", choices=list(PROGRAMS), default="wave-so4-3d")
    parser.add_argument("--size", type=int, nargs="+", default=[512, 512, 512])
    parser.add_argument("--features", nargs="+", choices=list(FEATURES), default=["keep"])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    parser.add_argument("--depths", type=int, nargs="*", default=[])
    options = parser.parse_args()
    depths: list[int | None] = [None, *options.depths]
    features: list[str] = options.features
    program: str = options.program
    domain: Domain = tuple(options.size)
    dtypes: list[DType] = options.dtypes
    rows: list[DepthRow] = []
    cases: dict[DType, dict[str, Case]] = {
        dtype: {
            f"{feature} {depth}": (program, domain, feature, dtype, depth)
            for feature, depth in product(features, depths)
        }
        for dtype in dtypes
    }
    given: Options = {"executor": "simt" if options.ahead else "gpu"}
    if options.arch:
        given["arch"] = options.arch
    listed = [one for each in cases.values() for one in each.values()]
    with ProcessPoolExecutor(options.workers) as pool:
        made = list(pool.map(compiled_on_disk, listed, repeat(given)))
    if options.ahead:
        print(*made, sep="\n")
        return
    with device(0).current():
        for dtype, known in cases.items():
            fields = GpuFields(arrays_of(program, domain, dtype))
            runs = {
                name: TimedRuns(program_of(case, given), fields, case[2], dtype)
                for name, case in known.items()
            }
            for name, seconds in timed(runs).items():
                feature, depth = known[name][2], known[name][4]
                speed = updated_cells(program, feature, domain) / seconds / 1e9
                rows.append(
                    DepthRow(
                        program, feature, dtype, domain, depth_of(runs[name].program),
                        depth is None, round(speed, 1), options.commit,
                    )
                )  # fmt: skip
                print(rows[-1], flush=True)
            fields.free()
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
