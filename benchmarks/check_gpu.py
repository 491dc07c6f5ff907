"""
Run programs on the GPU and compare every buffer with the CPU executor, bit for bit.

    python benchmarks/check_gpu.py
    compute-sanitizer --tool memcheck --error-exitcode 9 python benchmarks/check_gpu.py --small

The programs cover one to three axes, both element types, stars and boxes, radius 1 to 4, quotients
and roots, second order in time with a coefficient field, tiles of warps, blocks, clusters and the
device, sums by rows, by halves and by columns, runs of many launches, chunks with joined columns,
and domains with every remainder; each with common halos, and with different halos.
`check_gpu_runtime.py` checks the resources of programs on the GPU, streams and threads.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from fields import Fields, with_common_halos
from measure import run_on
from rows import Terms, scheduled, source

import timetile
from timetile.dialects.tile.kinds import Addressing, Form, Storage, Sync, TileLevel
from timetile.lowering.pipelines import tile_passes
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.options import Halos

HALOS: tuple[Halos, ...] = ("apart", "common")


@dataclass(frozen=True)
class Case:
    """
    A program (a stencil's name, or `wave` and a radius), its domain, steps and depth, and the given
    parts of its schedule.
    """

    name: str
    domain: tuple[int, ...]
    element: str
    steps: int
    depth: int | None
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    bound_waits: bool = False
    multiprocessors: int | None = None
    """The planned number of multiprocessors: small enough for joined columns on small domains."""


Changes = dict[str, Any]
"""Decisions of a schedule, by name."""

CLUSTER: Changes = {"tile": TileLevel.CLUSTER, "blocks": (2, 1), "sync": Sync.MBARRIER}

BLOCK: Changes = {"tile": TileLevel.BLOCK}
DEVICE: Changes = {
    "tile": TileLevel.DEVICE, "sync": Sync.FLAGS, "cells": (4, 2), "warps": (8, 1),
}  # fmt: skip
GRID: Changes = {"sync": Sync.GRID}
BATCHES: Changes = GRID | {"every": 2, "ahead": 1}
RINGS: Changes = {
    "storage": Storage.SHARED, "addressing": Addressing.COMPUTED, "cells": (2, 2),
}  # fmt: skip
STILL: Changes = {
    "resident": True, "lanes": (1, 32), "pack": 1, "form": Form.NONE, "occupancy": 1,
}  # fmt: skip
SOLID: Changes = DEVICE | STILL | {"lanes": (1, 1, 32), "cells": (2, 2, 2), "blocks": (4, 1, 1)}

SMALL = (
    Case("j1d3pt", (1000,), "f64", 13, 4),
    Case("j1d3pt", (777,), "f32", 9, None),
    Case("j1d3pt", (10001,), "f64", 13, 3),
    Case("j1d3pt", (9999,), "f32", 37, None),
    Case("j2d5pt", (61, 257), "f64", 25, 12),
    Case("j2d5pt", (64, 200), "f32", 7, None),
    Case("j2d5pt", (1, 1), "f64", 5, 3),
    Case("j2d9pt", (67, 131), "f64", 11, 3),
    Case("j2d9pt-gol", (50, 140), "f64", 10, None),
    Case("gradient2d", (45, 300), "f64", 9, 4),
    Case("gradient2d", (37, 150), "f32", 7, None),
    Case("j2d25pt", (43, 140), "f32", 6, 2),
    Case("star2d4r", (41, 140), "f64", 5, 2),
    Case("box2d4r", (23, 140), "f32", 3, 1),
    Case("j3d7pt", (20, 41, 67), "f64", 9, 4),
    Case("j3d7pt", (19, 30, 64), "f32", 6, None),
    Case("star3d2r", (17, 30, 66), "f64", 4, 2),
    Case("j3d7pt", (20, 141, 67), "f64", 9, 4, CLUSTER | {"cells": (4, 2), "warps": (8, 1)}),
    Case("star3d2r", (17, 90, 66), "f32", 5, 2, CLUSTER | {"cells": (4, 2), "warps": (4, 1)}),
    Case("j3d7pt", (20, 141, 67), "f64", 9, 4, DEVICE | {"blocks": (5, 1)}),
    Case("star3d2r", (17, 90, 66), "f32", 5, 2, DEVICE | GRID | {"blocks": (3, 1)}),
    Case("j3d7pt", (20, 141, 67), "f32", 9, 3, DEVICE | BATCHES | {"blocks": (5, 1)}),
    Case("j3d7pt", (20, 141, 67), "f64", 7, 2, DEVICE | BATCHES | RINGS | {"blocks": (5, 1)}),
    Case("j3d7pt", (9, 77, 67), "f32", 7, 3, DEVICE | {"blocks": (3, 1)}, bound_waits=True),
    Case("j2d5pt", (300, 257), "f64", 17, 8, DEVICE | STILL | {"blocks": (4, 1), "cells": (6, 4)}),
    Case(
        "j2d5pt",
        (300, 257),
        "f64",
        27,
        12,
        STILL | BLOCK | {"cells": (10, 2), "warps": (8, 1)},
    ),
    Case(
        "wave1",
        (130, 257),
        "f64",
        9,
        4,
        STILL | BLOCK | {"cells": (4, 4), "warps": (8, 1)},
    ),
    Case("j2d9pt-gol", (256, 256), "f32", 25, None),
    Case("box3d1r", (13, 21, 97), "f64", 7, 2, SOLID | {"warps": (2, 5, 1)}),
    Case("j3d7pt", (21, 31, 70), "f32", 7, 3, SOLID | GRID | {"warps": (1, 6, 2)}),
    Case("layers", (13, 21, 97), "f64", 7, 2, SOLID | {"warps": (2, 5, 1)}),
    Case("j2d9pt-gol", (391, 2300), "f32", 9, 4, multiprocessors=8),
    Case("star2d3r", (391, 1300), "f64", 6, 2, multiprocessors=8),
    Case("j2d5pt", (389, 1230), "f64", 17, 8, multiprocessors=7),
    Case("star3d2r", (17, 30, 66), "f64", 4, 2, {"form": Form.HALVES}),
    Case("j2d25pt-columns", (391, 2300), "f64", 7, 2, {"form": Form.LANES}, multiprocessors=8),
)
"""Few blocks and steps each, as `compute-sanitizer` takes a hundred times as long."""

OTHERS = (
    Case("j2d5pt", (61, 257), "f64", 1003, 4),
    Case("j2d9pt-gol", (61, 257), "f32", 601, 3),
    Case("box3d1r", (11, 30, 66), "f64", 7, 3),
    Case(
        "j3d7pt",
        (20, 141, 67),
        "f64",
        9,
        4,
        CLUSTER | {"cells": (4, 2), "warps": (8, 1)},
        bound_waits=True,
    ),
    Case("j3d7pt", (20, 77, 67), "f32", 9, 4, bound_waits=True),
    Case("wave1", (45, 150), "f64", 8, 2),
    Case("wave4", (14, 20, 66), "f32", 3, 1),
)


def check(case: Case, halos: Halos) -> bool:
    """
    The GPU leaves the CPU's bits in every buffer, halos included, on the first run and on a
    repeated run: repeated runs go as a graph.
    """
    text, halo, count = source(case.name, case.domain, case.element)
    shape = tuple(n + 2 * halo for n in case.domain)
    generator = np.random.default_rng(3)
    kind = {"f64": np.float64, "f32": np.float32}[case.element]
    on_cpu = [generator.random(shape, dtype=kind) for _ in range(count)]
    if halos == "common":
        on_cpu = with_common_halos(on_cpu, halo)
    fields = Fields(device(), [array.copy() for array in on_cpu])
    timetile.compile(text, executor="cpu")(*on_cpu, case.steps)
    given = scheduled(text, case.depth, case.changes, Terms(halos)) if case.changes else text
    passes = None
    if case.multiprocessors is not None:
        passes = tile_passes(case.depth, multiprocessors=case.multiprocessors)
    compiled = timetile.compile(
        given, executor="gpu", depth=case.depth, bound_waits=case.bound_waits, passes=passes,
        halos=halos,
    )  # fmt: skip
    runs = [run_on(compiled, fields, case.steps) for _ in range(3)]
    compiled.runner(0).close()
    fields.free()
    return all(np.array_equal(a, b) for on_gpu in runs for a, b in zip(on_cpu, on_gpu))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="the small programs only")
    parser.add_argument(
        "--part",
        default="1/1",
        metavar="K/N",
        help="the K-th of N parts, to check them side by side",
    )
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    if not 1 <= part <= parts:
        parser.error(f"part {part} of {parts}; the parts are numbered from 1 on")
    runs = list(product(SMALL if options.small else SMALL + OTHERS, HALOS))[part - 1 :: parts]
    failed = 0
    with device().current():
        for case, halos in runs:
            same = check(case, halos)
            failed += not same
            print(f"{'same bits' if same else 'DIFFERENT'}  {halos:6}  {case}", flush=True)
    print(f"{len(runs) - failed} passed, {failed} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
