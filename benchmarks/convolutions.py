"""
Measure convolutions of one step: filters of 2 x 2 to 33 x 33 weights.

    python benchmarks/convolutions.py --out benchmarks/results/convolutions.json
    python benchmarks/convolutions.py --compile-for h200 --only f32:3x3,f32:9x9

Weights are constants, scalars, an array, or products of two (`separable`, with permission to change
the order of terms). Edges keep their cells, or continue with zeros, the nearest cell (clamped),
mirrored cells or cells of the other end (wrapped). A batch of images is a program of an axis more.
`of_copy` is the share of a device copy of as many bytes, and `ssam` the authors' own code of SSAM
on one H200. Rows are written as they come, and rows of the output that are not measured anew stay;
`--resume` leaves out the rows that the output has at the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from fields import ELEMENTS, View
from measure import commit
from reports import write_report
from rows import described
from stencils import field_type, two_buffers
from system_compiling import compile_alone, options_for
from system_rows import H200, SSAM_H200
from system_timing import SECONDS, DeviceFields
from timing import copy_bandwidth, events

import timetile
from timetile import Field
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.program.compile import kernels_for, target_text
from timetile.runtime.program.compiled_program import CompiledProgram

Weights = Literal["constants", "scalars", "array", "separable"]
Edges = Literal["kept", "zero", "clamped", "mirrored", "wrapped"]
BOUNDARIES: dict[Edges, Any] = {
    "zero": timetile.value(0.0), "clamped": "clamp", "mirrored": "mirror", "wrapped": "periodic",
}  # fmt: skip
PLATE, IMAGES = (8192, 8192), (64, 1024, 1024)


@dataclass(frozen=True)
class Filter:
    """A convolution of square filters."""

    side: int
    dtype: str = "f32"
    weights: Weights = "constants"
    edges: Edges = "kept"
    domain: tuple[int, ...] = PLATE

    @property
    def key(self) -> str:
        """The name of the row in options."""
        shape = "x".join(map(str, self.domain))
        return f"{self.dtype}:{self.side}x{self.side}:{self.weights}:{self.edges}:{shape}"

    @property
    def reach(self) -> tuple[int, int]:
        """Cells before and after a cell that the filter reads."""
        return self.side // 2, self.side - 1 - self.side // 2

    @property
    def terms(self) -> list[tuple[tuple[int, ...], float]]:
        """The offsets and weights, row by row: of sum 1, all different, or products of two."""
        places = range(-self.reach[0], self.reach[1] + 1)
        front = (0,) * (len(self.domain) - 2)
        if self.weights == "separable":
            raw = {(y, x): (1 + 0.1 * y * y) * (1 + 0.07 * x * x) for y in places for x in places}
        else:
            raw = {
                (y, x): 0.05 + 0.003 * n
                for n, (y, x) in enumerate((y, x) for y in places for x in places)
            }
        total = sum(raw.values())
        return [((*front, *at), value / total) for at, value in raw.items()]

    @property
    def numbers(self) -> list[Any]:
        """The arguments with weights."""
        values = np.array([weight for _, weight in self.terms], dtype=ELEMENTS[self.dtype])
        if self.weights == "scalars":
            return [float(value) for value in values]
        return [values] if self.weights == "array" else []

    def text(self) -> str:
        """The program."""
        if self.edges != "kept":
            kind = "float32" if self.dtype == "f32" else "float64"
            return str(self.model().module(self.domain, kind))
        rank = len(self.domain)
        field = field_type(self.domain, max(self.reach), self.dtype)
        temp = f"!stencil.temp<{'?x' * rank}{self.dtype}>"
        lines: list[str] = []
        for n, (offset, weight) in enumerate(self.terms):
            lines.append(f"%x{n} = stencil.access %x[{', '.join(map(str, offset))}] : {temp}")
            if self.weights in ("constants", "separable"):
                lines.append(f"%c{n} = arith.constant {weight!r} : {self.dtype}")
            lines.append(f"%m{n} = arith.mulf %x{n}, %c{n} : {self.dtype}")
            if n:
                before = f"%s{n - 1}" if n > 1 else "%m0"
                lines.append(f"%s{n} = arith.addf {before}, %m{n} : {self.dtype}")
        low, result = [0] * rank, f"%s{len(self.terms) - 1}"
        text = two_buffers(field, temp, lines, result, self.dtype, low, list(self.domain))
        return self.with_weights(text)

    def with_weights(self, text: str) -> str:
        """The text with weights as arguments: numbers, or an array read ahead of the loop."""
        count = len(self.terms)
        start, loads = "%steps: index) {", ""
        if self.weights == "scalars":
            given = ", ".join(f"%c{n}: {self.dtype}" for n in range(count))
        elif self.weights == "array":
            array = f"memref<{count}x{self.dtype}>"
            given = f"%weights: {array}"
            loads = "".join(
                f"\n  %p{n} = arith.constant {n} : index"
                f"\n  %c{n} = memref.load %weights[%p{n}] : {array}"
                for n in range(count)
            )
        else:
            return text
        return text.replace(start, f"{given}, {start}{loads}")

    def model(self) -> timetile.Model:
        """The step with edges, in Python."""
        terms = self.terms

        def blurred(u: Field) -> None:
            (first, weight), *others = terms
            total = weight * u[first]
            for at, weight in others:
                total = total + weight * u[at]
            u.next = total

        return timetile.stencil(boundary=BOUNDARIES[self.edges])(blurred)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a compilation."""
        reassoc = "on" if self.weights == "separable" else "flags"
        return {"depth": 1, "halos": "common", "fp_reassoc": reassoc}


