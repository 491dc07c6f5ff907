"""
Measure sweeps along an axis on a GPU: Thomas' solver, with constant and with given coefficients, a
recurrence, and a prefix sum.

    python benchmarks/sweeps.py --out benchmarks/results/sweeps.json

A row has one program, type, domain and axis. The time is that of the launches of a step's sweeps,
and `of_copy` is the bytes that the sweeps must move, over the bytes that a device copy moves in the
time. `--ahead 0 32 64` also measures kernels whose threads read lines of their own, and ask for
cells so many places ahead, `--beside 2 4` threads of several lines beside each other, and
`--slots 2 4` kernels with so many segments of each line in shared memory, `--group 32 16` warps of
so many lines, `--ring 8 16` rings of so many turns.
`--domains 512x512x512 --axes -1` measures some rows. A domain of one axis is one line, which goes
on in parts, and the row has the time of a copy of as many bytes over the row's time, too.
`equal_bits`: on small domains of odd extents the GPU leaves the bits of the NumPy executor, unless
`--no-bits` leaves the comparison out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from measure import commit
from timing import copy_bandwidth, events

import timetile
from timetile import Field, Model, Scalar, sweep
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import SweepOp
from timetile.frontend.field_types import DType
from timetile.lowering.sweep_frames import SweepFrame, may_be_beside
from timetile.lowering.sweep_staging import MOST_SHARED, LineStaging
from timetile.passes.raising.memory import memory_of
from timetile.passes.targets.hardware import VECTOR_BYTES
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.device.sweeps import DeviceSweep
from timetile.runtime.machine.driver import checked

TYPES: tuple[DType, ...] = ("float32", "float64")

DOMAINS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((512, 512, 512), (0, 1, 2)),
    ((8192, 8192), (0, 1)),
    ((64, 1024, 1024), (0,)),
    ((1 << 20,), (0,)),
    ((1 << 22,), (0,)),
    ((1 << 24,), (0,)),
    ((1 << 26,), (0,)),
)
"""Domains, and the axes of the sweeps."""

SMALL = (
    ((67, 133), (0, 1)),
    ((19, 37, 41), (0, 1, 2)),
    ((6, 512, 512), (0,)),
    ((300_007,), (0,)),
    ((16_900_001,), (0,)),
)
"""Domains for comparing bits, odd or with very many lines, and the axes of the sweeps."""

REPEATS = 10


def at(rank: int, axis: int, offset: int) -> tuple[int, ...]:
    """An offset along an axis."""
    return tuple(offset if k == axis else 0 for k in range(rank))


def model(name: str, rank: int, axis: int) -> Model:
    """A program of the table, for some axes."""
    here, before, behind = (at(rank, axis, offset) for offset in (0, -1, 1))

    if name == "thomas":

        def thomas(u: Field, c: Field, d: Field, r: Scalar):
            with sweep(axis):
                w = 1 / (1 + 2 * r + r * c.next[before])
                c.next = -r * w
                d.next = (u[here] + r * d.next[before]) * w
            with sweep(axis, descending=True):
                u.next = d.next[here] - c.next[here] * u.next[behind]

        return timetile.stencil(thomas)
    if name == "tridiagonal":

        def tridiagonal(u: Field, low: Field, diagonal: Field, up: Field, c: Field, d: Field):
            with sweep(axis):
                w = 1 / (diagonal[here] - low[here] * c.next[before])
                c.next = up[here] * w
                d.next = (u[here] - low[here] * d.next[before]) * w
            with sweep(axis, descending=True):
                u.next = d.next[here] - c.next[here] * u.next[behind]

        return timetile.stencil(tridiagonal)
    if name == "filter":

        def recurrence(u: Field, k: Scalar):
            with sweep(axis):
                u.next = k * u[here] + (1 - k) * u.next[before]

        return timetile.stencil(recurrence)

    def sums(u: Field):
        with sweep(axis):
            u.next = u[here] + u.next[before]

    return timetile.stencil(sums)


NAMES = ("thomas", "tridiagonal", "filter", "sums")

FOLDED = ("filter", "sums")
"""Programs whose single line goes on in parts."""

NUMBERS = {"thomas": {"r": 0.3}, "filter": {"k": 0.25}}


@dataclass(frozen=True)
class Program:
    """A program of the table for a domain: its sweeps, and the bytes that they must move."""

    name: str
    kind: DType
    shape: tuple[int, ...]
    axis: int

    @property
    def sweeps(self) -> list[SweepOp]:
        """The sweeps of a step."""
        made = model(self.name, len(self.shape), self.axis).module(self.shape, self.kind)
        reassoc = "on" if len(self.shape) == 1 else "flags"
        program = timetile.compile(made, executor="gpu", cache=False, fp_reassoc=reassoc)
        return [op for op in program.module.walk() if isinstance(op, SweepOp)]

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Random fields, the systems with a heavy diagonal."""
        draws = np.random.default_rng(1)
        step = model(self.name, len(self.shape), self.axis).step
        fields = {name: draws.random(self.shape).astype(self.kind) for name in step.fields}
        if "diagonal" in fields:
            fields["diagonal"] += 4
        return fields


