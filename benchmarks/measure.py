"""Measure kernels on a GPU: one launch of T steps, timed with events after a warm-up.

    python benchmarks/measure.py --out benchmarks/results/h200-2d.json j2d5pt:f64:8352x8352 ...

Every row is checked against the unfused program on the same data before it is timed, and a device copy
of the same run stands beside the figures. `docs/make_performance.py` makes the tables and plots.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import platform
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS
from rich.console import Console
from rich.table import Table
from stencils import STENCILS, gradient, program, wave
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import timetile
from timetile.dialects.tile import KernelOp
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.constants import float_constant
from timetile.passes.analysis.instructions import instructions, is_approximate
from timetile.passes.arch import arch_named
from timetile.passes.candidates import predict
from timetile.passes.cost.terms import Cost
from timetile.passes.schedule import Schedule
from timetile.passes.simplify_cells import FpDivision
from timetile.runtime.arguments import Arguments
from timetile.runtime.arithmetic import DTYPES
from timetile.runtime.assembler import assembler_version
from timetile.runtime.cpu import cell_function
from timetile.runtime.facts import FLOPS, copy_bound, occupancy
from timetile.runtime.gpu import Device, checked, device
from timetile.runtime.kernels import Halos, Kernel, Options, loops_of, raise_program, run_passes
from timetile.runtime.loading import load
from timetile.runtime.program import CompiledProgram

ELEMENTS = {"f64": np.float64, "f32": np.float32}
SM_90 = arch_named("sm_90")


def source(name: str, domain: tuple[int, ...], element: str) -> tuple[str, int, int]:
    """A benchmark's program, the halo of its fields, and how many fields it has."""
    if name.startswith("wave"):
        radius = int(name.removeprefix("wave"))
        return wave(domain, radius, element), radius, 4
    if name.startswith("gradient2d"):
        return gradient(domain, element, fast=name.endswith("-fast")), 1, 2
    stencil = STENCILS[name].scaled()
    return program(stencil, domain, element), stencil.radius, 2


def events(
    gpu: Device, run: Callable[[], None], repeats: int, *, queued: bool = False
) -> list[float]:
    """
    Milliseconds of each of `repeats` runs, after one that warms up. What is `queued` waits behind another
    run of its kind, so that the host's share, 10 to 20 us a launch, passes before the first event.
    """
    cuda = gpu.cuda
    run()
    times: list[float] = []
    start, end = (checked(cuda.cuEventCreate(0)) for _ in range(2))
    for _ in range(repeats):
        if queued:
            run()
        checked(cuda.cuEventRecord(start, 0))
        run()
        checked(cuda.cuEventRecord(end, 0))
        checked(cuda.cuEventSynchronize(end))
        times.append(checked(cuda.cuEventElapsedTime(start, end)))
    return times


def copy_bandwidth(gpu: Device, size: int = 2 << 30) -> float:
    """Bytes read plus bytes written per second of a device copy, in TB/s."""
    a, b = gpu.allocate(size), gpu.allocate(size)
    times = events(gpu, lambda: checked(gpu.cuda.cuMemcpyDtoDAsync(a, b, size, 0)), 10)
    gpu.free(a)
    gpu.free(b)
    return 2 * size / (float(np.median(times)) * 1e-3) / 1e12


def with_common_halos(
    fields: Sequence[np.ndarray[Any, Any]], halo: int
) -> list[np.ndarray[Any, Any]]:
    """Copies of fields, with the first one's cells outside the bounds around all of them."""
    inside = tuple(slice(halo, -halo) for _ in fields[0].shape)
    alike = [fields[0].copy() for _ in fields]
    for copied, field_of in zip(alike, fields):
        copied[inside] = field_of[inside]
    return alike


