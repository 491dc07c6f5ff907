"""
Measure what simulations need beside the benchmarks: boundaries, each beside `keep` on equal cells,
given as an attribute or by copies of edge cells, and a series beside a scalar.

    python benchmarks/simulations.py --out benchmarks/results/simulations.json

A row runs a program at its chosen schedule with a boundary, and with `keep` on equal arrays, on
one GPU, in turns. `ratio` is the speed with the feature over the speed without, in updated cells:
with `keep` and by copies the cells near the ends are not counted. Bits are compared on a small
domain of odd sizes with the NumPy executor, and on the whole domain with a kernel of two steps.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from settings import wait_for_choices
from simulated_programs import (
    BESIDE,
    DOMAINS,
    DTYPES,
    FEATURES,
    PROGRAMS,
    RADIUS,
    Domain,
)

import timetile
from timetile import Model
from timetile.frontend.field_types import DType
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.machine.driver import checked

wait_for_choices()


@dataclass(frozen=True)
class Row:
    """One program with a feature, beside the program without. Cells updated per second in 1e9."""

    program: str
    feature: str
    dtype: str
    domain: Domain
    device: str
    depth: int
    gpts_per_s: float
    gpts_per_s_without: float
    ratio: float
    equal_bits: bool
    commit: str
    command: str = "python benchmarks/simulations.py"


def updated_cells(program: str, feature: str, domain: Domain) -> int:
    """The cells of the arrays that a step updates."""
    return prod(n - 2 * RADIUS[program] * (FEATURES[feature] == "keep") for n in domain)


def features_of(program: str, chosen: Sequence[str]) -> list[str]:
    """The measured features of a program, among the chosen ones."""
    driven = () if program == "j2d5pt" else ("constant", "series")
    return [feature for feature in chosen if feature not in driven]


def taken_kernels(program: timetile.CompiledProgram) -> ProgramKernels:
    """The kernels of most steps of a program: those without edge copies, if any."""
    edges = program.kernels.edges
    return edges.continued.kernels if edges.steps else program.kernels


def depth_of(program: timetile.CompiledProgram) -> int:
    """The steps of a program's deepest kernel."""
    return max(fact.steps for fact in taken_kernels(program).facts[0])


def numbers_of(feature: str, dtype: DType, steps: int) -> list[Any]:
    """The scalar of a program's function, or the series."""
    match feature:
        case "constant":
            return [0.001]
        case "series":
            return [np.sin(np.arange(steps)).astype(dtype) * np.dtype(dtype).type(0.001)]
        case _:
            return []


