"""
Programs on one or several GPUs with fields placed once, for timed runs without transfers.

Fields are filled on the GPUs: a few planes of drawn cells are uploaded, and repeated by copies.
Plane number p of a field has equal cells on one and on several GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from real_steps import PROGRAMS
from rows import source
from stencils import STENCILS
from storage_types import STEPS

import timetile
from timetile import Field
from timetile.dialects.boxes import CellBox
from timetile.frontend.model import Model
from timetile.passes.loops.cut_domain import Domain
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.gpu import device as device_of
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.pieces import Span
from timetile.runtime.ranks.gpu_sites import GpuSite, opened
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.parted import PartedField
from timetile.runtime.ranks.rims import extents_of

PLANES = 7
"""Planes with drawn cells, repeated along the first axis."""


def ring_of(name: str) -> Model:
    """The step of a stencil, periodic along the first axis: each part has two neighbours."""
    stencil = STENCILS[name].scaled()
    (first, factor), *others = stencil.terms

    def step(u: Field):
        total = u[first] * factor
        for offset, coefficient in others:
            total = total + u[offset] * coefficient
        u.next = total

    boundary: Any = ("periodic", *["keep"] * (stencil.rank - 1))
    return timetile.stencil(boundary=boundary)(step)


@dataclass(frozen=True)
class Run:
    """A program on a domain and a number of GPUs."""

    program: str
    dtype: str
    domain: tuple[int, ...]
    gpus: int
    per_gpu: int = 1
    """Parts on each GPU."""
    first: int = 0
    """The number of the first GPU."""
    every: int | None = None
    """Steps between two exchanges; chosen unless given."""
    ring: bool = False
    """Whether a stencil is periodic along the first axis."""
    parts: tuple[int, ...] | None = None
    """Parts along each axis; slabs, or as chosen, unless given."""

    @property
    def text(self) -> str:
        """The program."""
        if self.program.startswith("j") and not self.ring:
            return source(self.program, self.domain, self.dtype)[0]
        known = {**PROGRAMS, **STEPS}
        model = ring_of(self.program) if self.ring else known[self.program]
        kind: Any = {"f32": "float32", "f64": "float64"}[self.dtype]
        return str(model.module(self.domain, kind))

    @property
    def homes(self) -> list[int]:
        """The GPU of each part."""
        return [self.first + part // self.per_gpu for part in range(self.gpus * self.per_gpu)]

    @property
    def is_parted(self) -> bool:
        """Whether the program runs in parts; a program on the first GPU alone does not."""
        return self.homes != [0]

    def compiled(self, arch: str = "") -> CompiledProgram:
        """The program, compiled for the GPUs here, or for a part by name without any GPU."""
        if arch:
            alone = timetile.compile(self.text, executor="simt", arch=arch, halos="common")
            if not self.is_parted:
                return alone
            return PartedProgram(alone, len(self.homes), no_sites, self.parts, self.every)
        many: dict[str, Any] = {
            "gpus": self.homes, "parts": self.parts, "exchange_every": self.every
        }  # fmt: skip
        many = many if self.is_parted else {}
        return timetile.compile(self.text, executor="gpu", halos="common", **many)


def no_sites() -> list[GpuSite]:
    """The sites of a program that is compiled, and never runs."""
    raise RuntimeError("a program compiled for a part by name does not run here")


def prepared(run: Run, arch: str = "") -> CompiledProgram:
    """The program of a run, with all kernels, made now or from the cache."""
    program = run.compiled(arch)
    if not isinstance(program, PartedProgram):
        all_kernels = [program.kernels]
    else:
        all_kernels = program.parts.of_parts(common=False)
        make_further_kernels(program.parts)
    make_all(all_kernels)
    return program


def make_all(all_kernels: Sequence[ProgramKernels]) -> None:
    """Make the kernels of all launches."""
    for kernels in dict.fromkeys(all_kernels):
        kernels.begin(fact.name for facts in kernels.facts for fact in facts)
        for facts in kernels.facts:
            for fact in facts:
                kernels.kernel(fact.name)


def make_further_kernels(
    parts: PartKernels, *, common: bool = False, of_all_ways: bool = False
) -> None:
    """
    Make the kernels of launches with rims first, or of launches that store beside, or of launches
    in pieces; with `of_all_ways` all of them. `common`: for compared halos that are equal.
    """
    for number in range(len(parts.schedules[common])):
        planned = next(each for each in parts.planned(number, common=common) if each is not None)
        name = planned[1][0].name
        for found in (firsts_of, besides_of, pieces_of):
            made = found(parts, number, name, common=common)
            for kernels in dict.fromkeys(made):
                kernels.kernel(name)
            if made and not of_all_ways:
                break


def firsts_of(
    parts: PartKernels, number: int, name: str, *, common: bool = False
) -> list[ProgramKernels]:
    """The kernels of launches with rims first."""
    found = parts.rims_first(number, name, common=common) or ()
    return [kernels for each in found for kernels in (*each.rims, each.inside)]


def besides_of(
    parts: PartKernels, number: int, name: str, *, common: bool = False
) -> list[ProgramKernels]:
    """The kernels of launches that store beside."""
    return [each.kernels for each in parts.stored_beside(number, name, common=common) or ()]


def pieces_of(
    parts: PartKernels, number: int, name: str, *, common: bool = False
) -> list[ProgramKernels]:
    """The kernels of launches in pieces."""
    found = parts.in_pieces(number, name, common=common) or ()
    return [kernels for each in found for kernels in (each.inside, *each.rims)]


def drawn(parameter: Parameter, dtype: str, *, turns: bool) -> Any:
    """A few planes of a field; equal in buffers that take turns, as those of programs as text."""
    base = (parameter.name or "").removesuffix("_next")
    seed = 1 if turns else sum(map(ord, base))
    shape = (PLANES, *parameter.shape[1:])
    cells = np.random.default_rng(seed).random(shape, np.float32)
    return (cells * 0.125 + 0.0625).astype({"f32": np.float32, "f64": np.float64}[dtype])


class DeviceField:
    """A field in GPU memory, as an array of the caller."""

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.device, self.shape, self.dtype = device, shape, dtype
        self.pointer = device.allocate(prod(shape) * dtype.itemsize)
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": dtype.str, "data": (self.pointer, False), "version": 3,
        }  # fmt: skip


def fill(device: Device, pointer: int, planes: int, first: int, cells: Any) -> None:
    """Fill `planes` planes, the planes from number `first` of a field, with repeated planes."""
    count, size = len(cells), cells[0].nbytes
    turned = np.ascontiguousarray(cells[(np.arange(count) + first) % count][:planes])
    device.upload(pointer, turned)
    device.synchronize(0)
    done = len(turned)
    while done < planes:
        more = min(done, planes - done)
        device.copy(pointer, pointer + done * size, more * size, 0)
        done += more
    device.synchronize(0)


def places_in(inner: CellBox, outer: CellBox) -> list[slice]:
    """The places of a box's cells in an array of the cells of a box around."""
    ends = zip(inner.lower, inner.upper, outer.lower)
    return [slice(low - first, high - first) for low, high, first in ends]


