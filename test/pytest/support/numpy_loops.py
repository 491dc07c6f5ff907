"""The steps of examples/python as NumPy loops with slices: nothing of timetile is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, Any]
INNER = (slice(1, -1), slice(1, -1))


def at(array: Any, i: int, j: int) -> Any:
    """The inner cells, shifted by (i, j)."""
    rows, columns = array.shape
    return array[1 + i : rows - 1 + i, 1 + j : columns - 1 + j]


def chosen(
    where: NDArray[np.bool_], then: NDArray[np.float64], otherwise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Cells of the first array if a condition holds, otherwise of the second array."""
    return np.where(where, then, otherwise)


def with_inner(array: Any, values: Any) -> Any:
    """A copy with other inner cells."""
    changed = array.copy()
    changed[INNER] = values
    return changed


def laplacian(w: Any) -> Any:
    return at(w, -1, 0) + at(w, 1, 0) + at(w, 0, -1) + at(w, 0, 1) - 4 * at(w, 0, 0)


def heat(s: State, k: float) -> State:
    return {"u": with_inner(s["u"], at(s["u"], 0, 0) + k * laplacian(s["u"]))}


def gray_scott(s: State, feed: Any, kill: Any) -> State:
    u, v = s["u"], s["v"]
    a, b = at(u, 0, 0), at(v, 0, 0)
    reaction = a * b * b
    return {
        "u": with_inner(u, a + 0.16 * laplacian(u) - reaction + feed * (1 - a)),
        "v": with_inner(v, b + 0.08 * laplacian(v) + reaction - (feed + kill) * b),
    }


def acoustic(s: State) -> State:
    p, before, sponge = s["p"], s["p.prev"], at(s["sponge"], 0, 0)
    waves = 2 * at(p, 0, 0) - (1 - sponge) * at(before, 0, 0) + at(s["m"], 0, 0) * laplacian(p)
    new = with_inner(p, waves / (1 + sponge))
    return {**s, "p": new, "p.prev": p}


def shallow_water(s: State, c: float) -> State:
    def shifted(i: int, j: int) -> Any:
        h, x, y = (at(s[name], i, j) for name in "hpq")
        pressure = 0.5 * h * h
        along = (x, x * x / h + pressure, x * y / h)
        return (h, x, y), along, (y, x * y / h, y * y / h + pressure)

    up, down, left, right = shifted(-1, 0), shifted(1, 0), shifted(0, -1), shifted(0, 1)
    new: State = {}
    for k, name in enumerate("hpq"):
        mean = 0.25 * (up[0][k] + down[0][k] + left[0][k] + right[0][k])
        flux = down[1][k] - up[1][k] + right[2][k] - left[2][k]
        new[name] = with_inner(s[name], mean - c * flux)
    return new


def burgers(s: State, c: float, nu: float) -> State:
    u, v = at(s["u"], 0, 0), at(s["v"], 0, 0)
    new: State = {}
    for name, w in s.items():
        here = at(w, 0, 0)
        carried = u * (here - at(w, -1, 0)) + v * (here - at(w, 0, -1))
        new[name] = with_inner(w, here - c * carried + nu * laplacian(w))
    return new


def advection(s: State) -> State:
    q, a, b = s["q"], at(s["a"], 0, 0), at(s["b"], 0, 0)
    here = at(q, 0, 0)
    along_0 = chosen(a > 0, here - at(q, -1, 0), at(q, 1, 0) - here)
    along_1 = chosen(b > 0, here - at(q, 0, -1), at(q, 0, 1) - here)
    return {**s, "q": with_inner(q, here - a * along_0 - b * along_1)}


def fdtd(s: State) -> State:
    ez, hx, hy = s["ez"].copy(), s["hx"].copy(), s["hy"].copy()
    hx[:, :-1] = hx[:, :-1] - 0.5 * (ez[:, 1:] - ez[:, :-1])
    hy[:-1, :] = hy[:-1, :] + 0.5 * (ez[1:, :] - ez[:-1, :])
    curl = at(hy, 0, 0) - at(hy, -1, 0) - at(hx, 0, 0) + at(hx, 0, -1)
    return {
        **s,
        "hx": hx,
        "hy": hy,
        "ez": with_inner(ez, at(ez, 0, 0) + 0.5 * curl / at(s["eps"], 0, 0)),
    }


def lattice_boltzmann(s: State, omega: float) -> State:
    ways = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
    weights = [4 / 9] + 4 * [1 / 9] + 4 * [1 / 36]
    g = [at(s[f"f{k}"], -y, -x) for k, (y, x) in enumerate(ways)]
    rho = g[0] + g[1] + g[2] + g[3] + g[4] + g[5] + g[6] + g[7] + g[8]
    v = (g[2] - g[4] + g[5] + g[6] - g[7] - g[8]) / rho
    u = (g[1] - g[3] + g[5] - g[6] - g[7] + g[8]) / rho
    new = dict(s)
    for k, (y, x) in enumerate(ways):
        along = 3 * (y * v + x * u)
        rest = weights[k] * rho * (1 + along + 0.5 * along * along - 1.5 * (u * u + v * v))
        back = ways.index((-y, -x))
        inside = chosen(at(s["solid"], 0, 0) > 0, g[back], g[k] + omega * (rest - g[k]))
        new[f"f{k}"] = with_inner(s[f"f{k}"], inside)
    return new


LOOPS: dict[str, Callable[..., State]] = {
    loop.__name__: loop
    for loop in (
        heat,
        gray_scott,
        acoustic,
        shallow_water,
        burgers,
        advection,
        fdtd,
        lattice_boltzmann,
    )
}
