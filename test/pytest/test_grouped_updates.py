"""Steps with layers whose updates change places: bits of the order in which people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field
from timetile.frontend.model import Model
from timetile.passes.tiling.step_parts import largest_parts
from timetile.runtime.kernels.loops import loops_of

LOW, HIGH = slice(1, 5), slice(-5, -1)


@timetile.stencil
def layered(u: Field, v: Field, f: Field, g: Field):
    """Two fields with layers at the ends of both axes, and a memory for each field."""
    u.next[1:-1, 1:-1] = u[0, 0] + 0.2 * (v[1, 0] - v[0, 0])
    for rows in (LOW, HIGH):
        f.next[rows, 1:-1] = 0.9 * f[0, 0] + 0.1 * (v[1, 0] - v[0, 0])
        u.next[rows, 1:-1] = u.next[0, 0] + f.next[0, 0]
    v.next[1:-1, 1:-1] = v[0, 0] + 0.2 * (u.next[0, 0] - u.next[0, -1])
    for columns in (LOW, HIGH):
        g.next[1:-1, columns] = 0.9 * g[0, 0] + 0.1 * (u.next[0, 0] - u.next[0, -1])
        v.next[1:-1, columns] = v.next[0, 0] + g.next[0, 0]


@timetile.stencil
def twice(u: Field, v: Field, f: Field, g: Field):
    """Corners are changed by the layers of both axes, in the program's order."""
    u.next[1:-1, 1:-1] = u[0, 0] + 0.2 * (v[1, 0] - v[0, 0])
    u.next[LOW, 1:-1] = 0.5 * u.next[0, 0] + f[0, 0]
    u.next[1:-1, LOW] = 0.25 * u.next[0, 1] + g[0, 0]
    v.next[1:-1, 1:-1] = v[0, 0] - 0.2 * v[0, 1]
    v.next[LOW, 1:-1] = u.next[1, 0]


def in_numpy(name: str, state: dict[str, Any]) -> dict[str, Any]:
    """A step of a model, an assignment at a time."""
    inner, u, v, f, g = (slice(1, -1),) * 2, *(state[k].copy() for k in "uvfg")
    old = state
    down = np.zeros_like(u)
    down[:-1] = old["v"][1:] - old["v"][:-1]
    u[inner] = (old["u"] + 0.2 * down)[inner]
    if name == "twice":
        u[LOW, 1:-1] = (0.5 * u + f)[LOW, 1:-1]
        u[1:-1, LOW] = 0.25 * u[1:-1, 2:6] + g[1:-1, LOW]
        v[inner] = old["v"][inner] - 0.2 * old["v"][1:-1, 2:]
        v[LOW, 1:-1] = u[2:6, 1:-1]
        return {"u": u, "v": v, "f": f, "g": g}
    for rows in (LOW, HIGH):
        f[rows, 1:-1] = (0.9 * old["f"] + 0.1 * down)[rows, 1:-1]
        u[rows, 1:-1] = (u + f)[rows, 1:-1]
    beside = np.zeros_like(u)
    beside[:, 1:] = u[:, 1:] - u[:, :-1]
    v[inner] = (old["v"] + 0.2 * beside)[inner]
    for columns in (LOW, HIGH):
        g[1:-1, columns] = (0.9 * old["g"] + 0.1 * beside)[1:-1, columns]
        v[1:-1, columns] = (v + g)[1:-1, columns]
    return {"u": u, "v": v, "f": f, "g": g}


@pytest.mark.parametrize(("name", "model"), [("layered", layered), ("twice", twice)])
def test_layers_keep_the_bits_of_the_programs_order(name: str, model: Model):
    drawn = np.random.default_rng(3)
    state: dict[str, Any] = {k: drawn.random((19, 37)) for k in "uvfg"}
    expected = state
    for _ in range(3):
        expected = in_numpy(name, expected)
    for executor in ("cpu", "numpy"):
        done = model.on(executor=executor, fp_contract="off", cache=False).advance(state, steps=3)
        for field, cells in expected.items():
            assert np.array_equal(done[field], cells), (executor, field)


def test_updates_of_one_box_share_a_kernel():
    """Three kernels for rows, three for columns, and none for copies of old memories."""
    program = timetile.compile(layered.module((200, 300), "float64"), executor="numpy", cache=False)
    (loop,) = loops_of(program.kernels.source)
    assert len(loop.updates) == 10
    assert len(largest_parts(loop)) + 1 == 6