def filters() -> Iterator[Filter]:
    """All rows."""
    for side in (3, 5, 9, 7, 13, 20, 2, 4, 11, 16, 33):
        for dtype in ("f32", "f64"):
            yield Filter(side, dtype)
    given: dict[Weights, tuple[int, ...]] = {
        "scalars": (3, 9, 16, 20), "array": (3, 9, 16, 20), "separable": (5, 9, 20, 33),
    }  # fmt: skip
    for weights, sides in given.items():
        for side in sides:
            yield Filter(side, "f32", weights)
    for edges in BOUNDARIES:
        for side in (3, 9):
            yield Filter(side, "f32", "constants", edges)
    for side in (3, 9):
        yield Filter(side, "f32", domain=IMAGES)


@dataclass
class Row:
    """A row of the table."""

    filter: str
    dtype: str
    weights: str
    edges: str
    domain: tuple[int, ...]
    gcells_per_s: float = 0.0
    of_copy: float = 0.0
    ssam: float = 0.0
    registers: int = 0
    spilled_bytes: int = 0
    device: str = ""
    commit: str = ""
    error: str = ""


def make(chosen: Filter, arch: str, folder: Path) -> tuple[int, int, str]:
    """Compile a filter into the cache. Registers and spilled bytes of its kernel, or an error."""
    try:
        options = replace(options_for(arch), **chosen.options)
        kernels = kernels_for(chosen.text(), options, Cache(folder), None)
        for fact in kernels.facts[0]:
            kernels.kernel(fact.name)
        kernel = kernels.kernel(kernels.facts[0][0].name)
        return kernel.registers, kernel.spill_bytes, ""
    except Exception as error:
        return 0, 0, described(error)


def speed_of(
    program: CompiledProgram, fields: DeviceFields, chosen: Filter, numbers: list[Any]
) -> float:
    """GCells/s of the best of three runs of at least `SECONDS`."""
    views = fields.views

    def run(steps: int) -> None:
        program(*views, *numbers, steps, steps=steps)

    steps = 2
    while (spent := min(events(fields.gpu, partial(run, steps), 1))) < SECONDS * 1e3:
        # What a run takes beside its steps falls as the steps grow.
        steps = 2 * max(steps, int(0.6 * steps * SECONDS * 1e3 / max(spent, 1e-3)))
    best = min(events(fields.gpu, partial(run, steps), 3))
    return round(prod(chosen.domain) * steps / best / 1e6, 1)


