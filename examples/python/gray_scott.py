"""Gray-Scott: two chemicals that diffuse and react, and make patterns."""

import numpy as np

import timetile
from timetile import Field, Scalar, Value

STEPS, NUMBERS = 6000, {"feed": 0.037, "kill": 0.06}


def laplacian(w: Field) -> Value:
    return w[-1, 0] + w[1, 0] + w[0, -1] + w[0, 1] - 4 * w[0, 0]


@timetile.stencil
def gray_scott(u: Field, v: Field, feed: Scalar, kill: Scalar):
    reaction = u[0, 0] * v[0, 0] * v[0, 0]
    u.next = u[0, 0] + 0.16 * laplacian(u) - reaction + feed * (1 - u[0, 0])
    v.next = v[0, 0] + 0.08 * laplacian(v) + reaction - (feed + kill) * v[0, 0]


def start(size: int) -> dict[str, np.ndarray]:
    """Food everywhere, and seeds at random."""
    u, v = np.ones((size, size)), np.zeros((size, size))
    for y, x in np.random.default_rng(0).integers(3, size - 6, (size // 12, 2)):
        u[y : y + 4, x : x + 4], v[y : y + 4, x : x + 4] = 0.5, 0.25
    return {"u": u, "v": v}


if __name__ == "__main__":
    for name, array in gray_scott.advance(start(200), steps=STEPS, **NUMBERS).items():
        print(f"{name}: from {array.min():.6g} to {array.max():.6g}")