class Cells:
    """Random numbers, drawn once for the fields of all rows of an element type."""

    def __init__(self):
        self.drawn: dict[str, np.ndarray[Any, Any]] = {}

    def fields(
        self, shape: tuple[int, ...], element: str, count: int, halo: int = 0
    ) -> list[np.ndarray[Any, Any]]:
        """
        Fields that differ from each other: each begins a prime number of cells further in the numbers. Those with a
        `halo` have the first one's.
        """
        size, apart = int(np.prod(shape)), 7919
        needed = size + count * apart
        if element not in self.drawn or self.drawn[element].size < needed:
            generator = np.random.default_rng(7)
            self.drawn[element] = generator.random(needed, dtype=ELEMENTS[element])
        starts = [apart * k for k in range(count)]
        drawn = [self.drawn[element][n : n + size].reshape(shape) for n in starts]
        return with_common_halos(drawn, halo) if halo else drawn


class Fields:
    """Random fields on the device, and copies of them on the host."""

    def __init__(self, gpu: Device, host: list[np.ndarray[Any, Any]]):
        self.gpu, self.host = gpu, host
        self.pointers = [gpu.allocate(a.nbytes) for a in self.host]
        self.reset()

    def pointer(self, place: int) -> int:
        """One of the program's fields, or one beside them."""
        while place >= len(self.pointers):
            self.pointers.append(self.gpu.allocate(self.host[-1].nbytes))
            self.gpu.upload(self.pointers[-1], self.host[-1])
        return self.pointers[place]

    def reset(self) -> None:
        for pointer, array in zip(self.pointers, self.host):
            self.gpu.upload(pointer, array)

    def read(self) -> list[np.ndarray[Any, Any]]:
        results = [np.empty_like(a) for a in self.host]
        for result, pointer in zip(results, self.pointers):
            self.gpu.download(result, pointer)
        return results

    def free(self) -> None:
        for pointer in self.pointers:
            self.gpu.free(pointer)


class View:
    """A field on the device as other libraries see it."""

    def __init__(self, pointer: int, array: np.ndarray[Any, Any]):
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


@dataclass(frozen=True)
class Terms:
    """What the rows of a table are compiled with: how the fields' halos are, and how quotients are rounded."""

    halos: Halos = "common"
    fp_division: FpDivision = "exact"


def scheduled(
    text: str, depth: int | None, changes: dict[str, Any], terms: Terms = Terms()
) -> ModuleOp:
    """The program at temporal level, with entries of the chosen schedule replaced."""
    module = raise_program(load(text), Options(halos=terms.halos, fp_division=terms.fp_division))
    if changes:
        run_passes((*tile_passes(depth)[:2],), module)
        for loop in loops_of(module):
            schedule = Schedule.from_attribute(loop.schedule)
            loop.schedule = replace(schedule, **changes).to_attribute()
    return module


@dataclass
class Bench:
    """What rows share: the fields of the last shape, and what the unfused program leaves in them."""

    gpu: Device
    terms: Terms = Terms()
    key: tuple[Any, ...] = ()
    fields: Fields | None = None
    cells: Cells = field(default_factory=Cells)
    expected: dict[int, list[np.ndarray[Any, Any]]] = field(
        default_factory=dict[int, list[np.ndarray[Any, Any]]]
    )

    def prepare(self, name: str, element: str, domain: tuple[int, ...]) -> Fields:
        """Random fields for a program, made once for all rows that follow each other with them."""
        if self.fields is None or self.key != (name, element, domain):
            if self.fields is not None:
                self.fields.free()
            _, halo, count = source(name, domain, element)
            shape = tuple(n + 2 * halo for n in domain)
            common = halo if self.terms.halos == "common" else 0
            self.fields = Fields(self.gpu, self.cells.fields(shape, element, count, common))
            self.key, self.expected = (name, element, domain), {}
        return self.fields

    def unfused(self, text: str, steps: int) -> list[np.ndarray[Any, Any]]:
        """What the program with kernels of one step leaves in the fields."""
        assert self.fields is not None
        if steps not in self.expected:
            single = unfused_program(text, self.terms)
            self.expected = {steps: run_on(single, self.fields, steps)}
            single.runner(0).close()
        return self.expected[steps]


