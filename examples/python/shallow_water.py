"""Shallow water: height and momentum in two dimensions, by the method of Lax and Friedrichs."""

import numpy as np

import timetile
from timetile import Field, Scalar

STEPS, NUMBERS = 150, {"c": 0.2}


@timetile.stencil
def shallow_water(h: Field, p: Field, q: Field, c: Scalar):
    def fluxes(i: int, j: int):
        height, x, y = h[i, j], p[i, j], q[i, j]
        pressure = 0.5 * height * height
        return (
            (height, x, y),
            (x, x * x / height + pressure, x * y / height),
            (y, x * y / height, y * y / height + pressure),
        )

    (up, fx_up, _), (down, fx_down, _) = fluxes(-1, 0), fluxes(1, 0)
    (left, _, fy_left), (right, _, fy_right) = fluxes(0, -1), fluxes(0, 1)
    for k, field in enumerate((h, p, q)):
        mean = 0.25 * (up[k] + down[k] + left[k] + right[k])
        field.next = mean - c * (fx_down[k] - fx_up[k] + fy_right[k] - fy_left[k])


def start(size: int) -> dict[str, np.ndarray]:
    """A column of water at rest in a shallow basin."""
    y, x = np.mgrid[:size, :size] / size
    column = 1 + 0.5 * np.exp(-300 * ((y - 0.4) ** 2 + (x - 0.5) ** 2))
    return {"h": column, "p": np.zeros((size, size)), "q": np.zeros((size, size))}


if __name__ == "__main__":
    for name, array in shallow_water.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