def measure(gpu: Device, chosen: Filter, arch: str, folder: Path, row: Row, copy: float) -> None:
    """Time one filter."""
    with timetile.compile(
        chosen.text(), executor="gpu", arch=arch, cache=Cache(folder), **chosen.options
    ) as program:
        bounds = [p.bounds for p in program.parameters if p.bounds is not None]
        shapes = [tuple(h - low for low, h in zip(b.lb, b.ub)) for b in bounds[:2]]
        fields = DeviceFields(gpu, shapes, chosen.dtype)
        fields.fill()
        numbers = chosen.numbers
        if chosen.weights == "array":
            (values,) = numbers
            pointer = gpu.allocate(values.nbytes)
            gpu.upload(pointer, values)
            numbers = [View(pointer, values)]
        try:
            row.gcells_per_s = speed_of(program, fields, chosen, numbers)
        finally:
            fields.free()
    size = 2 * np.dtype(ELEMENTS[chosen.dtype]).itemsize
    row.of_copy = round(row.gcells_per_s * size / 1e3 / copy, 3)


def row_of(chosen: Filter, made: tuple[int, int, str]) -> Row:
    """The row of a filter, before measuring."""
    named = f"{chosen.side} x {chosen.side}"
    row = Row(named, chosen.dtype, chosen.weights, chosen.edges, chosen.domain)
    row.registers, row.spilled_bytes, row.error = made
    plain = chosen.weights == "constants" and chosen.edges == "kept" and chosen.domain == PLATE
    row.ssam = float(SSAM_H200.get((chosen.side, chosen.dtype), 0)) if plain else 0.0
    return row


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What names a row."""
    names = ("filter", "dtype", "weights", "edges")
    return (*(row[name] for name in names), tuple(row["domain"]))


def known_rows(path: Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows of an earlier output, by name."""
    if path is None or not path.is_file():
        return {}
    rows = cast(list[dict[str, Any]], json.loads(path.read_text())["rows"])
    return {row_key(row): row for row in rows}


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="beginnings of rows, with commas between")
    parser.add_argument("--compile-for", metavar="TARGET", help="compile alone, without a GPU")
    parser.add_argument("--target", help="a target by name, not the facts of the GPU")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--resume", action="store_true", help="rows not in the output alone")
    parser.add_argument("--budget", type=float, default=300, help="seconds; no row begins later")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/convolutions-cache"))
    return parser.parse_args()


def main() -> None:
    options = arguments()
    began, folder = time.perf_counter(), options.folder
    names = None if options.only is None else tuple(options.only.split(","))
    chosen = [each for each in filters() if names is None or each.key.startswith(names)]
    arch = options.compile_for or options.target or target_text(None, Cache(folder), 0)
    rows, measured = known_rows(options.out), 0
    if options.resume:
        said = options.commit or commit()
        done_before = {k for k, row in rows.items() if row["commit"] == said and not row["error"]}
        chosen = [c for c in chosen if row_key(asdict(row_of(c, (0, 0, "")))) not in done_before]
    with ProcessPoolExecutor(options.processes, get_context("spawn"), compile_alone) as pool:
        left: dict[Future[tuple[int, int, str]], Filter] = {
            pool.submit(make, each, arch, folder): each for each in chosen
        }
        gpu = None if options.compile_for else device()
        about: dict[str, Any] = {}
        if gpu is not None:
            with gpu.current():
                about = {"copy_tb_per_s": round(copy_bandwidth(gpu), 3)}
            about |= {"device": gpu.name, "commit": options.commit or commit()}
        while left and time.perf_counter() - began < options.budget:
            done, _ = wait(left, timeout=1, return_when=FIRST_COMPLETED)
            for future in done:
                each = left.pop(future)
                row = row_of(each, future.result())
                if gpu is not None and not row.error:
                    row.device, row.commit = gpu.name, about["commit"]
                    try:
                        with gpu.current():
                            measure(gpu, each, arch, folder, row, about["copy_tb_per_s"])
                    except Exception as error:
                        row.error = described(error)
                rows[row_key(asdict(row))], measured = asdict(row), measured + 1
                print(json.dumps(asdict(row)), flush=True)
                if options.out is not None:
                    about["ssam_device"] = H200
                    write_report(options.out, about, list(rows.values()))
        pool.shutdown(wait=False, cancel_futures=True)
    print(f"{measured} of {len(chosen)} rows in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
