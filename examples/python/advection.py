"""
A spot carried around by a wind that turns: first order upwind, by the sign of the wind in each
cell.
"""

import numpy as np

import timetile
from timetile import Field, where

STEPS = 300
NUMBERS: dict[str, float] = {}


@timetile.stencil
def advection(q: Field, a: Field, b: Field):
    along_0 = where(a[0, 0] > 0, q[0, 0] - q[-1, 0], q[1, 0] - q[0, 0])
    along_1 = where(b[0, 0] > 0, q[0, 0] - q[0, -1], q[0, 1] - q[0, 0])
    q.next = q[0, 0] - a[0, 0] * along_0 - b[0, 0] * along_1


def start(size: int) -> dict[str, np.ndarray]:
    """A spot, and a wind around the middle; a and b are in cells a step."""
    y, x = np.mgrid[:size, :size] / size - 0.5
    spot = np.exp(-150 * ((y + 0.22) ** 2 + x**2))
    return {"q": spot, "a": -0.9 * x, "b": 0.9 * y}


if __name__ == "__main__":
    for name, array in advection.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