def moved_bytes(sweeps: list[SweepOp]) -> int:
    """The bytes of the cells read and written by sweeps, a field of a sweep once each way."""
    total = 0
    for op in sweeps:
        cells = prod(high - low for low, high in zip(op.box.lb, op.box.ub))
        read = {op.sources[tap.operand] for tap in op.tap_list if not op.is_result(tap)}
        for field in (*read, *op.targets):
            total += cells * dtype_of(element_type(field)).itemsize
    return total


class Buffers:
    """Fields of a shape and type on the GPU, of the same random cells, made when asked for."""

    def __init__(self, gpu: Device, shape: tuple[int, ...], kind: DType):
        self.gpu = gpu
        self.cells = np.random.default_rng(1).random(shape).astype(kind)
        self.pointers: list[int] = []

    def pointer(self, place: int) -> int:
        """Where a field lies."""
        size = self.cells.nbytes
        while len(self.pointers) <= place:
            self.pointers.append(self.gpu.allocate(size))
            if len(self.pointers) == 1:
                self.gpu.upload(self.pointers[0], self.cells)
            else:
                given = self.pointers[-1], self.pointers[0], size, 0
                checked(self.gpu.cuda.cuMemcpyDtoDAsync(*given))
        return self.pointers[place]

    def free(self) -> None:
        for pointer in self.pointers:
            self.gpu.free(pointer)


@dataclass(frozen=True)
class Variant:
    """A kernel of a sweep: the default, or with a single fact given."""

    ahead: int | None = None
    slots: int | None = None
    beside: int | None = None
    group: int | None = None
    ring: int | None = None

    def frame(self, op: SweepOp) -> SweepFrame | None:
        """The launch of a sweep; None where the variant says nothing to it."""
        frame = SweepFrame.of(op)
        if self.ahead is not None:
            return SweepFrame(op, self.ahead)
        if self.beside is not None:
            fits = may_be_beside(op, self.beside, VECTOR_BYTES)
            return SweepFrame(op, 0, None, self.beside) if fits else None
        if self.ring is not None:
            made = SweepFrame(op, 0, ring=self.ring)
            return made if made.has_ring else None
        if self.group is not None:
            staging = LineStaging.of(op, self.group)
            return None if staging is None else SweepFrame(op, 0, staging)
        if self.slots is None:
            return frame
        if frame.staging is None:
            return None
        staging = replace(frame.staging, slots=self.slots)
        fits = staging.pending > 0 and staging.shared_bytes <= MOST_SHARED
        return SweepFrame(op, 0, staging) if fits else None


def on_the_gpu_alone(gpu: Device, run: Callable[[], object]) -> float:
    """Milliseconds of a short run: the mean of ten, whose host's share passes behind copies."""
    size, (start, end) = 1 << 30, (checked(gpu.cuda.cuEventCreate(0)) for _ in range(2))
    a, b = gpu.allocate(size), gpu.allocate(size)
    run()
    for _ in range(4):
        checked(gpu.cuda.cuMemcpyDtoDAsync(a, b, size, 0))
    checked(gpu.cuda.cuEventRecord(start, 0))
    for _ in range(REPEATS):
        run()
    checked(gpu.cuda.cuEventRecord(end, 0))
    checked(gpu.cuda.cuEventSynchronize(end))
    gpu.free(a)
    gpu.free(b)
    return checked(gpu.cuda.cuEventElapsedTime(start, end)) / REPEATS


