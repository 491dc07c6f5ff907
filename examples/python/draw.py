"""Runs all examples of the folder, or the named examples, and draws the final fields."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SHOWN = {
    "heat": ("u", "inferno"),
    "gray_scott": ("v", "viridis"),
    "acoustic": ("p", "RdBu_r"),
    "shallow_water": ("h", "Blues_r"),
    "burgers": ("u", "magma"),
    "advection": ("q", "viridis"),
    "fdtd": ("ez", "RdBu_r"),
    "lattice_boltzmann": ("speed", "magma"),
}
"""The drawn field of each example, and the colours."""

plt: Any = import_module("matplotlib.pyplot")

FOLDER = Path(__file__).parents[1] / "pictures" / "python"


def speed(state: dict[str, np.ndarray]) -> np.ndarray:
    """The speed of the fluid, 0 outside."""
    f = [state[f"f{k}"] for k in range(9)]
    rows = f[2] - f[4] + f[5] + f[6] - f[7] - f[8]
    columns = f[1] - f[3] + f[5] - f[6] - f[7] + f[8]
    return np.where(state["solid"] > 0, 0, np.hypot(rows, columns) / sum(f))


def picture(name: str, size: int, steps: int | None, executor: Any, out: Path) -> None:
    """Draw one example, at the beginning and at the end."""
    example = import_module(name)
    model = getattr(example, name).on(executor=executor)
    before = example.start(size)
    count = example.STEPS if steps is None else steps
    after = model.advance(before, steps=count, **example.NUMBERS)
    field, colours = SHOWN[name]
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained")
    for axis, state, title in zip(axes, (before, after), ("start", f"{count} steps")):
        cells = speed(state) if field == "speed" else state[field]
        limit = np.abs(cells).max()
        around_zero = {"vmin": -limit, "vmax": limit} if colours == "RdBu_r" else {}
        image = axis.imshow(cells, cmap=colours, **around_zero)
        axis.set(title=title, xticks=[], yticks=[])
        figure.colorbar(image, ax=axis, shrink=0.7)
    figure.savefig(out / f"{name}.png", dpi=80)
    plt.close(figure)
    print(f"{name}: {count} steps")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", choices=[[], *SHOWN], help="all of them by default")
    options.add_argument("--size", type=int, default=200)
    options.add_argument("--steps", type=int)
    options.add_argument("--executor", choices=("gpu", "cpu", "numpy"))
    options.add_argument("--out", type=Path, default=FOLDER)
    chosen = options.parse_args()
    for name in chosen.names or SHOWN:
        picture(name, chosen.size, chosen.steps, chosen.executor, chosen.out)


if __name__ == "__main__":
    main()
