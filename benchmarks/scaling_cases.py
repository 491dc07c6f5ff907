"""
How scaling on several GPUs is measured: runs of one program in turn, in rounds.

A round has each GPU alone on the domain of one; all GPUs at once, each for itself on the domain of
one, without any exchange; and all GPUs with exchanges on the domain of all. Rounds of strong
scaling have one GPU, and all, on one domain. Every run has whole launches and `seconds` or more, on
fields placed once, without transfers. Clocks depend on the work of the last second, as GPUs run at
the limit of their power: before each run all GPUs compute for as long, each for itself, and no GPU
has more to do in a round than another. Speeds are medians of the rounds, and so are ratios of runs
of a round. A pair runs as its slower GPU does:

- `weak_efficiency` is against the slowest of the GPUs alone;
- `weak_of_apart` is against the slowest of the GPUs at once without exchanges: the rest is lost to
  exchanges and ghosts, and nothing to the host, the power or the clocks of GPUs at work together;
- `weak_of_first` is against the first GPU alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from gpu_clocks import GpuClocks, Span, sampled
from placed_runs import PlacedRun, Run, besides_of, firsts_of

from timetile.runtime.device.gpu import device
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks.loop_schedules import deepest_of

ROUNDS = 4
"""The number of rounds, unless given."""

SHORT_LAUNCHES, GUESSES = 8, 3
"""The launches of a first short run, and the number of guesses for a run that is long enough."""

CHECKED_LAUNCHES, REST = {"fill": 8, "small": 100}, 5
"""A comparison of bits runs so many launches, and some steps more."""

DOMAINS: dict[str, dict[str, tuple[int, ...]]] = {
    "j2d5pt": {"fill": (8192, 16384), "small": (1024, 2048)},
    "j3d7pt": {"fill": (512, 1024, 1024), "small": (128, 256, 256)},
    "star25": {"fill": (512, 768, 768), "small": (128, 256, 256)},
    "yee3": {"fill": (384, 512, 512), "small": (96, 192, 192)},
    "elastic_3d_so4": {"fill": (320, 384, 384), "small": (96, 192, 192)},
}
"""The domains of one GPU."""

Programs = dict[Run, CompiledProgram]


@dataclass(frozen=True)
class Case:
    """The runs of a program, a type and a size on some numbers of GPUs."""

    program: str
    dtype: str
    size: str
    gpus: tuple[int, ...]
    per_gpu: int = 1
    every: int | None = None
    """Steps between two exchanges; chosen unless given."""
    ring: bool = False
    """Whether the domain of several GPUs is periodic: each part has two neighbours."""
    strong: int = 2
    """The GPUs whose domain strong scaling divides."""
    seconds: float = 0.3
    """The least time of a timed run, as predicted by a short one."""
    rounds: int = ROUNDS
    parts: tuple[int, ...] | None = None
    """The parts of several GPUs along each axis; as chosen unless given."""

    def run(self, times: int, gpus: int, first: int = 0) -> Run:
        """A run on the domain of `times` GPUs, from GPU number `first` on."""
        planes, *others = DOMAINS[self.program][self.size]
        per_gpu, every = (self.per_gpu, self.every) if gpus > 1 else (1, None)
        domain = (planes * times, *others)
        ring = self.ring and gpus > 1
        parts = self.parts if gpus > 1 else None
        return Run(self.program, self.dtype, domain, gpus, per_gpu, first, every, ring, parts)

    @property
    def alone(self) -> list[Run]:
        """Each GPU alone, on the domain of one."""
        return [self.run(1, 1, number) for number in range(max(self.gpus))]

    @property
    def runs(self) -> list[Run]:
        """Each GPU alone, one on the domain of strong scaling, N GPUs on the domains of both."""
        ways = [self.run(self.strong, 1)]
        for gpus in self.gpus:
            ways += [self.run(self.strong, gpus), self.run(gpus, gpus)]
        return list(dict.fromkeys([*self.alone, *ways]))

    def rows(self, programs: Programs) -> Iterator[dict[str, Any]]:
        """Measure strong and weak scaling, a number of GPUs after the other."""
        for gpus in self.gpus:
            with sampled() as clocks:
                rounds = Rounds(self, gpus, programs, clocks)
                try:
                    rounds.measure()
                    yield from rounds.rows()
                finally:
                    rounds.close()

    def row(self, run: Run, speed: float, same: bool, **others: Any) -> dict[str, Any]:
        """A row of a run."""
        rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in others.items()}
        return {
            "program": run.program, "dtype": run.dtype, "size": self.size,
            "domain": list(run.domain), "ranks": run.gpus, "parts_per_gpu": run.per_gpu,
            "device": device(0).name, "least_seconds": self.seconds, "rounds": self.rounds,
            "gpts_per_s": round(speed, 2), **rounded, "equal_bits": same,
            **({} if run.every is None else {"exchange_every": run.every}),
            **({} if run.parts is None else {"parts": list(run.parts)}),
        }  # fmt: skip


@dataclass
class Timed:
    """The runs of one kind of a round: one run, or several at once."""

    runs: list[PlacedRun]
    seconds: float
    steps: list[int] = field(default_factory=list[int])
    speeds: list[list[float]] = field(default_factory=list[list[float]])
    """GPts/s of each run, by rounds."""
    spans: list[Span] = field(default_factory=list[Span])

    def prepare(self) -> None:
        """Find the number of steps; the first run of a number plans, and loads kernels."""
        self.steps = [enough_steps(run, self.seconds) for run in self.runs]
        self.once()

    def once(self) -> list[float]:
        """The speeds of the runs, all at once."""
        if len(self.runs) == 1:
            return [speed_of(self.runs[0], self.steps[0])]
        with ThreadPoolExecutor(len(self.runs)) as pool:
            return list(pool.map(speed_of, self.runs, self.steps))

    def note(self) -> None:
        """Run and note the speeds, as a part of a round."""
        start = time.monotonic()
        self.speeds.append(self.once())
        self.spans.append((start, time.monotonic()))

    def slowest(self) -> list[float]:
        """The speed of the slowest run in each round."""
        return [min(each) for each in self.speeds]

    def usual(self) -> list[float]:
        """The median speed of each run."""
        return [round(median(each), 2) for each in zip(*self.speeds)]


class Rounds:
    """The rounds of a case on a number of GPUs."""

    def __init__(self, case: Case, gpus: int, programs: Programs, clocks: GpuClocks):
        self.case, self.gpus, self.programs, self.clocks = case, gpus, programs, clocks
        self.placed: dict[Run, PlacedRun] = {}
        alone = [self.place(run) for run in case.alone[:gpus]]
        self.alone = [Timed([run], case.seconds) for run in alone]
        self.apart = Timed(alone, case.seconds)
        self.one = Timed([self.place(case.run(case.strong, 1))], case.seconds)
        self.weak = Timed([self.place(case.run(gpus, gpus))], case.seconds)
        self.strong = Timed([self.place(case.run(case.strong, gpus))], case.seconds)
        self.same = False

    def place(self, run: Run) -> PlacedRun:
        """A run with its fields placed, once."""
        if run not in self.placed:
            self.placed[run] = PlacedRun(run, self.programs[run])
        return self.placed[run]

    def measure(self) -> None:
        """Compare bits, and run all rounds."""
        several, judge = self.strong.runs[0], self.one.runs[0]
        checked = CHECKED_LAUNCHES[self.case.size] * depth_of(several) + REST
        self.same = have_equal_bits(several, judge, checked)
        weak, strong = (*self.alone, self.apart, self.weak), (self.one, self.strong)
        for kind in (*weak, *strong):
            kind.prepare()
        for kinds in (weak, strong):
            for kind in self.case.rounds * kinds:
                self.apart.once()
                kind.note()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of strong and of weak scaling, and of one GPU."""
        case, gpus = self.case, self.gpus
        many = case.run(case.strong, gpus)
        found = exchange_of(self.programs[many])
        (speed,), (one,) = self.strong.usual(), self.one.usual()
        ratio = median(a / b for a, b in zip(self.strong.slowest(), self.one.slowest()))
        yield found | case.row(many, speed, self.same, one_gpts_per_s=one, strong_speedup=ratio)
        many = case.run(gpus, gpus)
        (speed,) = self.weak.usual()
        yield exchange_of(self.programs[many]) | case.row(
            many, speed, self.same, **self.efficiencies(), **self.clocks_of()
        )
        first = case.alone[0]
        (alone,) = self.alone[0].usual()
        yield case.row(first, alone, same=True, weak_efficiency=1.0)

    def efficiencies(self) -> dict[str, Any]:
        """Weak efficiency against GPUs alone, and against GPUs at once without exchanges."""
        alone = list(zip(*(each.slowest() for each in self.alone)))
        rounds = list(zip(self.weak.slowest(), alone, self.apart.slowest()))
        gpus = self.gpus
        return {
            "alone_gpts_per_s": [each.usual()[0] for each in self.alone],
            "apart_gpts_per_s": self.apart.usual(),
            "weak_efficiency": median(many / min(each) for many, each, _ in rounds) / gpus,
            "weak_of_apart": median(many / apart for many, _, apart in rounds) / gpus,
            "weak_of_first": median(many / each[0] for many, each, _ in rounds) / gpus,
        }

    def clocks_of(self) -> dict[str, Any]:
        """The mean clocks in MHz and the power in watts of all GPUs, in each kind of run."""
        names = [*(f"alone {number}" for number in range(self.gpus)), "apart", "exchanging"]
        kinds = [*self.alone, self.apart, self.weak]
        found = {name: self.clocks.during(kind.spans) for name, kind in zip(names, kinds)}
        return {
            "clocks": {
                name: {str(k): [each.megahertz, each.watts] for k, each in known.items()}
                for name, known in found.items()
                if known
            }
        }

    def close(self) -> None:
        """Give back all fields and programs."""
        for run in self.placed.values():
            run.close()


