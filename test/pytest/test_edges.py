"""Boundaries of Python's steps: fields go on beyond their arrays as by `numpy.pad`, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import timetile
from support.padded import EdgeCase
from support.steps import noise
from timetile import Field, Series, value
from timetile.dialects.temporal.boundary import Kind
from timetile.runtime.native.loops import WidenedCode
from timetile.runtime.program.compiled_program import Executor

P, M, R, C = Kind.PERIODIC, Kind.MIRROR, Kind.REFLECT, Kind.CLAMP

CASES = [
    EdgeCase("periodic", ((P, P),)),
    EdgeCase("mirror", ((M, M),), 2),
    EdgeCase("periodic", ((P, P), (P, P))),
    EdgeCase("mirror", ((M, M), (M, M))),
    EdgeCase("reflect", ((R, R), (R, R)), 2),
    EdgeCase(value(0.5), ((0.5, 0.5), (0.5, 0.5))),
    EdgeCase(value("k"), (("k", "k"), ("k", "k"))),
    EdgeCase((("mirror", value(2)), ("reflect", value("k"))), ((M, 2.0), (R, "k"))),
    EdgeCase((("clamp", "mirror"), ("clamp", "reflect")), ((C, M), (C, R)), 2),
    EdgeCase((value(1), (value(2), value(3))), ((1.0, 1.0), (2.0, 3.0))),
    EdgeCase((value("k"), (value(2), "mirror")), (("k", "k"), (2.0, M))),
    EdgeCase((value("k"), value(3)), (("k", "k"), (3.0, 3.0)), 2),
    EdgeCase(("periodic", "mirror", value(-1)), ((P, P), (M, M), (-1.0, -1.0))),
]

SIZES = {1: (23,), 2: (9, 13), 3: (4, 5, 7)}


def check(case: EdgeCase, shape: tuple[int, ...], executor: Executor, steps: int) -> None:
    """Some steps end like the model with numpy.pad."""
    start = noise(*shape)
    model = case.model().on(executor=executor, fp_contract="off", cache=False)
    found = model.advance({"u": start}, steps=steps, k=0.3)["u"]
    assert np.array_equal(found, case.expected(start, steps, 0.3))


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.boundary))
def test_a_field_goes_on_as_by_pad(case: EdgeCase, executor: Executor):
    check(case, SIZES[case.rank], executor, 4)


@pytest.mark.parametrize("case", [c for c in CASES if c.reach == 2], ids=lambda c: str(c.boundary))
def test_a_field_narrower_than_a_read_goes_back_and_forth(case: EdgeCase):
    if "k" not in [side for sides in case.edges for side in sides]:
        check(case, (2, 3)[: case.rank], "cpu", 3)


@pytest.mark.parametrize("executor", ["numpy", "cpu"])
def test_each_field_has_a_boundary_of_its_own(executor: Executor):
    """Pressure with a wall above, velocity kept: each by the sides of its own reads."""

    @timetile.stencil(boundary={"p": ("mirror",), "v": ((value(0), "keep"),)})
    def step(p: Field, v: Field):
        v.next = v[0] - 0.5 * (p[1] - p[0])
        p.next = p[0] - 0.5 * (v.next[0] - v.next[-1])

    p, v = noise(2, 12)
    found = step.on(executor=executor, fp_contract="off", cache=False).advance(
        {"p": p, "v": v}, steps=3
    )
    for _ in range(3):
        v = v - 0.5 * (np.append(p[1:], p[-1]) - p)
        p = p - 0.5 * (v - np.append(0.0, v[:-1]))
    assert np.array_equal(found["p"], p) and np.array_equal(found["v"], v)


def test_a_wave_around_a_torus_keeps_its_sum(monkeypatch: pytest.MonkeyPatch):
    """On the processor, fields go on beyond their ends for two steps at once."""

    @timetile.stencil(boundary="periodic")
    def wave(u: Field, c: Field, f: Series):
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
        u.next = 2 * u[0, 0] - u.prev[0, 0] + (c[0, 0] + f[0]) * around

    runs = list[bool]()

    def pays(code: WidenedCode, steps: int, threads: int) -> bool:
        runs.append(code.made.most == 2)
        return True

    monkeypatch.setattr(WidenedCode, "pays", pays)
    start = {"u": noise(33, 40), "c": np.full((33, 40), 0.25)}
    ends = [
        wave.on(executor=executor, threads=2, cache=False).advance(start, 21, f=0.01 * noise(21))[
            "u"
        ]
        for executor in ("numpy", "cpu")
    ]
    assert runs == [True] and np.array_equal(ends[0], ends[1])
    assert abs(ends[0].sum() - start["u"].sum()) < 1e-11 and not np.array_equal(ends[0], start["u"])


REFUSED: list[tuple[Any, str]] = [
    (
        ("mirror",),
        "the boundary ('mirror',) has 1 entries, and the step has 2 axes; give one for each, in it "
        "a pair for two sides",
    ),
    (
        ("mirror", ("periodic", "keep")),
        "an axis is periodic on both sides or on none, got ('periodic', 'keep')",
    ),
    (
        ("mirror", ("keep", "keep", "keep")),
        "the sides of an axis are a pair, got ('keep', 'keep', 'keep')",
    ),
    ({"v": "mirror"}, "the boundary names v, and the fields of the step are u"),
    (
        value("w"),
        "the boundary's value 'w' is no scalar argument of the step; its scalars are none",
    ),
]


@pytest.mark.parametrize(("boundary", "reason"), REFUSED, ids=str)
def test_an_impossible_boundary_is_refused(boundary: Any, reason: str):
    with pytest.raises(timetile.StencilError) as refused:

        @timetile.stencil(boundary=boundary)
        def step(u: Field):
            u.next = u[0, 1]

    assert refused.value.reason == reason
    assert refused.value.file is not None and Path(refused.value.file).name == Path(__file__).name


def test_a_value_is_a_number_or_a_name():
    with pytest.raises(timetile.StencilError, match="a value is a number or the name of a scalar"):
        value(cast(Any, [1.0]))


def test_a_scalar_beyond_an_array_narrower_than_a_read_is_refused():
    case = EdgeCase(value("k"), (("k", "k"),), 2)
    with pytest.raises(ValueError, match="is read 2 cells away along axis 0 of size 1"):
        case.model().advance({"u": np.zeros(1)}, steps=1, k=1.0)


def test_a_box_beside_an_edge_need_not_read_a_field():
    """Beyond the first side the mask is a number: the cells there read the other field alone."""

    @timetile.stencil(boundary={"u": "periodic", "mask": ((value(2.0), "keep"), "keep")})
    def step(u: Field, mask: Field):
        u.next = mask[-1, 0] * u[0, 1]

    u, mask = noise(5, 7), noise(5, 7) + 1
    model = step.on(executor="planes", depth=2, cache=False)
    found = model.advance({"u": u, "mask": mask}, 2)["u"]
    beyond = np.vstack([np.full((1, 7), 2.0), mask[:-1]])
    assert np.array_equal(found, beyond * np.roll(beyond * np.roll(u, -1, 1), -1, 1))
