"""
A shot in layered ground, by the 25-point stencil of seismic imaging; the program is star25.mlir.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import timetile

HERE = Path(__file__).parent
SIZE, HALO = 80, 4
COURANT = 0.25
"""Cells passed by a wave in one step for velocity 1; times 1.7 the number stays below 0.45."""


def axes_of_cells() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coordinates z (downwards), y and x of every cell, halo included."""
    z, y, x = np.mgrid[(slice(-HALO, SIZE + HALO),) * 3]
    return z, y, x


def velocity() -> np.ndarray:
    """Three layers, each faster than the layer above; the interfaces are bent."""
    z, y, x = axes_of_cells()
    speed = np.ones(z.shape)
    speed[z > 32 + 3 * np.sin(x / 9)] = 1.35
    speed[z > 55 - 0.15 * y] = 1.7
    return speed


def shot() -> np.ndarray:
    """A small round bump of pressure, at rest, near the surface."""
    z, y, x = axes_of_cells()
    return np.exp(-((z - 14) ** 2 + (y - 40) ** 2 + (x - 34) ** 2) / (2 * 2.2**2))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=120)
    options.add_argument("--executor", choices=("gpu", "cpu", "simt"))
    options.add_argument("--out", type=Path, default=HERE / "pictures" / "star25.png")
    chosen = options.parse_args()

    program = timetile.compile(HERE / "star25.mlir", executor=chosen.executor)
    speed = velocity()
    inside = (slice(HALO, -HALO),) * 3
    start = np.zeros(speed.shape, dtype=np.float32)
    start[inside] = shot()[inside]
    fields = [start, np.zeros_like(start), start.copy()]
    medium = ((COURANT * speed) ** 2).astype(np.float32)
    result = program(*fields, medium, 0, steps=chosen.steps)
    pressure = fields[result.latest[0][0]][inside]
    print(f"{chosen.steps} steps, {result.gcells_per_second:.3g} GCells/s")

    slices = {
        "y = 40": (pressure[:, 40], speed[inside][:, 40]),
        "x = 34": (pressure[:, :, 34], speed[inside][:, :, 34]),
        "z = 32": (pressure[32], speed[inside][32]),
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
    limit = max(float(np.abs(pressure).max()) / 2, 1e-6)
    for axis, (title, (plane, layers)) in zip(axes, slices.items()):
        axis.imshow(plane, cmap="RdBu", vmin=-limit, vmax=limit)
        if layers.min() < layers.max():
            axis.contour(layers, levels=[1.2, 1.5], colors="black", linewidths=0.8)
        axis.set(title=title, xticks=[], yticks=[])
    figure.suptitle(f"pressure after {chosen.steps} steps, three slices")
    figure.savefig(chosen.out, dpi=90)


if __name__ == "__main__":
    main()
