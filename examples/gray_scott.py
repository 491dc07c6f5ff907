"""
Patterns of two chemicals (Gray-Scott), with two sets of rates; the program is gray_scott.mlir.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import timetile

HERE = Path(__file__).parent
SIZE = 192
RATES = {
    "coral": {"du": 0.16, "dv": 0.08, "feed": 0.0545, "kill": 0.062},
    "spots": {"du": 0.16, "dv": 0.08, "feed": 0.030, "kill": 0.0625},
}


def initial_solution() -> tuple[np.ndarray, np.ndarray]:
    """
    Fresh solution (u = 1, v = 0) with reacting squares, between walls that take up both chemicals.
    """
    random = np.random.default_rng(7)
    u = np.ones((SIZE + 2, SIZE + 2), dtype=np.float32)
    v = np.zeros_like(u)
    for row, column in random.integers(10, SIZE - 20, size=(24, 2)):
        u[row : row + 10, column : column + 10] = 0.5
        v[row : row + 10, column : column + 10] = 0.25
    for wall in (u[0], u[-1], u[:, 0], u[:, -1]):
        wall[:] = 0.0
    return u, v


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=2400)
    options.add_argument("--executor", choices=("gpu", "cpu", "simt"))
    options.add_argument("--out", type=Path, default=HERE / "pictures" / "gray_scott.png")
    chosen = options.parse_args()

    # The rates are arguments: one compilation serves both patterns.
    program = timetile.compile(HERE / "gray_scott.mlir", executor=chosen.executor)
    colours = plt.get_cmap("magma", 16)
    figure, axes = plt.subplots(1, len(RATES), figsize=(8, 4.4), layout="constrained")
    for axis, (name, rates) in zip(axes, RATES.items()):
        u, v = initial_solution()
        fields = [u, v, u.copy(), v.copy()]
        result = program(*fields, *rates.values(), 0, steps=chosen.steps)
        print(f"{name}: {chosen.steps} steps, {result.gcells_per_second:.3g} GCells/s")
        _, latest_v = result.latest[0]
        axis.imshow(fields[latest_v], cmap=colours, vmin=0, vmax=0.4, interpolation="nearest")
        title = f"{name}: feed {rates['feed']:g}, kill {rates['kill']:g}"
        axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(chosen.out, dpi=90)


if __name__ == "__main__":
    main()
