"""The programs of cpu.py: text at the measured size, and one step in NumPy's slices."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXAMPLES = Path(__file__).parent.parent / "examples"

Array = NDArray[Any]
Step = Callable[[list[Array], tuple[float, ...]], list[Array]]
"""One step on the fields, with the scalars; returns the fields in the new order."""


def heat2d(fields: list[Array], scalars: tuple[float, ...]) -> list[Array]:
    """Five points."""
    u, v = fields
    v[1:-1, 1:-1] = 0.2 * (u[:-2, 1:-1] + u[1:-1, :-2] + u[1:-1, 1:-1] + u[1:-1, 2:] + u[2:, 1:-1])
    return [v, u]


def heat3d(fields: list[Array], scalars: tuple[float, ...]) -> list[Array]:
    """Seven points."""
    u, v = fields
    around = u[:-2, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, :-2]
    around = around + u[1:-1, 1:-1, 2:] + u[1:-1, 2:, 1:-1] + u[2:, 1:-1, 1:-1]
    v[1:-1, 1:-1, 1:-1] = 0.125 * around + 0.25 * u[1:-1, 1:-1, 1:-1]
    return [v, u]


def gray_scott(fields: list[Array], scalars: tuple[float, ...]) -> list[Array]:
    """Two reacting fields."""
    u, v, u_next, v_next = fields
    du, dv, feed, kill = map(np.float32, scalars)
    x, y = u[1:-1, 1:-1], v[1:-1, 1:-1]

    def spread(a: Array) -> Array:
        around = a[:-2, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1]
        return around - np.float32(4) * a[1:-1, 1:-1]

    reaction = x * y * y
    u_next[1:-1, 1:-1] = x + du * spread(u) - reaction + feed * (np.float32(1) - x)
    v_next[1:-1, 1:-1] = y + dv * spread(v) + reaction - (feed + kill) * y
    return [u_next, v_next, u, v]


def star25(fields: list[Array], scalars: tuple[float, ...]) -> list[Array]:
    """Twenty-five points, second order in time."""
    now, following, before, medium = fields
    inner = (slice(4, -4),) * 3
    total = np.float32(-205 / 24) * now[inner]
    for distance, weight in enumerate((8 / 5, -1 / 5, 8 / 315, -1 / 560), start=1):
        ends: list[Array] = []
        for axis in range(3):
            for step in (-distance, distance):
                end = now.shape[axis] - 4 + step
                at = tuple(slice(4 + step, end) if k == axis else inner[k] for k in range(3))
                ends.append(now[at])
        shell = reduce(np.add, ends)
        total += np.float32(weight) * shell
    following[inner] = np.float32(2) * now[inner] - before[inner] + medium[inner] * total
    return [following, before, now, medium]


@dataclass(frozen=True)
class CpuProgram:
    """
    A measured program: an example at another size. `fields` of `dtype` with a halo of `halo` cells
    are the arguments, then the scalars.
    """

    name: str
    dtype: str
    domain: tuple[int, ...]
    halo: int
    fields: int
    step: Step
    scalars: tuple[float, ...] = ()

    @property
    def kind(self) -> type[np.float64] | type[np.float32]:
        return np.float64 if self.dtype == "f64" else np.float32

    def text(self) -> str:
        """The example with another domain."""
        text = (EXAMPLES / f"{self.name}.mlir").read_text()
        side, halo = self.domain[0], self.halo
        text = re.sub(rf"\[-{halo},\d+\]", f"[-{halo},{side + halo}]", text)
        rank = len(self.domain)
        zeros, sides = ", ".join(["0"] * rank), ", ".join([str(side)] * rank)
        return re.sub(rf"<\[{zeros}\], \[[\d, ]+\]>", f"<[{zeros}], [{sides}]>", text)

    def arrays(self) -> list[Array]:
        """Numbers between 0 and 1, with every page written."""
        rng = np.random.default_rng(1)
        shape = [side + 2 * self.halo for side in self.domain]
        return [rng.random(shape, dtype=self.kind) * self.kind(0.1) for _ in range(self.fields)]


PROGRAMS = (
    CpuProgram("heat2d", "f64", (2048, 2048), 1, 2, heat2d),
    CpuProgram("heat3d", "f64", (256, 256, 256), 1, 2, heat3d),
    CpuProgram("gray_scott", "f32", (1024, 1024), 1, 4, gray_scott, (0.16, 0.08, 0.06, 0.062)),
    CpuProgram("star25", "f32", (256, 256, 256), 4, 4, star25),
)
