"""Heat in a plate with a hot edge and hot spots, before and after; the program is heat2d.mlir."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import timetile

HERE = Path(__file__).parent
SIZE = 256


def initial_plate() -> np.ndarray:
    """A cold plate with a hot ring and two hot discs; the halo above the first row is hot, too."""
    y, x = np.mgrid[-1 : SIZE + 1, -1 : SIZE + 1]
    plate = np.zeros((SIZE + 2, SIZE + 2))
    distance = np.hypot(y - 140, x - 110)
    plate[(distance > 45) & (distance < 60)] = 1.0
    for row, column, radius in ((90, 205, 22), (205, 205, 14)):
        plate[np.hypot(y - row, x - column) < radius] = 1.0
    plate[0, :] = 1.0
    return plate


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--executor", choices=("gpu", "cpu", "simt"))
    options.add_argument("--out", type=Path, default=HERE / "pictures" / "heat2d.png")
    chosen = options.parse_args()

    program = timetile.compile(HERE / "heat2d.mlir", executor=chosen.executor)
    # Both buffers: the cells outside the plate are read from both buffers in turn.
    before = initial_plate()
    buffers = (before.copy(), before.copy())
    result = program(*buffers, 0, steps=chosen.steps)
    after = buffers[result.latest[0][0]]
    print(f"{chosen.steps} steps, {result.gcells_per_second:.3g} GCells/s")

    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    for axis, plate, title in zip(axes, (before, after), ("start", f"{chosen.steps} steps")):
        image = axis.imshow(plate, cmap="inferno", vmin=0, vmax=1)
        axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="temperature", shrink=0.8)
    figure.savefig(chosen.out, dpi=100)


if __name__ == "__main__":
    main()
