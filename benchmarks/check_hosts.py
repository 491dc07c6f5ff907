"""
Build the example's hosts in C, C++ and Fortran, as far as compilers are there, and run each on a
GPU: the cell that a host prints has the bits of the CPU executor.

    python benchmarks/check_hosts.py --out benchmarks/results/hosts-h200.json

A bundle of a program with cells of f16, f32 and truth values follows, as in `check_bundle.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from check_bundle import loaded_driver, outcome
from measure import commit
from reports import write_report

import timetile
from timetile import Field
from timetile.frontend.field_types import DType
from timetile.runtime.bundle.files import write_bundle
from timetile.runtime.device.gpu import device

EXAMPLES = Path(__file__).parents[1] / "examples"
HOSTS = EXAMPLES / "hosts"

STEPS, CELLS, PLACE = 1000, 258, (10, 129)
"""The run of the example's hosts, and the cell that they print."""

COMPILERS = {
    "c": ("gcc", "heat2d.c", "-std=c99"),
    "c++": ("g++", "heat2d.cpp", "-std=c++11"),
    "fortran": ("gfortran", "heat2d.f90", "-std=f2008"),
}


@timetile.stencil
def masked(u: Field, c: Field, mask: Field):
    """A step of fields of three types."""
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = timetile.where(mask[0, 0], u[0, 0] + 0.1 * c[0, 0] * around, u[0, 0])


@dataclass(frozen=True)
class HostRow:
    """A host, and what came of its run."""

    host: str
    compiler: str
    found: str
    equal_bits: bool


def wanted_cell() -> float:
    """The cell that a host prints, by the CPU executor."""
    u = np.zeros((CELLS, CELLS))
    u[0] = 1.0
    arrays = [u, u.copy()]
    result = timetile.compile(EXAMPLES / "heat2d.mlir", executor="cpu")(*arrays, steps=STEPS)
    return float(arrays[result.latest[0][0]][PLACE])


def host_row(language: str, folder: Path, include: Path, driver: str) -> HostRow:
    """Build and run a host of the bundle in a folder."""
    compiler, source, standard = COMPILERS[language]
    if shutil.which(compiler) is None:
        return HostRow(language, "", f"no {compiler} on the path", equal_bits=False)
    made = folder / f"host_{language}"
    code = [str(folder / "heat2d.f90")] if language == "fortran" else []
    linked = [str(folder / "heat2d.o"), driver, "-lm", "-Wl,--unresolved-symbols=ignore-all"]
    flags = [standard, "-O1", f"-I{include}", f"-I{folder}", f'-DHEAT2D_FOLDER="{folder}"']
    c = ["gcc", "-std=c99", *flags[1:], "-c", str(folder / "heat2d.c"), "-o", linked[0]]
    subprocess.run(c, check=True)
    words = [compiler, *flags, f"-J{folder}"] if code else [compiler, *flags]
    subprocess.run([*words, *code, str(HOSTS / source), *linked, "-o", str(made)], check=True)
    done = subprocess.run([made, folder], capture_output=True, text=True, check=False)
    said = (done.stdout or done.stderr).strip().splitlines()[-1]
    name = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    equal = done.returncode == 0 and float(said) == wanted_cell()
    return HostRow(language, name.stdout.splitlines()[0], said, equal)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"))
    parser.add_argument("--commit", default=None)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    about = {
        "commit": options.commit or commit(),
        "device": device().name,
        "command": "python benchmarks/check_hosts.py",
    }
    rows: list[HostRow] = []
    with tempfile.TemporaryDirectory() as place:
        write_bundle(timetile.compile(EXAMPLES / "heat2d.mlir"), STEPS, Path(place))
        for language in COMPILERS:
            include = options.cuda / "include"
            rows.append(host_row(language, Path(place), include, loaded_driver()))
            print(json.dumps(asdict(rows[-1])), flush=True)
    types: dict[str, DType] = {"u": "float16", "c": "float32", "mask": "bool"}
    text = str(masked.module((67, 131), types))
    found = outcome(text, 7, options.cuda)
    rows.append(HostRow("f16, f32 and bool in c", "", found, found == "same bits"))
    print(json.dumps(asdict(rows[-1])), flush=True)
    if options.out is not None:
        write_report(options.out, about, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
