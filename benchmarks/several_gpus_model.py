"""
A model of weak and strong scaling on many GPUs, from constants measured on two.

    python benchmarks/several_gpus_model.py --plot docs/pictures/several-gpus.svg

A launch of D steps on a part of n planes that copies ghosts computes n + (k D) r planes for each
face, for k launches between two exchanges of ghosts of k D + 1 steps and radius r. Each exchange
moves both faces, one after the other, and GPUs wait for each other: nothing overlaps. Launches with
rims first, and kernels that store rims, compute n planes inside a host: GPUs wait for each other,
and rims travel meanwhile. Rims first fill the pipeline of planes once more for each face, and
travel unseen for half of a launch; stored rims are seen in part. Constants inside a host are those
of `passes/targets/links.py`. Between hosts faces are copied. Assumptions, beside the constants
below: slabs along the first axis; launches as fast for each cell as on one GPU; GPUs of equal
speed; faces inside a host through NVLink, and between hosts through one network card a GPU without
a copy through the host's memory. The plot has measured points of `several-gpus.json`, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure

from timetile.passes.targets.links import NVLINK
from timetile.runtime.ranks.exchange_choice import (
    BEGIN_SECONDS,
    HIDDEN_SHARE,
    RimWay,
    filled_cost,
)

rcParams["svg.hashsalt"] = "timetile"

RESULTS = Path(__file__).parent / "results" / "several-gpus.json"

NETWORK_SECONDS, NETWORK_RATE = 10e-6, 45e9
"""A message between hosts through a card of 400 Gbit/s: assumed."""

GPUS_OF_A_HOST = 8


@dataclass(frozen=True)
class Modelled:
    """A program: bytes of a cell that are exchanged, and the speed of one GPU."""

    name: str
    cell_bytes: int
    radius: int
    depth: int
    launches: int
    """Launches between two exchanges."""
    way: RimWay
    """How rims travel inside a host."""
    gpts_per_s: float
    """Measured on one H200."""
    rounds: float
    """Rounds of blocks of a rim computed first."""
    domain: tuple[int, ...]
    """Of one GPU in weak scaling; strong scaling divides a domain twice as long."""


PROGRAMS = [
    Modelled("j2d5pt f32", 4, 1, 11, 3, "copied", 4075.9, 0, (8192, 16384)),
    Modelled("j3d7pt f32", 4, 1, 6, 1, "first", 1517.3, 4.1, (512, 1024, 1024)),
    Modelled("j3d7pt f64", 8, 1, 4, 1, "first", 714.9, 4.3, (512, 1024, 1024)),
    Modelled("star25 f32", 4, 4, 1, 1, "stored", 417.9, 0, (512, 768, 768)),
    Modelled("yee3 f64", 48, 1, 3, 1, "first", 69.66, 7.8, (384, 512, 512)),
]


def launch_seconds(program: Modelled, planes: float, gpus: int) -> float:
    """
    The seconds of a launch of the slowest GPU and its share of an exchange, with `planes` planes on
    each GPU.
    """
    area, zone = prod(program.domain[1:]), program.launches * program.depth + 1
    faces = 0 if gpus == 1 else 1 if gpus == 2 else 2
    crossed = 1 if gpus > GPUS_OF_A_HOST else 0
    copied = faces if program.way == "copied" else crossed
    computed = planes + copied * (zone - 1) * program.radius
    seconds = computed * area * program.depth / (program.gpts_per_s * 1e9)
    size = zone * program.radius * area * program.cell_bytes
    inside, rate = copied - crossed, NVLINK.bytes_per_second
    exchange = NVLINK.seconds * (copied > 0) + inside * size / rate
    # A part at the end of a host has one face on the network, and all wait for it in turn.
    exchange += crossed * (NETWORK_SECONDS + size / NETWORK_RATE)
    near = faces - crossed
    if program.way != "copied" and near > 0:
        travel = near * size * (zone - 1) / zone / rate
        exchange += NVLINK.meeting_seconds
        if program.way == "first":
            filled = 2 * program.depth * program.radius * filled_cost(program.depth)
            exchange += near * program.rounds * BEGIN_SECONDS
            exchange += max(0.0, travel - HIDDEN_SHARE * seconds)
            seconds *= 1 + near * filled / planes
        else:
            stalled = NVLINK.stalled_share if program.depth == 1 else NVLINK.deep_stalled_share
            exchange += max(stalled * travel, travel - seconds)
    return seconds + exchange / program.launches


def weak(program: Modelled, gpus: int) -> float:
    """The efficiency of weak scaling."""
    planes = program.domain[0]
    return launch_seconds(program, planes, 1) / launch_seconds(program, planes, gpus)


def strong(program: Modelled, gpus: int) -> float:
    """The speed-up of strong scaling: of 4 domains of one GPU up to a host, of 256 beyond."""
    whole = program.domain[0] * (4 if gpus <= GPUS_OF_A_HOST else 256)
    return launch_seconds(program, whole, 1) / launch_seconds(program, whole / gpus, gpus)


def rows() -> Iterator[str]:
    """The lines of a table: weak efficiency and strong speed-up."""
    yield "| program | GPUs | weak efficiency | strong speed-up |"
    yield "|---|---|---|---|"
    for program in PROGRAMS:
        for gpus in (2, 4, 8, 1024):
            yield (
                f"| {program.name} | {gpus} | {weak(program, gpus):.3f} | "
                f"{strong(program, gpus):.4g} |"
            )


def measured() -> Iterator[tuple[str, int, float]]:
    """Program, GPUs and weak efficiency of measured rows of programs in the model."""
    known = {program.name for program in PROGRAMS}
    for row in json.loads(RESULTS.read_text())["rows"]:
        name = f"{row['program']} {row['dtype']}"
        if name in known and row.get("size", "fill") == "fill" and "weak_efficiency" in row:
            shares = ("weak_of_apart", "weak_of_slowest", "weak_efficiency")
            yield name, row["ranks"], next(row[share] for share in shares if share in row)


def plot(path: Path) -> None:
    """Draw the efficiency of weak scaling over the number of GPUs, with measured points."""
    figure: Any = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    counts = [2**k for k in range(11)]
    points = list(measured())
    for program in PROGRAMS:
        (line,) = axes.plot(counts, [weak(program, n) for n in counts], label=program.name)
        own = [(n, share) for name, n, share in points if name == program.name and n > 1]
        axes.plot(*zip(*own), "o", color=line.get_color())
    axes.axvline(GPUS_OF_A_HOST, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("GPUs (dotted: a host)")
    axes.set_ylabel("weak efficiency")
    axes.set_ylim(0.5, 1.05)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the table, and draw the plot."""
    parser = argparse.ArgumentParser(description="A model of scaling on many GPUs.")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    print("\n".join(rows()))
    if given.plot is not None:
        plot(given.plot)


if __name__ == "__main__":
    main()
