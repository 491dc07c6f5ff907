"""A sound pulse that meets a slow lens and a fast layer; the program is wave2d.mlir."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import timetile

HERE = Path(__file__).parent
SIZE = 384
COURANT = 0.45
"""Cells passed by a wave in one step for velocity 1; stable below 1 / sqrt(2)."""


def velocity() -> np.ndarray:
    """1 nearly everywhere, 0.55 in a disc (a lens), 1.4 below an inclined interface."""
    y, x = np.mgrid[-1 : SIZE + 1, -1 : SIZE + 1]
    speed = np.ones((SIZE + 2, SIZE + 2))
    speed[np.hypot(y - 175, x - 225) < 55] = 0.55
    speed[y > 300 - 0.12 * x] = 1.4
    return speed


def pulse() -> np.ndarray:
    """A round bump of pressure, at rest."""
    y, x = np.mgrid[-1 : SIZE + 1, -1 : SIZE + 1]
    return np.exp(-((y - 120) ** 2 + (x - 95) ** 2) / (2 * 5.0**2))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=420)
    options.add_argument("--executor", choices=("gpu", "cpu", "simt"))
    options.add_argument("--out", type=Path, default=HERE / "pictures" / "wave2d.png")
    chosen = options.parse_args()

    program = timetile.compile(HERE / "wave2d.mlir", executor=chosen.executor)
    speed = velocity()
    # At rest: the pressure of the step before is the same.
    start = pulse().astype(np.float32)
    fields = [start, np.zeros_like(start), start.copy()]
    medium = ((COURANT * speed) ** 2).astype(np.float32)
    result = program(*fields, medium, 0, steps=chosen.steps)
    pressure = fields[result.latest[0][0]]
    print(f"{chosen.steps} steps, {result.gcells_per_second:.3g} GCells/s")

    figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
    limit = max(float(np.abs(pressure).max()) / 2, 1e-6)
    axis.imshow(pressure, cmap="RdBu", vmin=-limit, vmax=limit)
    axis.contour(speed, levels=[0.8, 1.2], colors="black", linewidths=0.8)
    axis.set(title=f"pressure after {chosen.steps} steps", xticks=[], yticks=[])
    figure.savefig(chosen.out, dpi=90)


if __name__ == "__main__":
    main()
