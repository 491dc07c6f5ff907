"""An acoustic wave in two media, second order in time, with a sponge at the rim for absorption."""

import numpy as np

import timetile

STEPS = 260
NUMBERS: dict[str, float] = {}


@timetile.stencil
def acoustic(p: timetile.Field, m: timetile.Field, sponge: timetile.Field):
    lap = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p[0, 0]
    s = sponge[0, 0]
    p.next = (2 * p[0, 0] - (1 - s) * p.prev[0, 0] + m[0, 0] * lap) / (1 + s)


def start(size: int) -> dict[str, np.ndarray]:
    """A pulse; m is (c dt / h)^2, larger below; the sponge gets stronger towards the rim."""
    y, x = np.mgrid[:size, :size] / size
    pulse = np.exp(-900 * ((y - 0.4) ** 2 + (x - 0.45) ** 2))
    medium = np.where(y + 0.2 * x > 0.7, 0.45, 0.12)
    depth = np.maximum(0.12 - np.minimum(np.minimum(y, 1 - y), np.minimum(x, 1 - x)), 0)
    return {"p": pulse, "m": medium, "sponge": 15 * depth**2}


if __name__ == "__main__":
    for name, array in acoustic.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