def plane_of(
    device: Device, pointer: int, shape: Sequence[int], dtype: np.dtype[Any], number: int
) -> Any:
    """The cells of a plane of an array in GPU memory."""
    cells = np.empty(shape[1:], dtype)
    with device.current():
        device.download(cells, pointer + number * cells.nbytes)
    return cells


class PlacedRun:
    """A program with its fields on one GPU, or in parts on several."""

    def __init__(self, run: Run, program: CompiledProgram, sites: Sequence[GpuSite] | None = None):
        self.run_of, self.program = run, program
        self.first = device_of(0)
        names = "".join(each.name or "" for each in self.program.parameters)
        turns = "_next" not in names
        self.cells: list[Any] = [
            None if each.is_steps else drawn(each, run.dtype, turns=turns)
            for each in self.program.parameters
        ]
        self.parted = self.program if isinstance(self.program, PartedProgram) else None
        if self.parted is None:
            self.arguments = [self.on_one(k) for k in range(len(self.cells))]
        else:
            given = sites or [GpuSite(each) for each in opened(run.homes)]
            self.runner = self.parted.placed.make(given, self.program.kernels.notice)
            self.parted.placed.present = self.runner
            self.arguments = [self.in_parts(k) for k in range(len(self.cells))]
        self.fill()

    def on_one(self, number: int) -> Any:
        """An argument on one GPU."""
        if self.cells[number] is None:
            return 1
        with self.first.current():
            shape = self.program.parameters[number].shape
            return DeviceField(self.first, shape, self.cells[number].dtype)

    def in_parts(self, number: int) -> Any:
        """An argument in parts."""
        if self.cells[number] is None:
            return 1
        memory, name = self.runner.memory, self.program.function.body.block.args[number]
        shape = self.program.parameters[number].shape
        return memory.allocated(shape, self.cells[number].dtype, memory.cuts(name))

    def fill(self) -> None:
        """Fill all fields with their first cells."""
        for cells, argument in zip(self.cells, self.arguments):
            if isinstance(argument, DeviceField):
                with self.first.current():
                    fill(self.first, argument.pointer, argument.shape[0], 0, cells)
            elif isinstance(argument, PartedField):
                self.fill_parts(argument, cells)

    def fill_parts(self, field: PartedField, cells: Any) -> None:
        """Fill a field in parts."""
        if not field.cuts:
            whole = cells[np.arange(field.shape[0]) % len(cells)]
            self.runner.memory.fill(field, whole)
            return
        for site, buffer, cut in zip(self.runner.sites, field.buffers, field.cuts):
            assert isinstance(site, GpuSite)
            first, *others = places_in(cut.held, cut.whole)
            with site.device.current():
                part = np.ascontiguousarray(cells[:, *others])
                fill(site.device, buffer.pointer, cut.shape[0], first.start, part)
        field.age, field.is_settled = 0, True

    def run(self, steps: int) -> tuple[float, float]:
        """The seconds of a run of some steps, and the seconds until all work is on the streams."""
        if self.parted is None:
            with self.first.current():
                self.first.synchronize(0)
                start = time.perf_counter()
                self.program(*self.arguments, steps=steps)
                host = time.perf_counter() - start
                self.first.synchronize(0)
            return time.perf_counter() - start, host
        memory = self.runner.memory
        memory.synchronize()
        start = time.perf_counter()
        with self.runner.sites[0].run_block():
            self.parted.run_host(self.runner, self.arguments, Span(steps))
        host = time.perf_counter() - start
        memory.synchronize()
        return time.perf_counter() - start, host

    def gpts_per_s(self, steps: int, seconds: float) -> float:
        """The speed of a run, by the cells in the box around all updates."""
        domain = Domain.of(self.program.module)
        assert domain is not None
        return prod(extents_of(domain.box)) * steps / seconds / 1e9

    def planes(self, numbers: Sequence[int]) -> list[Any]:
        """The cells of some planes of all fields, each cell from its owner."""
        return [
            self.plane(argument, number)
            for argument in self.arguments
            if not isinstance(argument, int)
            for number in numbers
            if number < argument.shape[0]
        ]

    def plane(self, argument: Any, number: int) -> Any:
        """The cells of a plane."""
        if isinstance(argument, DeviceField):
            return plane_of(self.first, argument.pointer, argument.shape, argument.dtype, number)
        sites: list[Any] = list(self.runner.sites)
        if not argument.cuts:
            buffer = argument.buffers[0]
            return plane_of(sites[0].device, buffer.pointer, argument.shape, argument.dtype, number)
        whole = np.empty(argument.shape[1:], argument.dtype)
        for site, buffer, cut in zip(sites, argument.buffers, argument.cuts):
            owned, (first, *others) = places_in(cut.owned, cut.held), places_in(cut.held, cut.whole)
            at = number - first.start
            if owned[0].start <= at < owned[0].stop:
                cells = plane_of(site.device, buffer.pointer, cut.shape, argument.dtype, at)
                whole[tuple(others)][tuple(owned[1:])] = cells[tuple(owned[1:])]
        return whole

    def close(self) -> None:
        """Give back fields and program."""
        for argument in self.arguments:
            if isinstance(argument, DeviceField):
                with self.first.current():
                    self.first.free(argument.pointer)
            elif isinstance(argument, PartedField):
                self.runner.memory.free(argument)
        self.program.close()
