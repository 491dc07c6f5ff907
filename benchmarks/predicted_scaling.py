"""
What is predicted for the rows of `several_gpus.py` on two GPUs, without any GPU.

    python benchmarks/predicted_scaling.py --arch h200 --out build/predicted.json

A row is a program, a type and a size: weak efficiency, of one GPU on its own domain, and strong
speed-up, of one GPU on the domain of two; how rims travel, and how many launches share an exchange.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from measure import commit
from reports import write_report
from scaling_cases import DOMAINS, Case

from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.small_domains import speed_of
from timetile.runtime.ranks.layout import cells_in


def predicted(program: str, dtype: str, size: str, arch: str) -> dict[str, Any]:
    """The row of a case."""
    case = Case(program, dtype, size, (2,))
    one, both = (speed_of(case.run(times, 1).compiled(arch).kernels) for times in (1, 2))
    parted = case.run(2, 2).compiled(arch)
    assert isinstance(parted, PartedProgram) and parted.exchange is not None
    choice, layout = parted.exchange, parted.parts.decomposition
    cells = sum(cells_in(layout.part(rank)) for rank in range(layout.count))
    two = cells / choice.step_seconds / 1e9
    return {
        "program": program, "dtype": dtype, "size": size, "ranks": 2,
        "launches_an_exchange": choice.chosen.launches, "rims": choice.way,
        "weak_efficiency": round(two / (2 * one), 3), "strong_speedup": round(two / both, 2),
    }  # fmt: skip


def main() -> None:
    """Write the rows of all programs, types and sizes."""
    parser = argparse.ArgumentParser(description="Predicted scaling on two GPUs.")
    parser.add_argument("--arch", default="h200")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [
        predicted(program, dtype, size, given.arch)
        for size in ("fill", "small")
        for program in DOMAINS
        for dtype in ("f32", "f64")
    ]
    write_report(given.out, {"arch": given.arch, "commit": commit()}, rows)


if __name__ == "__main__":
    main()
