"""
Runs programs of a frontend by the command line, and compares the arrays with results of the
frontend's own backend:

    python benchmarks/check_frontend.py FOLDER EXECUTOR [NAME ...] [--out FILE.json]

For each program the folder has NAME.mlir as the frontend prints it, NAME.in.npz for `--args`, and
NAME.out.npz with the arrays `arg0`, `arg1`, ... after a run of the frontend's backend. An array
agrees if no cell is further from the backend's than 3e-6 of the largest value in the array. Exits
with 1 unless all programs agree.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.runtime.cli import main as command_line

Array = NDArray[Any]

LARGEST = 3e-6
"""The largest difference of arrays that agree, relative to the largest value of an array."""


@dataclass
class Finding:
    """How one program ended: `agrees`, `differs` or `refused`."""

    name: str
    ended: str
    difference: float | None = None
    note: str = ""

    def __str__(self) -> str:
        shown = "" if self.difference is None else f"{self.difference:.2e}"
        return f"{self.name:32} {self.ended:8} {shown:9} {self.note}"


def difference_of(found: Array, right: Array) -> float:
    """The largest difference of two arrays, relative to the largest value of the second."""
    if found.shape != right.shape:
        raise ValueError(f"an array has the shape {found.shape}, and the backend's {right.shape}")
    apart = np.abs(found.astype(np.float64) - right.astype(np.float64))
    largest = max(float(np.abs(right).max()), float(np.finfo(right.dtype).tiny))
    relative = float(apart.max()) / largest
    return relative if np.isfinite(relative) else float("inf")


def check(folder: Path, name: str, executor: str) -> Finding:
    """Run one program, and compare the arrays."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "out.npz"
        words = ["run", str(folder / f"{name}.mlir"), "--args", str(folder / f"{name}.in.npz")]
        words += ["--executor", executor, "--out", str(out), "--quiet", "--no-cache"]
        with contextlib.redirect_stderr(said):
            code = command_line(words)
        if code:
            return Finding(name, "refused", note=" ".join(said.getvalue().split()))
        with np.load(out) as file:
            found = dict(file)
    with np.load(folder / f"{name}.out.npz") as file:
        right = dict(file)
    apart = {key: difference_of(found[key], cells) for key, cells in right.items()}
    worst = max(apart, key=lambda key: apart[key])
    ended = "agrees" if apart[worst] <= LARGEST else "differs"
    return Finding(name, ended, apart[worst], worst if apart[worst] else "same bits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("executor")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.names or sorted(file.stem for file in options.folder.glob("*.mlir"))
    findings: list[Finding] = []
    for name in names:
        findings.append(check(options.folder, name, options.executor))
        print(findings[-1], flush=True)
    counts = Counter(finding.ended for finding in findings)
    agreeing = [f.difference for f in findings if f.ended == "agrees" and f.difference is not None]
    largest = max(agreeing, default=0.0)
    print(
        f"{options.executor}: {dict(counts)}; the largest difference of an agreement: {largest:.3g}"
    )
    if options.out is not None:
        rows = [asdict(finding) for finding in findings]
        options.out.write_text(json.dumps({"executor": options.executor, "rows": rows}, indent=1))
    sys.exit(counts["agrees"] < len(findings))


if __name__ == "__main__":
    main()
