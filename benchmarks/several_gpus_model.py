"""
A model of weak and strong scaling on many GPUs, from constants measured on two.

    python benchmarks/several_gpus_model.py

A launch of D steps on a part of n planes computes n + (k D) r planes for each face, for k launches
between two exchanges of ghosts of k D + 1 steps and radius r. Each exchange moves both faces, one
after the other, and GPUs wait for each other: nothing overlaps. (Kernels that store rims to the
memory of neighbours probably store them faster than NVLink takes them, as long as a copy takes.)
Assumptions, beside the constants below: slabs along the first axis; launches as fast for each cell
as on one GPU; GPUs of equal speed; faces inside a host through NVLink, and between hosts through
one network card a GPU without a copy through the host's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

COPY_SECONDS, COPY_RATE = 1.9e-6, 396e9
"""A peer copy on NVLink: latency, and bytes a second (two H100s, 4 KB to 256 MB)."""

MEETING_SECONDS = 20e-6
"""
GPUs wait for each other, in a graph: an exchange of 1 MB took 24 us of 16 launches of j2d5pt on
2048 x 2048 cells of two H200s.
"""

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
    gpts_per_s: float
    """Measured on one H200."""
    domain: tuple[int, ...]
    """Of one GPU in weak scaling; strong scaling divides a domain twice as long."""


PROGRAMS = [
    Modelled("j2d5pt f32", 4, 1, 12, 5, 4229.0, (8192, 16384)),
    Modelled("j3d7pt f32", 4, 1, 6, 1, 1494.5, (512, 1024, 1024)),
]


def launch_seconds(program: Modelled, planes: float, gpus: int) -> float:
    """The seconds of a launch and its share of an exchange, with `planes` planes on each GPU."""
    area, zone = prod(program.domain[1:]), program.launches * program.depth + 1
    faces = 0 if gpus == 1 else 1 if gpus == 2 else 2
    computed = planes + faces * (zone - 1) * program.radius
    seconds = computed * area * program.depth / (program.gpts_per_s * 1e9)
    size = zone * program.radius * area * program.cell_bytes
    crossed = 1 if gpus > GPUS_OF_A_HOST else 0
    exchange = (faces - crossed) * (COPY_SECONDS + size / COPY_RATE)
    # A part at the end of a host has one face on the network, and all wait for it in turn.
    exchange += crossed * (NETWORK_SECONDS + size / NETWORK_RATE)
    exchange += MEETING_SECONDS if faces else 0.0
    return seconds + exchange / program.launches


def rows() -> Iterator[str]:
    """The lines of a table: weak efficiency and strong speed-up."""
    yield "| program | GPUs | weak efficiency | strong speed-up |"
    yield "|---|---|---|---|"
    for program in PROGRAMS:
        planes = program.domain[0]
        for gpus in (2, 4, 8, 1024):
            weak = launch_seconds(program, planes, 1) / launch_seconds(program, planes, gpus)
            whole = 4 * planes if gpus <= GPUS_OF_A_HOST else 1024 * planes // 4
            alone = launch_seconds(program, whole, 1)
            strong = alone / launch_seconds(program, whole / gpus, gpus)
            yield f"| {program.name} | {gpus} | {weak:.3f} | {strong:.4g} |"


def main() -> None:
    """Print the table."""
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
