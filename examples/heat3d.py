"""Heat in a cube: a hot ball above a hot floor, in slices; the program is heat3d.mlir."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import timetile

HERE = Path(__file__).parent
SIZE = 64


def initial_cube() -> np.ndarray:
    """A cold cube with a hot ball; of the walls (the halo) the floor is hot."""
    z, y, x = np.mgrid[-1 : SIZE + 1, -1 : SIZE + 1, -1 : SIZE + 1]
    cube = np.zeros((SIZE + 2,) * 3)
    cube[(z - 40) ** 2 + (y - 30) ** 2 + (x - 38) ** 2 < 12**2] = 1.0
    cube[0] = 1.0
    return cube


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=120)
    options.add_argument("--executor", choices=("gpu", "cpu", "simt"))
    options.add_argument("--out", type=Path, default=HERE / "pictures" / "heat3d.png")
    chosen = options.parse_args()

    program = timetile.compile(HERE / "heat3d.mlir", executor=chosen.executor)
    before = initial_cube()
    buffers = (before.copy(), before.copy())
    result = program(*buffers, 0, steps=chosen.steps)
    after = buffers[result.latest[0][0]]
    print(f"{chosen.steps} steps, {result.gcells_per_second:.3g} GCells/s")

    slices = {
        "start, y = 30": before[:, 31],
        f"{chosen.steps} steps, y = 30": after[:, 31],
        f"{chosen.steps} steps, z = 40": after[41],
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    for axis, (title, plane) in zip(axes, slices.items()):
        # The first two have z upwards, the floor at the bottom.
        image = axis.imshow(plane, cmap="inferno", vmin=0, vmax=1, origin="lower")
        axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="temperature", shrink=0.8)
    figure.savefig(chosen.out, dpi=100)


if __name__ == "__main__":
    main()
