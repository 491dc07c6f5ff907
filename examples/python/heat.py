"""Heat in a plate: explicit Euler steps; the rim keeps its temperature."""

import numpy as np

import timetile

STEPS, NUMBERS = 2000, {"k": 0.2}


@timetile.stencil
def heat(u: timetile.Field, k: timetile.Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def start(size: int) -> dict[str, np.ndarray]:
    """A cold plate with a hot edge and a hot disc."""
    y, x = np.mgrid[:size, :size] / size
    plate = np.where(np.hypot(y - 0.6, x - 0.4) < 0.2, 1.0, 0.0)
    plate[0, :] = 1.0
    return {"u": plate}


if __name__ == "__main__":
    for name, array in heat.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
