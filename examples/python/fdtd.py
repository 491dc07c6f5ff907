"""
Maxwell's equations in a plane (Yee's scheme): the electric field reads the new magnetic field.
"""

import numpy as np

import timetile
from timetile import Field

STEPS = 220
NUMBERS: dict[str, float] = {}


@timetile.stencil
def fdtd(ez: Field, hx: Field, hy: Field, eps: Field):
    hx.next = hx[0, 0] - 0.5 * (ez[0, 1] - ez[0, 0])
    hy.next = hy[0, 0] + 0.5 * (ez[1, 0] - ez[0, 0])
    curl = hy.next[0, 0] - hy.next[-1, 0] - hx.next[0, 0] + hx.next[0, -1]
    ez.next[1:-1, 1:-1] = ez[0, 0] + 0.5 * curl / eps[0, 0]


def start(size: int) -> dict[str, np.ndarray]:
    """A pulse beside a disc of glass, between conducting walls (ez stays 0 at the walls)."""
    y, x = np.mgrid[:size, :size] / size
    pulse = np.exp(-2000 * ((y - 0.5) ** 2 + (x - 0.25) ** 2))
    pulse[[0, -1], :], pulse[:, [0, -1]] = 0, 0
    glass = np.where(np.hypot(y - 0.5, x - 0.65) < 0.15, 4.0, 1.0)
    return {"ez": pulse, "hx": np.zeros((size, size)), "hy": np.zeros((size, size)), "eps": glass}


if __name__ == "__main__":
    for name, array in fdtd.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
