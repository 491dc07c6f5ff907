"""Quotients by known numbers are a product and a fused multiply-add, correctly rounded."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Attribute, Operation

from support.division import KINDS, Body, Votes, compare, counted_votes
from timetile.lowering.division.expand_division import DivisionRun
from timetile.passes.analysis.cells.known_divisors import (
    Inverse,
    doubtful,
    inverse_of,
    is_right,
    parts_of_inverse,
    quotient,
    to_precision,
)
from timetile.runtime.arithmetic.fma import fma
from timetile.runtime.program.compiled_program import Executor

TYPES = {"f32": f32, "f64": f64}
DIVISORS = [9.0, -118.0, 0.01, 1.21, 1e-4, 3e5]


def single(value: float) -> float:
    """The nearest FP32 number."""
    return float(np.float32(value))


def quotients(inverse: Inverse, x: np.ndarray) -> np.ndarray:
    """What kernels compute."""
    kind = x.dtype.type
    return fma(x, np.full_like(x, inverse.high), x * kind(inverse.low))


@pytest.mark.parametrize("divisor", DIVISORS)
def test_every_fraction_has_the_nearest_quotient(divisor: float):
    inverse = inverse_of(single(divisor), f32)
    assert inverse is not None
    x = np.arange(2**23, 2**24, 7, dtype=np.float32)
    assert np.array_equal(quotients(inverse, x), x / np.float32(divisor))


def test_divisors_with_a_wrong_quotient_are_refused():
    """The doubtful numerators hold all wrong ones."""
    refused = [d for d in range(11_000_001, 11_000_400, 2) if not is_right(d, 24)]
    assert 5 < len(refused) < 100
    x = np.arange(2**23, 2**24, dtype=np.float32)
    for divisor in refused[:2]:
        high, low = (float(Fraction(part, 2**96)) for part in parts_of_inverse(divisor, 24))
        wrong = quotients(Inverse(high, low), x) != x / np.float32(divisor)
        assert set(x[wrong].astype(int)) <= set(doubtful(divisor, 24)) and wrong.any()
    assert inverse_of(single(1 / 3), f32) is None and inverse_of(1 / 3, f64) is not None


@pytest.mark.parametrize("precision", [24, 53])
def test_integers_are_rounded_as_fractions_are(precision: int):
    generator = np.random.default_rng(3)
    for _ in range(100):
        x, d = (int(n) | 1 << (precision - 1) for n in generator.integers(2**precision, size=2))
        scaled = x << 3 * precision
        exact = Fraction(scaled, d)
        last = Fraction(2) ** ((scaled // d).bit_length() - precision)
        assert quotient(scaled, d, precision) == round(exact / last) * last
    assert [to_precision(n, 2) for n in (4, 5, 7, 9, 10, 11)] == [4, 4, 8, 8, 8, 12]


@pytest.mark.parametrize("divisor", [None, 4.0, 0.0, 2.0**-40 * 3, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [f32, f64])
def test_other_divisors_keep_their_sequence(divisor: float | None, kind: Attribute):
    assert inverse_of(divisor, kind) is None


def numerators(element: str) -> np.ndarray:
    """Numbers of every exponent, of both signs, and special ones."""
    kind = KINDS[element]
    facts = np.finfo(kind)
    generator = np.random.default_rng(8)
    exponents = np.arange(facts.minexp - facts.nmant - 1, facts.maxexp + 1)
    spread = np.ldexp(1 + generator.random((2, len(exponents))), exponents - 1).astype(kind)
    # Many quotients of the least numbers by even divisors are ties.
    least = np.arange(1, 2 * 118, dtype=kind) * facts.smallest_subnormal
    special = [0.0, np.inf, np.nan, facts.max, facts.tiny, facts.smallest_subnormal, 1.0, 9.0]
    positive = np.concatenate([spread.ravel(), least, np.array(special, kind)])
    return np.concatenate([positive, -positive])


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("element", KINDS)
@pytest.mark.parametrize("divisor", [*DIVISORS, 1 / 3])
def test_every_operand_is_rounded_correctly(divisor: float, element: str, executor: Executor):
    given = float(KINDS[element](divisor))
    body = Body(
        f"%d = arith.constant {given!r} : TYPE  %r = arith.divf %a, %d",
        lambda a, b: a / a.dtype.type(given),
    )
    x = numerators(element)
    compare(element, body, executor, x, x)


@pytest.fixture
def votes(monkeypatch: pytest.MonkeyPatch) -> Votes:
    """Counts the sides taken by the SIMT interpreter."""
    return counted_votes(monkeypatch)


@pytest.mark.parametrize("element", KINDS)
def test_tiny_numbers_alone_take_the_exact_side(element: str, votes: Votes):
    """Zeros, infinities and NaNs do not."""
    body = Body("%d = arith.constant 9.0 : TYPE  %r = arith.divf %a, %d", lambda a, b: a / 9)
    x = np.resize(np.array([0.0, -0.0, np.inf, np.nan, 1e-20, 3e38], KINDS[element]), 512)
    compare(element, body, "simt", x, x)
    assert votes.quick and not votes.exact
    x[5] = np.finfo(x.dtype).tiny
    compare(element, body, "simt", x, x)
    assert votes.exact


class Levels(DivisionRun):
    """Levels with a quotient each, a few of which fit a branch."""

    def __init__(self, count: int, most: int):
        super().__init__()
        self.most = most
        self.generation = {YieldOp(): level for level in range(count)}

    def shared(self, begin: int, end: int) -> list[Operation]:
        return self.of_generations(begin, end)

    def is_worth_sharing(self, ops: Sequence[Operation]) -> bool:
        return len(ops) <= self.most


def test_as_few_branches_as_fit_have_evenly_many_levels():
    assert Levels(7, 6).even_ends() == [4, 7] and not Levels(0, 3).even_ends()
    for count in range(1, 14):
        for most in range(1, 8):
            ends = Levels(count, most).even_ends()
            sizes = [end - begin for begin, end in zip((0, *ends), ends)]
            assert len(ends) == -(-count // most) and sum(sizes) == count
            assert max(sizes) <= min(sizes) + 1
