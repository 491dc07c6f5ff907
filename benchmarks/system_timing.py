"""Programs of the table of systems on a GPU: fields, bits of two programs, and speeds."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from pathlib import Path

import numpy as np
from fields import ELEMENTS, View
from system_compiling import Job, jobs_of, program_of
from system_rows import SystemCase
from timing import events

from timetile.runtime.device.gpu import Device
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.program.compiled_program import CompiledProgram

SECONDS = 0.05
"""The least time of a timed run."""

CHUNK = 1 << 23
"""Random cells drawn on the host, and repeated over a field."""


def depth_of(program: CompiledProgram) -> int:
    """Steps of the deepest launch."""
    return max(fact.steps for fact in program.kernels.facts[0])


class DeviceFields:
    """Fields of random cells in GPU memory, halo included, one for each field of a program."""

    def __init__(self, gpu: Device, shapes: Sequence[tuple[int, ...]], dtype: str):
        self.gpu, self.shapes, self.dtype = gpu, tuple(shapes), dtype
        self.kind = np.dtype(ELEMENTS[dtype])
        self.drawn = np.random.default_rng(7).random(CHUNK, dtype=self.kind.type)
        self.pointers = [gpu.allocate(prod(shape) * self.kind.itemsize) for shape in shapes]
        self.views = [
            View(pointer, np.lib.stride_tricks.as_strided(self.drawn, shape, (0,) * len(shape)))
            for pointer, shape in zip(self.pointers, shapes)
        ]

    def fill(self) -> None:
        """Write the random cells, the same into every field."""
        for pointer, shape in zip(self.pointers, self.shapes):
            size = prod(shape) * self.kind.itemsize
            done = min(size, self.drawn.nbytes)
            self.gpu.upload(pointer, self.drawn[: done // self.kind.itemsize])
            while done < size:
                more = min(done, size - done)
                self.gpu.copy(pointer, pointer + done, more, 0)
                done += more
        self.gpu.synchronize(0)

    def equals(self, other: DeviceFields) -> bool:
        """Whether all cells have the bits of another's, halo included."""
        for shape, one, two in zip(self.shapes, self.pointers, other.pointers):
            nothing = (0,) * len(shape)
            everywhere = HaloFrame(shape, nothing, nothing, self.kind.itemsize)
            if self.gpu.halos_differ(everywhere, one, two, 0):
                return False
        return True

    def free(self) -> None:
        """Give the memory back."""
        for pointer in self.pointers:
            self.gpu.free(pointer)


def shapes_of(program: CompiledProgram) -> tuple[tuple[int, ...], ...]:
    """The shapes of a program's fields, halo included."""
    bounds = [p.bounds for p in program.parameters if p.bounds is not None]
    return tuple(tuple(high - low for low, high in zip(b.lb, b.ub)) for b in bounds)


class FieldPairs:
    """Fields for two programs alike; the latest row's serve the next row if alike."""

    def __init__(self, gpu: Device):
        self.gpu = gpu
        self.latest: tuple[DeviceFields, ...] = ()

    def of(self, program: CompiledProgram, dtype: str) -> tuple[DeviceFields, ...]:
        """Two sets of fields for a program."""
        shapes = shapes_of(program)
        if not self.latest or (self.latest[0].shapes, self.latest[0].dtype) != (shapes, dtype):
            self.free()
            self.latest = tuple(DeviceFields(self.gpu, shapes, dtype) for _ in range(2))
        return self.latest

    def free(self) -> None:
        """Give the memory back."""
        for fields in self.latest:
            fields.free()
        self.latest = ()


def run(program: CompiledProgram, fields: DeviceFields, steps: int) -> None:
    """Run some steps."""
    program(*fields.views, steps, steps=steps)


def have_equal_bits(programs: Sequence[CompiledProgram], pairs: Sequence[DeviceFields]) -> bool:
    """Whether two programs leave the same bits, after whole launches of the deepest of each."""
    steps = lcm(2, *map(depth_of, programs))
    for program, fields in zip(programs, pairs):
        fields.fill()
        run(program, fields, steps)
    one, two = pairs
    return one.equals(two)


def speed_of(program: CompiledProgram, fields: DeviceFields, domain: Sequence[int]) -> float:
    """GCells/s of the best of three runs of at least `SECONDS`."""
    depth = depth_of(program)
    spent = min(events(fields.gpu, lambda: run(program, fields, 2 * depth), 1))
    steps = depth * max(2, int(SECONDS * 2e3 / max(spent, 1e-3)))
    best = min(events(fields.gpu, lambda: run(program, fields, steps), 3))
    return round(prod(domain) * steps / best / 1e6, 1)


class Timer:
    """Times the pairs of programs of cases; speeds of defaults serve several rows."""

    def __init__(self, gpu: Device, arch: str, folder: Path):
        self.arch, self.folder = arch, folder
        self.pairs = FieldPairs(gpu)
        self.defaults: dict[tuple[object, ...], float] = {}

    def measure(self, case: SystemCase) -> tuple[float, float, bool]:
        """GCells/s of the pipeline and of the default of a case, and whether bits are equal."""
        jobs = jobs_of(case)
        programs = [program_of(job, self.arch, self.folder) for job in jobs]
        try:
            pairs = self.pairs.of(programs[0], case.dtype)
            equal = have_equal_bits(programs, pairs)
            named, default = (
                self.speed(job, program, fields)
                for job, program, fields in zip(jobs, programs, pairs)
            )
            return named, default, equal
        finally:
            for program in programs:
                program.close()

    def measure_default(self, case: SystemCase) -> float:
        """GCells/s of the default of a case, whose pipeline refuses the program."""
        _, job = jobs_of(case)
        self.pairs.free()
        with program_of(job, self.arch, self.folder) as program:
            fields = DeviceFields(self.pairs.gpu, shapes_of(program), case.dtype)
            fields.fill()
            try:
                return self.speed(job, program, fields)
            finally:
                fields.free()

    def speed(self, job: Job, program: CompiledProgram, fields: DeviceFields) -> float:
        """GCells/s of a job's program, measured once."""
        known = self.defaults.get(job.key)
        if known is None:
            known = speed_of(program, fields, job.case.domain)
            if not job.named:
                self.defaults[job.key] = known
        return known