def exchange_of(program: CompiledProgram) -> dict[str, Any]:
    """
    The chosen exchange of a program in parts, as entries of a row, and how rims travel behind the
    deepest launch: computed `first` and copied meanwhile, `stored` by kernels, or `copied`.
    """
    if not isinstance(program, PartedProgram) or program.exchange is None:
        return {}
    name = next(filter(None, program.parts.planned(0, common=False)))[1][0].name
    ways = (("first", firsts_of), ("stored", besides_of))
    found = (way for way, kernels in ways if kernels(program.parts, 0, name))
    return {
        "launches_an_exchange": program.exchange.chosen.launches,
        "rims": next(found, "copied"),
    }


def have_equal_bits(several: PlacedRun, judge: PlacedRun, steps: int) -> bool:
    """Whether planes around the cuts, and others, have equal bits after some steps."""
    assert several.parted is not None
    planes = several.program.parameters[0].shape[0]
    cuts = several.parted.decomposition.faces[0]
    near = {cut + far for cut in cuts for far in range(-2, 3)}
    numbers = [each for each in sorted(near | {*range(0, planes, planes // 4)}) if each >= 0]
    for run in (several, judge):
        run.run(steps)
    pairs = zip(several.planes(numbers), judge.planes(numbers), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def depth_of(run: PlacedRun) -> int:
    """The steps of the deepest launch."""
    if run.parted is None:
        return max(fact.steps for facts in run.program.kernels.facts for fact in facts)
    return deepest_of(run.parted.parts.schedules[False])


def enough_steps(run: PlacedRun, seconds: float) -> int:
    """
    Steps for some seconds, an even number of whole launches. Few launches go one by one, many as
    graphs, which take less time: longer runs tell how many steps are enough.
    """
    unit = 2 * depth_of(run)
    steps = SHORT_LAUNCHES // 2 * unit
    for _ in range(GUESSES):
        run.run(steps)
        taken, _ = run.run(steps)
        if taken >= seconds:
            break
        steps = -(-int(seconds / max(taken, 1e-5) * steps) // unit) * unit
    return steps


def speed_of(run: PlacedRun, steps: int) -> float:
    """The speed of a run in GPts/s."""
    return run.gpts_per_s(steps, run.run(steps)[0])
