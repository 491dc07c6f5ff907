"""The passes named after published systems, as users write the names."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import timetile
from support.catalogue import star, sum_program
from support.description import Element
from support.executors import thread_executors
from support.expressions import Offset
from support.programs import program_text
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.passes.systems.an5d import An5dPass
from timetile.passes.systems.dtb import DtbPass
from timetile.passes.systems.ebisu import EbisuPass
from timetile.passes.systems.semi_stencil import SemiStencilPass
from timetile.passes.systems.ssam import SsamPass
from timetile.passes.systems.stencilgen import StencilgenPass
from timetile.runtime.kernels.levels import SYSTEMS
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compile import lists_and_layers
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

ODD = {2: (37, 151), 3: (5, 17, 35)}
"""Domains with sides that no tile divides."""


def text_of(domain: tuple[int, ...], element: Element = "f64") -> str:
    """A star of radius 1 whose terms are in the order of planes."""
    taps = sorted(star(len(domain), 1))
    return program_text(sum_program(element, taps)(domain))


def columns_of(domain: tuple[int, ...]) -> str:
    """A box of two axes or a star of three, whose terms are in the order of columns."""
    taps: list[Offset] = list(product((-1, 0, 1), repeat=2)) if len(domain) == 2 else star(3, 1)
    in_order = sorted(taps, key=lambda at: at[::-1])
    return program_text(sum_program("f64", in_order)(domain))


CASES: dict[str, tuple[str, int]] = {
    "ebisu-volume": ("ebisu{depth=2 cells=4,1 warps=2,1 blocks=2,2}", 3),
    "ebisu": ("ebisu{depth=2}", 2),
    "an5d": ("an5d{depth=2}", 2),
    "an5d-volume": ("an5d{depth=2 warps=8,1}", 3),
    "ssam": ("ssam{depth=2}", 2),
    "ssam-volume": ("ssam{warps=2,1}", 3),
    "dtb": ("dtb{depth=2 cells=4,2 warps=2,1 blocks=2,3}", 2),
    "semi-stencil": ("semi-stencil{depth=2 warps=8,1}", 3),
    "stencilgen": ("stencilgen{depth=2}", 2),
}
"""A pipeline by the name of a system, with small sizes, and the axes of a domain."""


def program_of(case: str) -> str:
    """The program of a case."""
    domain = ODD[CASES[case][1]]
    return columns_of(domain) if case.startswith("ssam") else text_of(domain)


def after(compiled: CompiledProgram, steps: int) -> list[bytes]:
    """The bytes of all fields after a run from random cells."""
    fields = [p.bounds for p in compiled.parameters if p.bounds is not None]
    shapes = [[h - low for low, h in zip(b.lb, b.ub)] for b in fields]
    arrays = [np.random.default_rng(k).random(shape) for k, shape in enumerate(shapes)]
    compiled(*arrays, steps)
    return [array.tobytes() for array in arrays]


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize("case", CASES)
def test_a_system_has_the_bits_of_the_default(case: str, executor: Executor):
    text = program_of(case)
    named = timetile.compile(text, executor=executor, passes=CASES[case][0], cache=False)
    default = timetile.compile(text, executor="numpy", cache=False)
    assert after(named, 3) == after(default, 3)


@timetile.stencil
def tilted(u: timetile.Field, w: timetile.Field, k: timetile.Field):
    """Two fields with a mixed difference each, their terms in the order of planes."""
    turned = 0.25 * (u[-1, 0, -1] - u[-1, 0, 1]) + 0.25 * (u[1, 0, 1] - u[1, 0, -1])
    deep = 0.5 * w[-1, 0, 0] + -0.9 * w[0, 0, 0] + 0.4 * w[1, 0, 0]
    across = 0.3 * u[-1, 0, 0] + 0.6 * u[0, 1, 0] + -1.2 * u[0, 0, 0] + 0.3 * u[1, 0, 0]
    u.next = u[0, 0, 0] + k[0, 0, 0] * (across + turned * deep)
    w.next = w[0, 0, 0] + k[0, 0, 0] * (deep - turned * across)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
def test_a_semi_stencil_carries_a_sum_for_each_difference(executor: Executor):
    """Three sums with far planes, for a step of two results."""
    text = str(tilted.module((7, 11, 35), "float64"))
    pipeline = "semi-stencil{warps=4,1}"
    named = timetile.compile(text, executor=executor, passes=pipeline, cache=False)
    step = next(op for op in named.kernels.tiled.ops if isinstance(op, KernelOp))
    assert sorted(len(stage.res) for stage in step.stages if isinstance(stage, ApplyOp)) == [2, 3]
    default = timetile.compile(text, executor="numpy", cache=False)
    assert after(named, 3) == after(default, 3)


def test_sizes_without_options_are_those_of_the_target():
    """Shared memory limits later where global memory is slow: EBISU goes deeper."""
    text = text_of((4096, 4096))

    def deepest(arch: str) -> int:
        compiled = timetile.compile(text, executor="planes", passes="ebisu", arch=arch, cache=False)
        return max(loops_of(compiled.kernels.tiled)[0].depth_list)

    assert deepest("h200") < deepest("h100-sxm")


def test_the_arch_of_a_compilation_reaches_a_system():
    given = EbisuPass(arch="h200")
    assert given.for_target("h100-sxm", 100) is given
    assert EbisuPass().for_target("h100-sxm", 100) == EbisuPass(
        arch="h100-sxm", multiprocessors=100
    )


def test_a_system_takes_the_loops_of_the_program():
    """Copies of layers would be loops that a system may not express."""
    assert lists_and_layers("gpu", None, None) == (True, True)
    assert lists_and_layers("gpu", None, (SemiStencilPass(),)) == (True, False)


def test_every_system_has_a_name():
    names = ["ebisu", "an5d", "ssam", "dtb", "semi-stencil", "stencilgen"]
    assert [item.name for item in SYSTEMS] == names
    named = (EbisuPass, An5dPass, SsamPass, DtbPass, SemiStencilPass, StencilgenPass)
    assert named == SYSTEMS


def test_passes_before_a_system_may_find_the_loops():
    text = text_of(ODD[2])
    spec = "raise-time-loop,ebisu{depth=2}"
    rounded = timetile.compile(text, executor="planes", passes=spec, cache=False)
    cells = "arith.mulf"
    assert cells in str(rounded.module) and "math.fma" not in str(rounded.module)