def fused_program(
    text: str, depth: int | None, changes: dict[str, Any], terms: Terms = Terms()
) -> CompiledProgram:
    """The program of a row, for fields whose halos are known to be the same or not to be."""
    module = scheduled(text, depth, changes, terms)
    return timetile.compile(module, executor="gpu", depth=depth, halos=terms.halos)


def public_program(text: str, depth: int | None, terms: Terms) -> CompiledProgram:
    """The program as a user compiles it, who says nothing of halos."""
    return timetile.compile(text, executor="gpu", depth=depth, fp_division=terms.fp_division)


def unfused_program(text: str, terms: Terms = Terms()) -> CompiledProgram:
    """The program that it is compared with: kernels of one step."""
    return public_program(text, 1, terms)


def assemble(compiled: CompiledProgram) -> None:
    """Put the kernels of a program into the cache."""
    for known in compiled.kernels.facts[0]:
        compiled.kernels.kernel(known.name)


def assemble_row(row: str, terms: Terms = Terms()) -> str | None:
    """The same for what a row compiles; what stands in the way, if anything does."""
    try:
        name, element, domain, depth, changes = parse_row(row)
        text, _, _ = source(name, domain, element)
        assemble(fused_program(text, depth, changes, terms))
        # What the public interface plans with before it knows the halos.
        _ = public_program(text, depth, terms).kernels.facts
        assemble(unfused_program(text, terms))
    except Exception as error:
        return described(error)
    return None


