"""Burgers' equation in two dimensions: velocity that carries itself, and viscosity."""

import numpy as np

import timetile
from timetile import Field, Scalar

STEPS, NUMBERS = 300, {"c": 0.2, "nu": 0.05}


@timetile.stencil
def burgers(u: Field, v: Field, c: Scalar, nu: Scalar):
    for w in (u, v):
        here = w[0, 0]
        carried = u[0, 0] * (here - w[-1, 0]) + v[0, 0] * (here - w[0, -1])
        spread = w[-1, 0] + w[1, 0] + w[0, -1] + w[0, 1] - 4 * here
        w.next = here - c * carried + nu * spread


def start(size: int) -> dict[str, np.ndarray]:
    """A fast square in slow fluid."""
    field = np.full((size, size), 0.2)
    field[size // 8 : size // 2, size // 8 : size // 2] = 1.0
    return {"u": field, "v": field.copy()}


if __name__ == "__main__":
    for name, array in burgers.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