def measured(
    program: Program, sweeps: list[SweepOp], fields: Buffers, variant: Variant, copied: float
) -> dict[str, Any] | None:
    """A row of the table; None for a variant without a kernel."""
    gpu, buffers = fields.gpu, dict[Any, int]()
    launches: list[tuple[DeviceSweep, dict[Any, int], dict[Any, Any]]] = []
    for op in sweeps:
        pointers: dict[Any, int] = {}
        for field in (*op.sources, *op.targets):
            root = memory_of(field)
            if root not in buffers:
                buffers[root] = fields.pointer(len(buffers))
            pointers[field] = buffers[root]
        frame = variant.frame(op)
        if frame is None:
            return None
        numbers = dict.fromkeys(op.scalars, 0.3)
        launches.append((DeviceSweep(frame, gpu, gpu.arch), pointers, numbers))

    def run() -> None:
        for kernel, pointers, numbers in launches:
            kernel.launch(pointers, numbers, 0)

    def copy() -> None:
        # Of whole vectors: the driver takes two thirds longer for a small copy of another size.
        size = -(-moved_bytes(sweeps) // 2 // VECTOR_BYTES) * VECTOR_BYTES
        checked(gpu.cuda.cuMemcpyDtoDAsync(fields.pointer(1), fields.pointer(0), size, 0))

    same_copy = None
    if len(program.shape) == 1:
        milliseconds = on_the_gpu_alone(gpu, run)
        same_copy = on_the_gpu_alone(gpu, copy) / milliseconds
    else:
        milliseconds = float(np.median(events(gpu, run, REPEATS, queued=True)))
    rate = moved_bytes(sweeps) / (milliseconds * 1e-3) / 1e12
    return {
        "program": program.name,
        "dtype": program.kind,
        "domain": list(program.shape),
        "axis": program.axis,
        "ahead": [kernel.frame.ahead for kernel, _, _ in launches],
        "beside": [kernel.frame.beside for kernel, _, _ in launches],
        "slots": [kernel.frame.slots for kernel, _, _ in launches],
        "ring": [kernel.frame.ring for kernel, _, _ in launches],
        "blocks": [kernel.frame.grid for kernel, _, _ in launches],
        "threads": [kernel.frame.threads for kernel, _, _ in launches],
        "milliseconds": round(milliseconds, 4),
        "gcells_per_s": round(prod(program.shape) / (milliseconds * 1e-3) / 1e9, 2),
        "tb_per_s": round(rate, 3),
        "of_copy": round(rate / copied, 3),
        "of_a_copy_of_these_bytes": None if same_copy is None else round(same_copy, 3),
    }


def equal_bits(name: str, kind: DType, shape: tuple[int, ...], axis: int) -> bool:
    """Whether the GPU and NumPy leave equal bits after three steps of a small domain."""
    program = Program(name, kind, shape, axis)
    made = model(name, len(shape), axis)
    found = [
        made.on(
            executor=executor, cache=False, fp_reassoc="on" if len(shape) == 1 else "flags"
        ).advance(program.state(), 3, **NUMBERS.get(name, {}))
        for executor in ("gpu", "numpy")
    ]
    return all(found[0][field].tobytes() == found[1][field].tobytes() for field in found[0])


def rows(
    gpu: Device, copied: float, given: argparse.Namespace, until: float
) -> Iterator[dict[str, Any]]:
    """The rows of the table, as long as there is time."""
    asked = (given.ahead, given.slots, given.beside, given.group, given.ring)
    variants = [Variant()] if given.default or not any(asked) else []
    variants += [Variant(ahead=ahead) for ahead in given.ahead]
    variants += [Variant(slots=slots) for slots in given.slots]
    variants += [Variant(beside=beside) for beside in given.beside]
    variants += [Variant(group=group) for group in given.group]
    variants += [Variant(ring=ring) for ring in given.ring]
    domains = [(shape, axes) for shape, axes in DOMAINS if not given.domains]
    for text in given.domains:
        shape = tuple(int(size) for size in text.split("x"))
        domains.append((shape, tuple(range(len(shape)))))
    names: list[str] = given.programs
    for (shape, axes), kind in product(domains, TYPES):
        fields = Buffers(gpu, shape, kind)
        for axis, name in product(axes, names):
            program = Program(name, kind, shape, axis)
            if given.axes and not {axis, axis - len(shape)} & set(given.axes):
                continue
            if len(shape) == 1 and name not in FOLDED:
                continue
            sweeps = program.sweeps
            for variant in variants:
                if time.monotonic() > until:
                    return
                row = measured(program, sweeps, fields, variant, copied)
                if row is not None:
                    yield row
        fields.free()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    for fact in ("--ahead", "--slots", "--beside", "--group", "--ring"):
        parser.add_argument(fact, type=int, nargs="*", default=[])
    parser.add_argument("--default", action="store_true", help="the default beside the variants")
    parser.add_argument("--domains", nargs="*", default=[])
    parser.add_argument("--axes", type=int, nargs="*", default=[])
    parser.add_argument("--programs", nargs="*", default=list(NAMES))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--bits", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    gpu = device()
    made: list[dict[str, Any]] = []
    with gpu.current():
        copied = copy_bandwidth(gpu, 1 << 30)
    bits = {
        f"{name} {kind} {shape}, axis {axis}": equal_bits(name, kind, shape, axis)
        for name in given.programs
        for kind in TYPES
        for shape, axes in SMALL
        for axis in axes
        if len(shape) > 1 or name in FOLDED
        if not given.axes or {axis, axis - len(shape)} & set(given.axes)
        if given.bits
    }
    print("equal bits:", all(bits.values()), [name for name, same in bits.items() if not same])
    with gpu.current():
        for row in rows(gpu, copied, given, until):
            print(json.dumps(row), flush=True)
            made.append(row)
    if given.out is not None:
        report = {
            "device": gpu.name,
            "commit": commit(),
            "copy_tb_per_s": round(copied, 3),
            "equal_bits": bits,
            "rows": made,
        }
        given.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