def assemble_rows(rows: Sequence[str], terms: Terms = Terms()) -> list[str | None]:
    """The same for all rows, on all cores, so that the GPU need not wait for them."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(assemble_row, rows, [terms] * len(rows)))


def described(error: Exception) -> str:
    """An error as rows report it: the others are still worth their time."""
    return f"{type(error).__name__}: {error}"


def run_on(compiled: CompiledProgram, fields: Fields, steps: int) -> list[np.ndarray[Any, Any]]:
    """Run a program on the fields and return what it leaves in them."""
    fields.reset()
    views = [View(p, a) for p, a in zip(fields.pointers, fields.host)]
    compiled(*views, steps, steps=steps)
    fields.gpu.synchronize(0)
    return fields.read()


def measure(
    bench: Bench,
    name: str,
    element: str,
    domain: tuple[int, ...],
    depth: int | None,
    changes: dict[str, Any],
    repeats: int,
    steps_of_run: int,
) -> dict[str, Any]:
    """One row: a check against the unfused program, then the times of one launch and of a run."""
    text, _, _ = source(name, domain, element)
    gpu, fields = bench.gpu, bench.prepare(name, element, domain)
    fused = fused_program(text, depth, changes, bench.terms)
    loop = next(iter(fused.kernels.facts_of(loop) for loop in loops_of(fused.kernels.source)))
    deepest = loop[0]
    steps = 2 * deepest.steps + 3
    same = all(
        np.array_equal(a, b)
        for a, b in zip(run_on(fused, fields, steps), bench.unfused(text, steps))
    )
    kernel = fused.kernels.kernel(deepest.name)
    cost = predicted(fused, deepest.name)
    runner = fused.runner(0)
    cells = int(np.prod(domain))
    views = [View(p, a) for p, a in zip(fields.pointers, fields.host)]
    times = launch_times(fused, deepest, fields, repeats)
    run = {}
    if steps_of_run:
        # Hand-made schedules are for one kind of halos.
        public = fused if changes else public_program(text, depth, bench.terms)
        for _ in range(2):
            # From the third time on a run does what it did, as one graph if it is short.
            public(*views, steps_of_run, steps=steps_of_run)
        spent = events(gpu, lambda: public(*views, steps_of_run, steps=steps_of_run), 2)
        public.runner(0).close()
        rate = cells * steps_of_run / min(spent) / 1e6
        run = {f"gcells_per_s_{steps_of_run}_steps": round(rate, 1)}
    runner.close()
    return {
        "stencil": name,
        "changes": changes,
        "dtype": element,
        "domain": list(domain),
        "halos": bench.terms.halos,
        "fp_division": bench.terms.fp_division,
        "depth": deepest.steps,
        "gcells_per_s": round(cells * deepest.steps / np.median(times) / 1e6, 1),
        "gcells_per_s_peak": round(cells * deepest.steps / min(times) / 1e6, 1),
        **run,
        "bitwise_equal_to_unfused": same,
        "gcells_per_s_predicted": round(cost.gcells_per_second, 1),
        "limit_predicted": cost.limit,
        "fma_bound": fma_bound(fused, element),
        "copy_bound": round(copy_bound(loops_of(fused.module)[0], SM_90), 1),
        "best_peer": PEERS.get((name, element)),
        "schedule": schedule_of(fused),
        "registers": kernel.registers,
        "warps_per_multiprocessor": kernel.block // 32 * occupancy(kernel, SM_90).blocks,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
        "grid": kernel.grid,
        "block": kernel.block,
    }


def schedule_of(compiled: CompiledProgram) -> str:
    """The schedule of the first loop, as text."""
    return str(loops_of(compiled.kernels.tiled)[0].schedule)


def predicted(compiled: CompiledProgram, name: str) -> Cost:
    """What the cost model says of a kernel."""
    module = compiled.kernels.tiled
    placed = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    return predict(placed[name], module, SM_90)


ROUNDED: dict[type[Operation], dict[str, int]] = {
    xmath.SqrtOp: {"f64": 8, "f32": 4},
    arith.DivfOp: {"f64": 5, "f32": 2},
}
"""
Instructions on the floating-point pipe of a rounded root, and of one by a number, as the assembler expands `sqrt.rn` and
`rcp.rn`: what the peers' programs pay.
"""


def pipe_operations(op: Operation, element: str) -> int:
    """What an operation of a program takes of the floating-point pipe: one, but for roots and quotients."""
    reciprocal = not isinstance(op, arith.DivfOp) or float_constant(op.lhs) == 1.0
    if type(op) not in ROUNDED or is_approximate(op) or not reciprocal:
        return instructions(op)[0]
    return ROUNDED[type(op)][element]


def fma_bound(compiled: CompiledProgram, element: str) -> float:
    """
    GCells/s at which the floating-point pipe is full of a step's operations: one each, also where it
    is not fused; a rounded quotient or root is as many as the assembler's own sequence has, whatever ours takes.
    """
    functions = [cell_function(update) for update in loops_of(compiled.module)[0].updates]
    operations = sum(
        pipe_operations(op, element)
        for function in functions
        for op in function.walk()
        if type(op) in FLOPS
    )
    per_second = SM_90.fma_per_cycle[np.dtype(ELEMENTS[element]).itemsize] * SM_90.multiprocessors
    return round(per_second * SM_90.clock_ghz / operations, 1)


def launch_of(compiled: CompiledProgram, facts: Any, fields: Fields) -> tuple[Kernel, Arguments]:
    """
    A kernel and what it is launched with: sources are the first fields, what is captured the last ones, targets those
    between and as many more as it stores, and no two of these are one. Halos are the program's own fields.
    """
    kinds = [role.role[0] for role in facts.roles]
    captured = range(len(fields.host) - kinds.count("capture"), len(fields.host))
    sources, captures = itertools.count(), iter(captured)
    targets = (n for n in itertools.count(kinds.count("source")) if n not in captured)
    places: list[int] = []
    for role in facts.roles:
        match role.role:
            case ("source", _):
                places.append(next(sources))
            case ("target", _):
                places.append(next(targets))
            case ("halo", index):
                places.append(index)
            case ("capture", _):
                places.append(next(captures))
            case (kind, _):
                raise ValueError(f"the benchmarks have no arguments of the kind {kind}")
    pointers = [fields.pointer(place) for place in places]
    arguments = Arguments(pointers, (ctypes.c_void_p,) * len(pointers))
    return compiled.kernels.kernel(facts.name), arguments


SHORT = 0.1
"""Milliseconds. Shorter launches are timed several at a time, for four times as long."""


def launch_times(
    compiled: CompiledProgram, facts: Any, fields: Fields, repeats: int
) -> list[float]:
    """
    Milliseconds of each of `repeats` launches of a kernel. Short ones go as a graph, as long runs make them, and
    what lies between two launches counts.
    """
    gpu = fields.gpu
    kernel, arguments = launch_of(compiled, facts, fields)
    times = events(gpu, lambda: gpu.launch(kernel, arguments, 0), repeats, queued=True)
    alone = float(np.median(times))
    if alone >= SHORT or kernel.is_attended:
        return times
    many = 1 + int(4 * SHORT / alone)
    graph = gpu.graph([(kernel, arguments)] * many)
    times = events(gpu, lambda: gpu.launch_graph(graph, 0), repeats, queued=True)
    gpu.free_graph(graph)
    return [time / many for time in times]


def parse_row(text: str) -> tuple[str, str, tuple[int, ...], int | None, dict[str, Any]]:
    """`j2d5pt:f64:8352x8352[:depth[:cells=6,2;ahead=1]]`; depth 0 leaves the choice to the compiler."""
    name, element, domain, *rest = text.split(":")
    changes: dict[str, Any] = {}
    for entry in rest[1].split(";") if len(rest) > 1 else ():
        key, value = entry.split("=")
        if isinstance(getattr(Schedule(), key), tuple):
            changes[key] = tuple(map(int, value.split(",")))
        else:
            changes[key] = int(value) if value.isdigit() else value
    depth = int(rest[0]) if rest and int(rest[0]) else None
    return name, element, tuple(map(int, domain.split("x"))), depth, changes


def commit() -> str:
    """The commit that is measured."""
    result = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", help="stencil:dtype:domain[:depth]")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--halos", choices=("common", "apart"), default="common")
    parser.add_argument("--fp-division", choices=("exact", "fast"), default="exact")
    parser.add_argument("--run", type=int, default=1000, help="steps of the whole run, 0 for none")
    options = parser.parse_args()
    terms = Terms(options.halos, options.fp_division)
    failures = assemble_rows(options.rows, terms)
    gpu = device()
    console = Console(width=160)
    rows: list[dict[str, Any]] = []
    bench = Bench(gpu, terms)
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
        for text, failure in zip(options.rows, failures):
            if failure is None:
                try:
                    rows.append(measure(bench, *parse_row(text), options.repeats, options.run))
                except Exception as error:
                    failure = described(error)
            if failure is not None:
                rows.append({"row": text, "error": failure})
            console.print(json.dumps(rows[-1]))
    table = Table(
        "stencil",
        "dtype",
        "domain",
        "T",
        "changes",
        "GCells/s",
        "peak",
        "run",
        "equal",
        "registers",
        "spill",
    )
    for row in rows:
        if "error" not in row:
            table.add_row(
                row["stencil"], row["dtype"], "x".join(map(str, row["domain"])), str(row["depth"]),
                str(row["changes"] or ""),
                f"{row['gcells_per_s']:.0f}", f"{row['gcells_per_s_peak']:.0f}",
                f"{row.get(f'gcells_per_s_{options.run}_steps', 0):.0f}", str(row["bitwise_equal_to_unfused"]),
                str(row["registers"]), str(row["spill_bytes"]),
            )  # fmt: skip
    console.print(table)
    console.print(f"device copy: {bandwidth:.2f} TB/s")
    run = {
        "commit": options.commit or commit(),
        "device": gpu.name,
        "driver": int(checked(gpu.cuda.cuDriverGetVersion())),
        "versions": {n: version(n) for n in ("xdsl", "cuda-bindings", "numpy")}
        | {"nvjitlink": assembler_version()},
        "python": platform.python_version(),
        "timetile": timetile.__version__,
        "command": f"benchmarks/measure.py {' '.join(options.rows)}",
        "copy_tb_per_s": round(bandwidth, 3),
    }
    if options.out is not None:
        options.out.write_text(json.dumps([row | run for row in rows], indent=1) + "\n")


assert set(ELEMENTS.values()) <= set(DTYPES.values())

if __name__ == "__main__":
    main()
