"""
Build the example's hosts in C, C++ and Fortran, as far as compilers are there, and run each on a
GPU: the cell that a host prints has the bits of the CPU executor.

    python benchmarks/check_hosts.py --out benchmarks/results/hosts-h200.json

A bundle of a program with cells of f16, f32 and truth values follows, as in `check_bundle.py`.

A machine with a GPU may have no compiler of Fortran. On a machine with compilers, and without a
GPU,

    python benchmarks/check_hosts.py --build hosts --cuda FOLDER

writes the bundle and the hosts into the folder `hosts`; FOLDER/include has `cuda.h`, as in the
wheel nvidia-cuda-runtime. With `--built hosts`, the other machine runs hosts of the folder where it
has no compiler. The host in Fortran holds the library of Fortran.
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

NAMES = "compilers.json"
"""The file with the compilers of the hosts in a folder."""

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


@dataclass(frozen=True)
class Host:
    """A host of a bundle: its program, and the first line of its compiler's version."""

    program: Path
    compiler: str


def stand_in(folder: Path, made: Path) -> str:
    """A library in place of the driver's, with the functions that a bundle calls, for linking."""
    listed = subprocess.run(["nm", "-u", str(made)], check=True, capture_output=True, text=True)
    names = [word for word in listed.stdout.split() if word.startswith("cu")]
    source, library = folder / "driver.c", folder / "libcuda.so"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    words = ["gcc", "-shared", "-Wl,-soname,libcuda.so.1", str(source), "-o", str(library)]
    subprocess.run(words, check=True)
    source.unlink()
    return str(library)


def fortran_inside() -> list[str]:
    """How a host holds the library of Fortran."""
    files = [
        subprocess.run(
            ["gfortran", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in ("libgfortran.a", "libquadmath.a")
    ]
    group = ["-Wl,--start-group", *files, "-Wl,--end-group"]
    return ["-static-libgfortran", "-static-libgcc", *group]


def built(language: str, folder: Path, include: Path, *, has_driver: bool) -> Host | None:
    """Build a host in the folder of a bundle; None without a compiler."""
    compiler, source, standard = COMPILERS[language]
    if shutil.which(compiler) is None:
        return None
    made, c = folder / f"host_{language}", folder / "heat2d.o"
    flags = [standard, "-O1", f"-I{include}", f"-I{folder}", f'-DHEAT2D_FOLDER="{folder}"']
    words = ["gcc", "-std=c99", *flags[1:], "-c", str(folder / "heat2d.c"), "-o", str(c)]
    subprocess.run(words, check=True)
    driver = loaded_driver() if has_driver else stand_in(folder, c)
    words = [compiler, *flags]
    if language == "fortran":
        words += [f"-J{folder}", str(folder / "heat2d.f90")]
    linked = [str(c), driver, "-lm", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    if language == "fortran" and not has_driver:
        linked += fortran_inside()
    subprocess.run([*words, str(HOSTS / source), *linked, "-o", str(made)], check=True)
    name = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return Host(made, name.stdout.splitlines()[0])


def build(folder: Path, include: Path) -> None:
    """Write the bundle and all hosts into a folder, for a machine with a GPU."""
    write_bundle(timetile.compile(EXAMPLES / "heat2d.mlir", executor="planes"), STEPS, folder)
    hosts = {each: built(each, folder, include, has_driver=False) for each in COMPILERS}
    names = {each: host.compiler for each, host in hosts.items() if host is not None}
    (folder / NAMES).write_text(json.dumps(names) + "\n")


def host_there(language: str, folder: Path) -> Host | None:
    """A host in a folder of `build`; None without."""
    names = json.loads((folder / NAMES).read_text())
    if language not in names:
        return None
    return Host(folder / f"host_{language}", f"{names[language]}, on another machine")


def host_row(language: str, host: Host | None) -> HostRow:
    """Run a host, with the bundle in its folder."""
    if host is None:
        return HostRow(language, "", f"no {COMPILERS[language][0]} on the path", equal_bits=False)
    done = subprocess.run(
        [host.program, host.program.parent], capture_output=True, text=True, check=False
    )
    said = (done.stdout or done.stderr).strip().splitlines()[-1]
    equal = done.returncode == 0 and float(said) == wanted_cell()
    return HostRow(language, host.compiler, said, equal)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"))
    parser.add_argument("--commit", default=None)
    parser.add_argument("--build", type=Path, help="build the hosts in a folder, and run none")
    parser.add_argument("--built", type=Path, help="a folder with hosts built elsewhere")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    include = options.cuda / "include"
    if options.build is not None:
        build(options.build, include)
        return
    about = {
        "commit": options.commit or commit(),
        "device": device().name,
        "command": "python benchmarks/check_hosts.py",
    }
    rows: list[HostRow] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_bundle(timetile.compile(EXAMPLES / "heat2d.mlir"), STEPS, folder)
        for language in COMPILERS:
            host = built(language, folder, include, has_driver=True)
            if host is None and options.built is not None:
                host = host_there(language, options.built)
            rows.append(host_row(language, host))
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
