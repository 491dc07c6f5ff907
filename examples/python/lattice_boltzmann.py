"""Flow around a cylinder: a lattice Boltzmann step with nine velocities (D2Q9)."""

import numpy as np

import timetile
from timetile import Field, Scalar, where

STEPS, NUMBERS = 4000, {"omega": 1.7}
WAYS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
WEIGHTS = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
BACK = (0, 3, 4, 1, 2, 7, 8, 5, 6)


@timetile.stencil
def lattice_boltzmann(f0: Field, f1: Field, f2: Field, f3: Field, f4: Field, f5: Field, f6: Field,
                      f7: Field, f8: Field, solid: Field, omega: Scalar):  # fmt: skip
    f = (f0, f1, f2, f3, f4, f5, f6, f7, f8)
    g = [fk[-y, -x] for fk, (y, x) in zip(f, WAYS)]  # arrivals from the neighbours
    rho = g[0] + g[1] + g[2] + g[3] + g[4] + g[5] + g[6] + g[7] + g[8]
    v = (g[2] - g[4] + g[5] + g[6] - g[7] - g[8]) / rho
    u = (g[1] - g[3] + g[5] - g[6] - g[7] + g[8]) / rho
    for k, (y, x) in enumerate(WAYS):
        along = 3 * (y * v + x * u)
        rest = WEIGHTS[k] * rho * (1 + along + 0.5 * along * along - 1.5 * (u * u + v * v))
        f[k].next = where(solid[0, 0] > 0, g[BACK[k]], g[k] + omega * (rest - g[k]))


def start(size: int) -> dict[str, np.ndarray]:
    """A wind along the rows, kept by the rim, and a cylinder a little off the middle."""
    y, x = np.mgrid[:size, : 2 * size] / size
    along = [3 * 0.1 * ahead for _, ahead in WAYS]
    fluid = [np.full(y.shape, w * (1 + a + a * a / 2 - 0.015)) for w, a in zip(WEIGHTS, along)]
    state = {f"f{k}": field for k, field in enumerate(fluid)}
    return {**state, "solid": np.where(np.hypot(y - 0.51, x - 0.4) < 0.09, 1.0, 0.0)}


if __name__ == "__main__":
    for name, array in lattice_boltzmann.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