def arrays_of(program: str, domain: Domain, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """The arrays of a program's function: buffers of one field alike, then the coefficient."""
    random = np.random.default_rng(len(program)).uniform(-1, 1, 1_000_003).astype(dtype)
    u = np.resize(random, domain)
    if program != "wave-so4-3d":
        return [u, u]
    return [u, u, u, np.resize(0.03 + 0.02 * random, domain).astype(dtype)]


def on_gpu(model: Model, arch: str | None, depth: int | None = None) -> Model:
    """A step on a GPU, of a named architecture if given, as kernels made ahead."""
    named: dict[str, Any] = {} if arch is None else {"arch": arch}
    return model.on(executor="gpu", depth=depth, **named)


def bits(program: str, feature: str, dtype: DType, arch: str | None) -> bool:
    """The GPU has the bits of the NumPy executor on a small domain, for two numbers of steps."""
    make, domain = PROGRAMS[program]
    model = make(feature, domain)
    models = {"gpu": on_gpu(model, arch), "numpy": model.on(executor="numpy")}
    compiled = {name: each.program(domain, dtype) for name, each in models.items()}
    steps = 2 * depth_of(compiled["gpu"]) + 3
    start = arrays_of(program, domain, dtype)
    found = {name: [array.copy() for array in start] for name in compiled}
    for name, one in compiled.items():
        one(*found[name], *numbers_of(feature, dtype, steps), steps)
    return all(a.tobytes() == b.tobytes() for a, b in zip(found["gpu"], found["numpy"]))


Case = tuple[str, Domain, str, DType, str | None]
"""A program, a domain, a feature, a type, and a named architecture."""


def compile_into_cache(model: Model, domain: Domain, dtype: DType) -> None:
    """Compile the kernels of most steps."""
    kernels = taken_kernels(model.program(domain, dtype))
    for fact in kernels.facts[0]:
        kernels.kernel(fact.name)


def compiled_ahead(case: Case) -> Case:
    """Compile the programs of a row into the cache, without a GPU."""
    program, domain, feature, dtype, arch = case
    for size, depths in ((domain, (None, 2)), (PROGRAMS[program][1], (None,))):
        for depth in depths:
            model = on_gpu(PROGRAMS[program][0](feature, size), arch, depth)
            compile_into_cache(model.on(executor="simt"), size, dtype)
    return case


def compiled_on_disk(case: Case) -> tuple[tuple[str, str, str], bool | None]:
    """Compile a program, and the program of two steps, into the cache; compare bits once."""
    program, domain, feature, dtype, arch = case
    model = PROGRAMS[program][0](feature, domain)
    for depth in (None, 2):
        compile_into_cache(on_gpu(model, arch, depth), domain, dtype)
    is_first = domain == dict(reversed(DOMAINS))[program]
    return (program, feature, dtype), bits(program, feature, dtype, arch) if is_first else None


class GpuFields:
    """Arrays in GPU memory, as other libraries show them."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]]):
        self.gpu, self.arrays = device(0), arrays
        self.pointers = [self.gpu.allocate(array.nbytes) for array in arrays]
        self.first, self.last = (
            self.gpu.allocate(array.nbytes) for array in (arrays[0], arrays[-1])
        )
        self.gpu.upload(self.first, arrays[0])
        self.gpu.upload(self.last, arrays[-1])
        self.fill()

    def fill(self) -> None:
        """The arrays, as at the start: all but the last are alike."""
        for pointer, array in zip(self.pointers, self.arrays):
            source = self.last if pointer == self.pointers[-1] else self.first
            checked(self.gpu.cuda.cuMemcpyDtoD(pointer, source, array.nbytes))

    def shown(self) -> list[Any]:
        """The fields as arguments of a program."""
        return [ShownField(p, a) for p, a in zip(self.pointers, self.arrays)]

    def read(self) -> bytes:
        """The cells of the first field, copied from the GPU."""
        found = np.empty_like(self.arrays[0])
        checked(self.gpu.cuda.cuCtxSynchronize())
        self.gpu.download(found, self.pointers[0])
        return found.tobytes()

    def free(self) -> None:
        """Give the memory back."""
        for pointer in (*self.pointers, self.first, self.last):
            self.gpu.free(pointer)


class ShownField:
    """A field in GPU memory, in the notation of other libraries."""

    def __init__(self, pointer: int, array: np.ndarray[Any, Any]):
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (pointer, False),
            "version": 3,
        }


SECONDS, ROUNDS = 0.12, 5


class TimedRuns:
    """Runs of one program with a feature on fields in GPU memory."""

    def __init__(
        self, program: timetile.CompiledProgram, fields: GpuFields, feature: str, dtype: DType
    ):
        self.program, self.shown = program, fields.shown()
        self.gpu, self.feature = fields.gpu, feature
        self.dtype: DType = dtype
        few = 8 * depth_of(program) + 2
        self.seconds(few)
        each = self.seconds(few) / few / depth_of(program)
        self.steps = max(16, int(SECONDS / each)) * depth_of(program) + 2
        self.seconds(self.steps)
        self.best = float("inf")
        """The seconds of a step, of the best run so far."""

    def seconds(self, steps: int) -> float:
        """The seconds of a run, from its call to the end of the last kernel."""
        numbers = numbers_of(self.feature, self.dtype, steps)
        checked(self.gpu.cuda.cuCtxSynchronize())
        start = time.perf_counter()
        self.program(*self.shown, *numbers, steps)
        checked(self.gpu.cuda.cuCtxSynchronize())
        return time.perf_counter() - start

    def again(self) -> None:
        """Another long run."""
        self.best = min(self.best, self.seconds(self.steps) / self.steps)


def timed(runs: dict[str, TimedRuns]) -> dict[str, float]:
    """
    The seconds of a step with each feature. Runs take turns: the clock of a GPU changes by some
    percent within seconds.
    """
    for _ in range(ROUNDS):
        for each in runs.values():
            each.again()
    return {feature: each.best for feature, each in runs.items()}


def has_bits_of_two_steps(
    program: str, domain: Domain, dtype: DType, feature: str, fields: GpuFields, arch: str | None
) -> bool:
    """Whether a program leaves the bits of the program of two steps a launch."""
    model, found = PROGRAMS[program][0](feature, domain), list[bytes]()
    chosen, other = (on_gpu(model, arch, depth).program(domain, dtype) for depth in (None, 2))
    steps = depth_of(chosen) + 8
    for one in (chosen, other):
        fields.fill()
        one(*fields.shown(), *numbers_of(feature, dtype, steps), steps)
        found.append(fields.read())
    return found[0] == found[1]


def rows_of(
    program: str,
    domain: Domain,
    dtype: DType,
    equal: dict[tuple[str, str, str], bool],
    options: argparse.Namespace,
) -> Iterator[Row]:
    """The rows of a program of one domain and type."""
    gpu, runs = device(0), dict[str, TimedRuns]()
    with gpu.current():
        fields = GpuFields(arrays_of(program, domain, dtype))
        taken = features_of(program, options.features)
        for feature in taken:
            model = on_gpu(PROGRAMS[program][0](feature, domain), options.arch)
            runs[feature] = TimedRuns(model.program(domain, dtype), fields, feature, dtype)
        seconds = timed(runs)
        for feature in taken:
            same = has_bits_of_two_steps(program, domain, dtype, feature, fields, options.arch)
            speed, beside = (
                updated_cells(program, each, domain) / seconds[each] / 1e9
                for each in (feature, BESIDE.get(feature, "keep"))
            )
            yield Row(
                program, feature, dtype, domain, gpu.name, depth_of(runs[feature].program),
                round(speed, 1), round(beside, 1), round(speed / beside, 4),
                same and equal[program, feature, dtype], options.commit,
            )  # fmt: skip
        fields.free()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--features", nargs="+", default=list(FEATURES), choices=list(FEATURES))
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--arch", help="the architecture, as of kernels made ahead")
    parser.add_argument("--ahead", action="store_true", help="make the kernels, and measure none")
    options = parser.parse_args()
    dtypes: list[DType] = [dtype for dtype in DTYPES if dtype in options.dtypes]
    domains = [each for each in DOMAINS if each[0] in options.programs]
    cases = [
        (program, domain, feature, dtype, options.arch)
        for (program, domain), dtype in product(domains, dtypes)
        for feature in features_of(program, options.features)
    ]
    cases.sort(key=lambda case: -len(case[1]))
    with ProcessPoolExecutor(options.workers) as pool:
        if options.ahead:
            for case in pool.map(compiled_ahead, cases):
                print(*case, flush=True)
            return
        answers = list(pool.map(compiled_on_disk, cases))
    equal = {key: answer for key, answer in answers if answer is not None}
    rows: list[Row] = []
    for (program, domain), dtype in product(domains, dtypes):
        for row in rows_of(program, domain, dtype, equal, options):
            print(row, flush=True)
            rows.append(row)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
