"""
Pipelines from time loops to placed kernels with any options of any pass, as text, drawn by the
number of a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

NAMES = (
    "temporal-fusion",
    "device-tiling",
    "split-sums",
    "multi-queue-buffering",
    "register-streaming",
    "carry-halos",
    "peel-boundaries",
)

Value = int | float | str | tuple[int, ...]


@dataclass(frozen=True)
class Pipeline:
    """Options by pass; unnamed passes do not run."""

    passes: dict[str, dict[str, Value]]
    arch: str = "sm_90"

    @property
    def text(self) -> str:
        """The pipeline in xdsl-opt's notation."""
        return ",".join(
            name + (f"{{{' '.join(map(said, options.items()))}}}" if options else "")
            for name, options in self.passes.items()
        )

    def given(self, name: str, option: str) -> Value | None:
        """An option of a pass; None if absent."""
        return self.passes.get(name, {}).get(option)

    def having(self, name: str, **options: Value | None) -> Pipeline:
        """The pipeline with options of a pass; options of None are left out."""
        passes = {each: dict(values) for each, values in self.passes.items()}
        own = passes.setdefault(name, {})
        for option, value in options.items():
            own.pop(option, None)
            if value is not None:
                own[option] = value
        return replace(self, passes={each: passes[each] for each in NAMES if each in passes})

    def without(self, name: str) -> Pipeline:
        """The pipeline without a pass."""
        return replace(self, passes={k: v for k, v in self.passes.items() if k != name})


def said(option: tuple[str, Value]) -> str:
    """An option in xdsl-opt's notation."""
    name, value = option
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{name.replace('_', '-')}={text}"


def some(random: Random, options: dict[str, Callable[[], Value]], share: float) -> dict[str, Value]:
    """Each option with a probability."""
    return {name: draw() for name, draw in options.items() if random.random() < share}


def drawn(seed: int, rank: int) -> Pipeline:
    """Any pipeline for programs of a number of axes; most layouts fit the axes."""
    random = Random(seed)
    choice = random.choice
    stream: Value | None = choice(
        [None, None, None, None, *range(rank + (random.random() < 0.1)), "none"]
    )
    placed = {
        "device-tiling": tiling(random, rank, stream),
        "multi-queue-buffering": buffering(random),
        "register-streaming": streaming(random),
        "peel-boundaries": peeling(random),
    }
    chosen: dict[str, dict[str, Value]] = {
        "temporal-fusion": {"depths": (choice([1, 2, 2, 3]),)},
        "split-sums": {"form": choice(["none", "none", "rows", "halves", "lanes"])},
        "carry-halos": {},
    }
    passes = {name: (placed | chosen)[name] for name in NAMES}
    if random.random() < 0.2:
        del passes["register-streaming"]
    return Pipeline(passes, choice(["sm_90"] * 4 + ["sm_80"]))


def tiling(random: Random, rank: int, stream: Value | None) -> dict[str, Value]:
    """Options of device-tiling for programs of a number of axes, with a given streaming axis."""
    choice = random.choice
    axes = rank if stream == "none" or (rank == 1 and stream is None) else rank - 1
    axes += choice([-1, 1]) if random.random() < 0.03 else 0
    axes = max(axes, 1)

    def counts(*values: int) -> tuple[int, ...]:
        return tuple(choice(values) for _ in range(axes))

    tile = choice(["warp", "block", "block", "cluster", "device"])
    made: dict[str, Value] = {
        "tile": tile,
        "cells": counts(1, 1, 2, 2, 3, 4, 5),
        "lanes": (*(choice([1] * 30 + [2]) for _ in range(axes - 1)), choice([32] * 30 + [16])),
        "warps": (1,) * axes if tile == "warp" else (choice([1, 2, 2, 3, 4]), *counts(1, 1, 2)[1:]),
    }
    if tile in ("cluster", "device"):
        most = [1, 2, 2, 3] if random.random() < 0.9 else [9, 200]
        made["blocks"] = (choice(most), *(choice([1] * 3 + [2]) for _ in range(axes - 1)))
    numbers: dict[str, Callable[[], Value]] = {
        "pack": lambda: choice([1, 2, 3]),
        "occupancy": lambda: choice([1, 1, 2, 3, 40]),
    }
    made |= some(random, numbers, 0.3)
    if stream is not None:
        made["stream_axis"] = stream
    if random.random() < 0.05:
        made["reads"] = "memory"
        if random.random() < 0.7:
            for name in ("tile", "stream_axis", "blocks"):
                made.pop(name, None)
    if random.random() < 0.04:
        made["cuts"] = (choice([0, 1, 2]),)
    return made


def buffering(random: Random) -> dict[str, Value]:
    """Options of multi-queue-buffering."""
    choice = random.choice
    usual: dict[str, Callable[[], Value]] = {
        "storage": lambda: choice(["registers", "shared"]),
        "addressing": lambda: choice(["fixed", "shifting", "computed"]),
        "ahead": lambda: choice([0, 0, 0, 1, 2, 4, 7, 3000]),
        "period": lambda: choice([0, 1, 2, 3, 5, 30, 4000]),
    }
    seldom: dict[str, Callable[[], Value]] = {"every": lambda: choice([0, 1, 2, 2, 3])}
    return some(random, usual, 0.4) | some(random, seldom, 0.15)


def streaming(random: Random) -> dict[str, Value]:
    """Options of register-streaming."""
    choice = random.choice
    usual: dict[str, Callable[[], Value]] = {
        "delay": lambda: choice([0, 1, 1, 2, 3, 3000]),
        "what": lambda: choice(["edges", "plane", "copies"]),
        "sync": lambda: choice(["barrier", "mbarrier", "flags", "grid"]),
    }
    seldom: dict[str, Callable[[], Value]] = {
        "every": lambda: choice([0, 1, 2, 2, 3]),
        "period": lambda: choice([0, 1, 2, 7, 4000]),
    }
    return some(random, usual, 0.5) | some(random, seldom, 0.15)


def peeling(random: Random) -> dict[str, Value]:
    """Options of peel-boundaries."""
    choice = random.choice
    usual: dict[str, Callable[[], Value]] = {
        "guards": lambda: choice(["rim", "all"]),
        "planes": lambda: choice([1, 2, 5, 100]),
        "columns": lambda: "alone",
        "multiprocessors": lambda: choice([1, 2, 132]),
    }
    return some(random, usual, 0.3)
