"""
A model of weak and strong scaling on many GPUs, from constants measured on two.

    python benchmarks/several_gpus_model.py

A launch of D steps on a part of n planes computes n + 2 (Z - 1) r planes, for ghosts of Z steps of
radius r on both faces. Then both faces are pulled, one after the other, and the next launch starts
behind: nothing overlaps. Assumptions, beside the constants below: slabs along the first axis;
launches as fast for each cell as on one GPU; faces inside a host through NVLink, and between hosts
through one network card a GPU without a copy through the host's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

COPY_SECONDS, COPY_RATE = 2.3e-6, 395e9
"""A peer copy on NVLink: latency, and bytes a second (two H100s, 4 KB to 256 MB)."""

EVENT_SECONDS = 3e-6
"""From the end of a launch to the start of work that waits for it on another GPU: assumed."""

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
    gpts_per_s: float
    """Measured on one H200."""
    domain: tuple[int, ...]
    """Of one GPU in weak scaling; strong scaling divides a domain twice as long."""


PROGRAMS = [
    Modelled("j2d5pt f32", 4, 1, 12, 4087.0, (8192, 16384)),
    Modelled("j3d7pt f32", 4, 1, 5, 1439.0, (512, 1024, 1024)),
]


def launch_seconds(program: Modelled, planes: float, gpus: int) -> float:
    """The seconds of a launch and an exchange, with `planes` planes on each GPU."""
    area, zone = prod(program.domain[1:]), program.depth + 1
    faces = 0 if gpus == 1 else 1 if gpus == 2 else 2
    computed = planes + faces * (zone - 1) * program.radius
    seconds = computed * area * program.depth / (program.gpts_per_s * 1e9)
    size = zone * program.radius * area * program.cell_bytes
    crossed = 1 if gpus > GPUS_OF_A_HOST else 0
    seconds += (faces - crossed) * (COPY_SECONDS + size / COPY_RATE)
    # A part at the end of a host has one face on the network, and all wait for it in turn.
    seconds += crossed * (NETWORK_SECONDS + size / NETWORK_RATE)
    return seconds + (EVENT_SECONDS if faces else 0.0)


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
