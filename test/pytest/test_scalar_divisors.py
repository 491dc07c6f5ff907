"""Quotients by a scalar of the kernel take three operations, and are correctly rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f32, f64

import timetile
from support.compare import bits_of
from support.division import KINDS, TILE, Body, Votes, counted_votes, points
from timetile.passes.analysis.cells.known_divisors import doubtful, quotient, to_precision
from timetile.runtime.arithmetic.fma import fma
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

BITS = {"f64": 53, "f32": 24}
FARTHEST = {"f64": 400, "f32": 60}
BODY = Body("%r = arith.divf %a, %s", lambda a, b: a / b)


def by_scalar(element: str, cells: int, body: str = BODY.text) -> str:
    """Every cell is divided by the scalar `%s`; the second field is not read."""
    text = points(body, element, cells)
    text = text.replace("%n: index)", f"%scalar: {element}, %n: index)")
    return text.replace("(%u = %x", f"(%s = %scalar : {element}, %u = %x")


def ends(element: str) -> list[float]:
    """The ends of the ordinary range, and the numbers beside them."""
    kind, far = KINDS[element], FARTHEST[element]
    low, high = kind(2.0**-far), kind(2.0**far)
    return [float(x) for end in (low, high) for x in (end, np.nextafter(end, kind(0)))]


def divisors(element: str) -> list[float]:
    """Plain, hard and special divisors."""
    kind, ulp = KINDS[element], 2.0 ** (1 - BITS[element])
    facts = np.finfo(kind)
    plain = [1.0, 0.5, 9.0, 0.01, 1e-4, 1 / 3, -0.7, -4.0, 2 - ulp, 2 - 2 * ulp, 1 + ulp]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, facts.max, facts.tiny, facts.smallest_subnormal]
    drawn = np.random.default_rng(4).lognormal(size=6)
    return [float(kind(x)) for x in (*plain, *ends(element), *special, *drawn)]


def numerators(element: str, divisor: float) -> np.ndarray:
    """
    Whole warps of ordinary numbers, with quotients next to the middle of two numbers first; zeros
    of both signs among them; then numbers of every exponent, and special numbers, of both signs.
    """
    kind, bits = KINDS[element], BITS[element]
    facts, generator = np.finfo(kind), np.random.default_rng(8)
    hard = np.zeros(0)
    if np.isfinite(divisor) and divisor:
        integer = int(np.ldexp(np.frexp(abs(divisor))[0], bits))
        hard = np.array(list(doubtful(integer, bits)), np.float64)
        hard = np.ldexp(hard, generator.integers(-20, 20, len(hard)) - bits)
    top = np.ldexp(2.0**bits - np.arange(1, 9), -bits)
    quick = np.resize(np.concatenate([hard, top, 1 + generator.random(60)]), 2 * TILE)
    quick[::7] *= -1
    zeros = quick.copy()
    zeros[::5], zeros[::11] = 0.0, -0.0
    exponents = np.arange(facts.minexp - facts.nmant - 1, facts.maxexp + 1)
    spread = np.ldexp(1 + generator.random(len(exponents)), exponents - 1)
    special = [0.0, np.inf, np.nan, facts.max, facts.tiny, facts.smallest_subnormal, *ends(element)]
    slow = np.concatenate([spread, np.array(special, np.float64)])
    everything = np.concatenate([quick, zeros, slow, -slow]).astype(kind)
    return np.resize(everything, 4 * TILE + 2 * TILE * (1 + 2 * len(slow) // (2 * TILE)))


def run(program: CompiledProgram, x: np.ndarray, divisor: float) -> np.ndarray:
    """The quotients of a program."""
    result = np.zeros_like(x)
    program(x.copy(), x.copy(), result, divisor, 1, steps=1)
    return result


def check(made: np.ndarray, wanted: np.ndarray, about: Any) -> None:
    """Equal bits; all NaNs count as equal."""
    wrong = (bits_of(made) != bits_of(wanted)) & ~(np.isnan(made) & np.isnan(wanted))
    assert not wrong.any(), (about, made[wrong][:3], wanted[wrong][:3])


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["simt", "ptx", "cpu"])
@pytest.mark.parametrize("element", KINDS)
def test_every_operand_is_rounded_correctly(element: str, executor: Executor):
    kind = KINDS[element]
    cells = len(numerators(element, 1.0))
    program = timetile.compile(by_scalar(element, cells), executor=executor, cache=False)
    for divisor in divisors(element):
        x = numerators(element, divisor)
        with np.errstate(all="ignore"):
            wanted = x / kind(divisor)
        check(run(program, x, divisor), wanted, divisor)


@pytest.fixture
def votes(monkeypatch: pytest.MonkeyPatch) -> Votes:
    """Counts the sides taken by the SIMT interpreter."""
    return counted_votes(monkeypatch)


@pytest.mark.parametrize("element", KINDS)
def test_ordinary_numbers_and_zeros_take_the_quick_side(element: str, votes: Votes):
    """Of zeros, those over a positive scalar."""
    far, ulp = 2.0 ** FARTHEST[element], 2.0 ** (1 - BITS[element])
    program = timetile.compile(by_scalar(element, 4 * TILE), executor="simt", cache=False)
    ordinary = np.resize(np.array([1 / far, 1.5, -far * (1 - ulp), -3.0], KINDS[element]), 4 * TILE)
    some_zeros = ordinary.copy()
    some_zeros[::3], some_zeros[1::3] = 0.0, -0.0
    for divisor, x in ((0.3, ordinary), (-0.3, ordinary), (0.3, some_zeros), (1 / far, ordinary)):
        run(program, x, divisor)
        assert votes.quick and not votes.exact
    for divisor, x in ((-0.3, some_zeros), (0.0, ordinary), (far, ordinary), (0.3, ordinary * 2)):
        votes.quick = votes.exact = 0
        with np.errstate(all="ignore"):
            wanted = x / KINDS[element](divisor)
        check(run(program, x, divisor), wanted, divisor)
        assert votes.exact


@pytest.mark.parametrize("precision", [4, 5, 6, 7])
def test_three_operations_are_enough_for_every_pair_of_short_numbers(precision: int):
    """
    The sequence with integers: numbers of few bits, each operation rounded exactly, from a
    reciprocal that is the nearest number.
    """
    scale = 1 << 4 * precision

    def rounded(value: int) -> int:
        return to_precision(value, precision) if value >= 0 else -to_precision(-value, precision)

    for y in range(1 << (precision - 1), 1 << precision):
        r = quotient(scale, y, precision)
        for x in range(1 << (precision - 1), 1 << precision):
            first = rounded(x * r)
            rest = rounded(first * y - x * scale)
            made = rounded(first * scale - rest * r)
            assert made == quotient(x * scale, y, precision) * scale, (x, y)


@pytest.mark.parametrize("element", KINDS)
def test_quotients_next_to_a_middle_are_right_for_drawn_divisors(element: str):
    kind, bits = KINDS[element], BITS[element]
    generator = np.random.default_rng(1)
    for _ in range(150):
        y = int(generator.integers(1 << (bits - 1), 1 << bits))
        x = np.array(list(doubtful(y, bits)), kind)
        d, r = np.full_like(x, y), np.full_like(x, kind(1) / kind(y))
        first = x * r
        assert np.array_equal(fma(fma(first, d, -x), -r, first), x / d)


@pytest.mark.parametrize("element", KINDS)
def test_a_divisor_computed_of_scalars_is_a_scalar(element: str):
    """In the loop are a product and two fused multiply-adds for each cell."""
    body = "%p = arith.mulf %s, %s : TYPE  %r = arith.divf %a, %p"
    text = by_scalar(element, 4 * TILE, body)
    program = timetile.compile(text, executor="simt", cache=False)
    (fact, *_), *_ = program.kernels.facts
    kind = {"f64": f64, "f32": f32}[element]
    branches = [op for op in program.kernels.threads(fact.name).walk() if op.name == "simt.all"]
    assert branches
    for vote in branches:
        block = vote.parent
        assert block is not None
        products = [op for op in block.ops if isinstance(op, arith.MulfOp)]
        sums = [op for op in block.ops if isinstance(op, xmath.FmaOp) and op.result.type == kind]
        assert len(sums) == 2 * len(products) > 0
    x = np.random.default_rng(2).random(4 * TILE).astype(KINDS[element])
    square = KINDS[element](0.7) * KINDS[element](0.7)
    check(run(program, x, float(KINDS[element](0.7))), x / square, square)
