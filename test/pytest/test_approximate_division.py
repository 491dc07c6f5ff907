"""
Errors allowed by `fp-division=fast`: quotients and reciprocal roots off by a few units in the last
place, right for special operands, and equal at all places of a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block, Operation

import timetile
from support.catalogue import entry
from support.division import KINDS, Body, guess_off_by, points
from support.executors import kernel_executors
from support.programs import program_text
from timetile.lowering.division.approximations import Approximation
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.cells.instructions import instructions
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

Array = NDArray[Any]

BODIES = {
    "quotient": Body("%r = arith.divf %a, %b", lambda a, b: a / b),
    "reciprocal": Body("%r = arith.divf %one, %b", lambda a, b: 1 / b),
    "reciprocal root": Body("%r = math.rsqrt %a", lambda a, b: 1 / np.sqrt(a)),
    "quotient by a root": Body(
        "%s = math.sqrt %a : TYPE  %r = arith.divf %b, %s", lambda a, b: b / np.sqrt(a)
    ),
}

MOST_OFF = {"quotient": 2, "reciprocal": 1, "reciprocal root": 3, "quotient by a root": 4}
"""
Units in the last place, as `docs/command_line.md` says: PTX promises 22.9 bits of a reciprocal root
in FP32.
"""


def run(element: str, body: Body, executor: Executor, a: Array, b: Array) -> Array:
    """The cells of a program with approximate quotients."""
    result = np.zeros_like(a)
    text = points(body.text, element, len(a))
    compiled = timetile.compile(text, executor=executor, fp_division="fast", cache=False)
    compiled(a.copy(), b.copy(), result, 1, steps=1)
    return result


def check_close(element: str, name: str, executor: Executor) -> None:
    """All but the last bits are right, over a wide range of operands."""
    generator = np.random.default_rng(3)
    powers = 300 if element == "f64" else 30
    a, b = (
        np.ldexp(1 + generator.random(5000), generator.integers(-powers, powers, 5000))
        for _ in range(2)
    )
    a, b = a.astype(KINDS[element]), b.astype(KINDS[element])
    result = run(element, BODIES[name], executor, a, b)
    # In FP32 compared with FP64, in FP64 with numbers of 64 bits and more.
    exact = BODIES[name].expected(a.astype(np.longdouble), b.astype(np.longdouble))
    off = np.abs((result.astype(np.longdouble) - exact) / np.spacing(result).astype(np.longdouble))
    assert off.max() <= MOST_OFF[name]


@pytest.mark.covering
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("element", KINDS)
def test_an_approximate_quotient_is_off_by_a_few_units_in_the_last_place(
    element: str, name: str, executor: Executor
):
    check_close(element, name, executor)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", BODIES)
def test_fp64_quotients_are_close_for_any_guess_of_20_bits(
    name: str, sign: int, monkeypatch: pytest.MonkeyPatch
):
    guess_off_by(sign * 2.0**-20, monkeypatch)
    check_close("f64", name, "simt")


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("element", KINDS)
def test_approximate_quotients_of_special_operands_are_right(element: str, executor: Executor):
    kind = KINDS[element]
    info = np.finfo(kind)
    values = [0.0, -0.0, 1.0, -4.0, np.inf, -np.inf, np.nan, info.tiny, info.max]
    operands = np.array([float(v) for v in values]).astype(kind)
    with np.errstate(all="ignore"):
        for name in ("reciprocal", "reciprocal root"):
            wanted = BODIES[name].expected(operands, operands)
            result = run(element, BODIES[name], executor, operands, operands)
            # A result below the normal numbers may count as 0 of equal sign.
            wanted = np.where((np.abs(wanted) < info.tiny) & (result == 0), wanted * 0, wanted)
            np.testing.assert_allclose(result, wanted, rtol=4 * float(info.eps))
            assert (np.signbit(result) == np.signbit(wanted))[~np.isnan(wanted)].all()


@pytest.mark.parametrize("executor", kernel_executors())
def test_schedules_agree_on_approximate_quotients_bit_for_bit(executor: Executor):
    """No lanes vote on a branch, and zeros beside a cell do not change the cell."""
    text = program_text(entry("roots-2d").make((17, 75)))
    generator = np.random.default_rng(5)
    start = [generator.random((19, 77)) * (generator.random((19, 77)) > 0.2) for _ in range(2)]
    results: list[list[Array]] = []
    for depth in (1, 3):
        compiled = timetile.compile(
            text, executor=executor, depth=depth, fp_division="fast", cache=False
        )
        fields = [field.copy() for field in start]
        compiled(*fields, 7, steps=7)
        results.append(fields)
    for one, three in zip(*results):
        np.testing.assert_array_equal(one, three)


PIPE = (arith.MulfOp, xmath.FmaOp)
"""Signs cost nothing: the sign is part of the operand."""


@pytest.mark.parametrize("element", KINDS)
@pytest.mark.parametrize("kind", [arith.DivfOp, xmath.RsqrtOp])
def test_the_model_counts_the_operations_of_approximate_quotients(
    kind: type[Operation], element: str
):
    type_ = {"f64": f64, "f32": f32}[element]
    count = 2 if kind is arith.DivfOp else 1
    block = Block(arg_types=[type_] * count)
    op = kind.create(
        operands=block.args,
        result_types=[type_],
        properties={"fastmath": arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])},
    )
    Approximation(Emitter(block)).expand(op, list(block.args))
    pipe, _ = instructions(op)
    assert sum(isinstance(inner, PIPE) for inner in block.ops) == pipe
