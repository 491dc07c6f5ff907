"""
Quotients and roots are correctly rounded for every operand, from any start of Newton's method
within the hardware's accuracy; and ordinary operands never take the slow side of the branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import isqrt, ldexp, prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import arith, scf
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Block, Operation

import timetile
from support.catalogue import entry
from support.division import KINDS, SINGLE, TILE, Body, Votes, compare, counted_votes, guess_off_by
from support.executors import kernel_executors
from support.programs import program_text
from support.schedules import Schedule, warp_row
from timetile.dialects import simt
from timetile.lowering.division.expand_division import MOST_WORDS
from timetile.lowering.division.newton import DivisionExpansion
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.cells.instructions import instructions, is_dividing
from timetile.passes.analysis.cells.pressure import value_words
from timetile.runtime.arithmetic.fma import fma
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

Array = NDArray[Any]
BITS: dict[str, type[np.unsignedinteger[Any]]] = {"f64": np.uint64, "f32": np.uint32}

BODIES = {
    **SINGLE,
    # Each operation has separate needs of a value.
    "divisor, then under the root": Body(
        "%q = arith.divf %b, %a : TYPE  %s = math.sqrt %a : TYPE  %r = arith.addf %q, %s",
        lambda a, b: b / a + np.sqrt(a),
    ),
    "under the root, then a divisor": Body(
        "%s = math.sqrt %a : TYPE  %q = arith.divf %b, %a : TYPE  %r = arith.addf %q, %s",
        lambda a, b: b / a + np.sqrt(a),
    ),
    # Neither the sign nor the lower end of the radicand is tested.
    "one by the root of squares": Body(
        "%c = arith.constant 0.0625 : TYPE  %p = arith.mulf %a, %a : TYPE  %m = arith.addf %c, %p "
        ": TYPE  %q = arith.mulf %b, %b : TYPE  %w = arith.addf %m, %q : TYPE  %s = math.sqrt %w : "
        "TYPE  %r = arith.divf %one, %s",
        lambda a, b: np.divide(
            a.dtype.type(1), np.sqrt(fma(b, b, fma(a, a, np.full_like(a, 0.0625))))
        ),
    ),
    "two numerators": Body(
        "%q = arith.divf %a, %b : TYPE  %s = arith.divf %one, %b : TYPE  %r = arith.subf %q, %s",
        lambda a, b: a / b - a.dtype.type(1) / b,
    ),
    "root of a root": Body(
        "%s = math.sqrt %a : TYPE  %r = math.sqrt %s", lambda a, b: np.sqrt(np.sqrt(a))
    ),
    "root of a quotient": Body(
        "%q = arith.divf %a, %b : TYPE  %r = math.sqrt %q", lambda a, b: np.sqrt(a / b)
    ),
    "root that divides and is added": Body(
        "%s = math.sqrt %a : TYPE  %q = arith.divf %b, %s : TYPE  %r = arith.addf %q, %s",
        lambda a, b: b / np.sqrt(a) + np.sqrt(a),
    ),
    # Constants far from the ordinary leave their operation unchanged, and only theirs.
    "special constants": Body(
        "%tiny = arith.constant 1.0e-30 : TYPE  %q = arith.divf %a, %tiny : TYPE"
        "  %s = arith.divf %a, %b : TYPE  %r = arith.subf %q, %s",
        lambda a, b: a / a.dtype.type(1e-30) - a / b,
    ),
}


def specials(element: str) -> Array:
    """
    Zeros, infinities, NaN, the ends of the ordinary range and of the format, with either sign.
    """
    kind = KINDS[element]
    info = np.finfo(kind)
    farthest = 400 if element == "f64" else 60
    ends = [kind(2.0**-farthest), kind(2.0**farthest)]
    values = [0.0, 1.0, 1.5, 3.0, np.inf, np.nan, info.tiny, info.max, info.smallest_subnormal]
    values += [*ends, *(np.nextafter(e, kind(0)) for e in ends)]
    array = np.array([float(v) for v in values]).astype(kind)
    return np.concatenate([array, -array])


def whole_warps(element: str) -> tuple[Array, Array]:
    """
    The ends of the ordinary range with either sign, and +0, in pairs. A whole warp has one pair: a
    lane with another would take all lanes to the exact side.
    """
    kind = KINDS[element]
    farthest = 400 if element == "f64" else 60
    least, most = kind(2.0**-farthest), np.nextafter(kind(2.0**farthest), kind(0))
    ends = [
        least,
        np.nextafter(least, kind(1)),
        most,
        np.nextafter(most, kind(0)),
        kind(1),
        kind(1.5),
    ]
    values = np.array([0, *ends, *(-x for x in ends)], kind)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    return np.repeat(a, TILE), np.repeat(b, TILE)


def near_ones(element: str, generator: np.random.Generator, count: int) -> Array:
    """Fractions of nearly only ones or only zeros, around powers of two."""
    word = BITS[element]
    step = generator.integers(-64, 64, count).astype(word)
    power = generator.integers(-30, 30, count)
    return np.ldexp((np.ones(count, KINDS[element]).view(word) + step).view(KINDS[element]), power)


def hard_squares() -> Iterator[float]:
    """
    FP64 numbers next to the square of a number between two others: k^2 leaves c modulo 2^54, k odd
    of 54 bits, found bit by bit.
    """
    modulus = 1 << 54
    for c in (*range(1, 600, 8), *range(-7, -600, -8)):
        root = 1
        for bit in range(3, 55):
            if (root * root - c) % (1 << min(bit + 1, 54)):
                root += 1 << (bit - 1)
        for odd in (root, modulus - root, root + modulus // 2, modulus // 2 - root):
            for k in (odd % modulus, odd % modulus + modulus):
                square = (k * k - c) >> 54
                if 1 << 53 <= k < 1 << 54 and (square < 1 << 53 or square % 2 == 0):
                    yield ldexp(square, -52)


NEXT_TO_MIDDLES = {
    1: (3, 107, 6361, 69431, 20394401, 28059810762433),
    2: (2, 7, 7, 31, 71, 127, 151, 337, 29191, 106681, 122921, 152041),
}
"""
The primes of 2^106 - k: divisors of 53 bits with a reciprocal next to the middle of two FP64
numbers.
"""


def divisors(k: int) -> Iterator[int]:
    """Of 2^106 - k, each once."""
    primes = NEXT_TO_MIDDLES[k]
    subsets = (chosen for count in range(len(primes)) for chosen in combinations(primes, count))
    yield from sorted({prod(chosen) for chosen in subsets})


def hard_divisors() -> Iterator[float]:
    """FP64 numbers with reciprocals next to the middle of two other FP64 numbers."""
    for divisor in divisors(1):
        scaled = divisor << max(0, 53 - divisor.bit_length())
        if scaled < 1 << 53:
            yield ldexp(scaled, -52)


def hard_roots() -> Iterator[tuple[int, int, int]]:
    """
    Integers r and m, of 53 and 54 bits, m odd, with r m = 2^106 - 2: 1 / r lies next to the middle
    m of two FP64 numbers. And every x of 53 bits or of 54, an even number, with the FP64 root r: x
    2^52 is about r^2.
    """
    for root in divisors(2):
        middle = (2**106 - 2) // root
        if 1 << 52 <= root < 1 << 53 and middle % 2:
            low, high = ((2 * root + side) ** 2 >> 54 for side in (-1, 1))
            for x in range(low + 1, high + 1):
                if x < 1 << 53 or x % 2 == 0:
                    yield root, middle, x


def test_one_by_a_root_is_a_single_step_away():
    """
    In FP64 the step from y, the nearest number to 1 / sqrt(x), is wrong for divisors of 2^106 - 2
    only if y is the second next number to the middle, or farther. For every x, 1 / sqrt(x) is
    farther from the second number by a sixteenth of the distance of two numbers, far more than the
    error of y.
    """
    assert all(prod(primes) == 2**106 - k for k, primes in NEXT_TO_MIDDLES.items())
    found = list(hard_roots())
    assert len({root for root, _, _ in found}) == 32
    for root, middle, x in found:
        assert abs(x * 2**52 - root**2) <= root
        # In units of the last bit of numbers below 1, and of 2^-64 of the unit.
        exact = isqrt((2**53 << 64) ** 2 * 2**52 // x)
        assert abs(2 * exact - (middle << 64)) < 2 * (2**64 - 2**60)


def operands(element: str) -> tuple[Array, Array]:
    """Numerators and divisors."""
    kind, word = KINDS[element], BITS[element]
    generator = np.random.default_rng(11)
    ends = specials(element)
    size = 8 * np.dtype(kind).itemsize

    def any_bits() -> Array:
        return generator.integers(0, 2**size, 4000, dtype=word).view(kind)

    hard = [1.0]
    if element == "f64":
        hard = [*hard_squares(), *hard_divisors(), *(ldexp(x, -52) for _, _, x in hard_roots())]
    columns = [
        # First: here the operands fill warps.
        whole_warps(element),
        (np.repeat(ends, len(ends)), np.tile(ends, len(ends))),
        (any_bits(), any_bits()),
        (near_ones(element, generator, 4000), near_ones(element, generator, 4000)),
        (np.array(hard, kind), np.array(hard[::-1], kind)),
        ((1 + generator.random(4000)).astype(kind), (1 + generator.random(4000)).astype(kind)),
    ]
    return np.concatenate([a for a, _ in columns]), np.concatenate([b for _, b in columns])


def check(element: str, body: str, executor: Executor) -> None:
    """All of `operands`."""
    compare(element, BODIES[body], executor, *operands(element))


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("element", KINDS)
def test_every_operand_is_rounded_correctly(element: str, body: str, executor: Executor):
    check(element, body, executor)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("body", BODIES)
def test_fp64_quotients_are_correctly_rounded_for_any_guess_of_20_bits(
    body: str, sign: int, monkeypatch: pytest.MonkeyPatch
):
    """
    A reciprocal root needs all 20 bits: the hardware's guess is off by 0.98 * 2^-20 at most
    (measured for every number).
    """
    guess_off_by(sign * (2.0**-22 if body == "reciprocal root" else 2.0**-20), monkeypatch)
    check("f64", body, "simt")


@pytest.mark.skipif("gpu" not in kernel_executors(), reason="needs a GPU")
@pytest.mark.parametrize("body", ["reciprocal", "root", "reciprocal root"])
def test_fp32_quotients_are_correctly_rounded_for_every_fraction_on_the_gpu(body: str):
    """
    In FP32 a single step follows the hardware's approximation, and needs the approximation's full
    accuracy.
    """
    a = np.arange(2**23, dtype=np.uint32)
    for power in (0x3F800000, 0x40000000):
        compare("f32", BODIES[body], "gpu", *2 * ((a + np.uint32(power)).view(np.float32),))


@pytest.fixture
def votes(monkeypatch: pytest.MonkeyPatch) -> Votes:
    """Counts the sides taken by the SIMT interpreter."""
    return counted_votes(monkeypatch)


def test_ordinary_numbers_take_the_quick_side(votes: Votes):
    """Also in the guarded copies, with cells outside the bounds from other levels."""
    inputs = entry("roots-2d").make((19, 150))
    passes = Schedule("rows", warp_row(2), planes=5).passes(2)
    compiled = timetile.compile(program_text(inputs), executor="simt", passes=passes, cache=False)
    assert "axes []" in str(compiled.kernels.tiled), "there are tiles inside the bounds"
    generator = np.random.default_rng(5)
    fields = [generator.random((21, 152)) + 0.5 for _ in range(2)]
    compiled(*fields, 5, steps=5)
    assert votes.quick > 100
    assert votes.exact == 0


@pytest.mark.parametrize(
    ("element", "body", "quick"),
    [
        # All divisors but 0 and, in FP64, divisors with a fraction of ones only.
        ("f64", "quotient", 10),
        ("f32", "quotient", 12),
        ("f64", "reciprocal", 10),
        ("f32", "reciprocal", 12),
        # Positive numbers, and 0.
        ("f64", "root", 7),
        ("f32", "root", 7),
    ],
)
def test_operands_at_the_ends_of_the_quick_range_take_the_quick_side(
    element: str, body: str, quick: int, votes: Votes
):
    compare(element, BODIES[body], "simt", *whole_warps(element))
    assert votes.quick * 13 == quick * (votes.quick + votes.exact) > 0


def test_constants_that_are_special_take_nobody_along(votes: Votes):
    generator = np.random.default_rng(2)
    a, b = (generator.random(2 * TILE).astype(np.float32) + 1 for _ in range(2))
    compare("f32", BODIES["special constants"], "simt", a, b)
    assert (votes.quick, votes.exact) == (2, 0)


def test_quotients_share_a_branch():
    """A branch holds quotients of several cells of a level, as many as `MOST_WORDS` allows."""
    compiled = timetile.compile(
        program_text(entry("roots-2d").make((60, 300))), executor="simt", depth=2, cache=False
    )
    (fact, *_), *_ = compiled.kernels.facts
    ops = list(compiled.kernels.threads(fact.name).walk())
    branches = [op for op in ops if isinstance(op, simt.AllOp)]
    guesses = [op for op in ops if isinstance(op, simt.ReciprocalOp | simt.ReciprocalRootOp)]
    assert len(guesses) >= 4 * len(branches) > 0
    exact = [op for op in ops if is_dividing(op)]
    assert exact
    for op in exact:
        branch = op.parent_op()
        assert isinstance(branch, scf.IfOp)
        assert sum(map(value_words, branch.results)) <= MOST_WORDS
        assert isinstance(branch.cond.owner, simt.AllOp)
        assert op.parent is branch.false_region.block


PIPE = (arith.MulfOp, xmath.FmaOp, simt.FmaUpOp)
"""Signs cost nothing: the sign is part of the operand."""


@pytest.mark.parametrize("element", KINDS)
@pytest.mark.parametrize("kind", [arith.DivfOp, xmath.SqrtOp, xmath.RsqrtOp])
def test_the_model_counts_the_operations_of_exact_quotients(kind: type[Operation], element: str):
    type_ = {"f64": f64, "f32": f32}[element]
    count = 2 if kind is arith.DivfOp else 1
    block = Block(arg_types=[type_] * count)
    op = kind.create(
        operands=block.args,
        result_types=[type_],
        properties={"fastmath": arith.FastMathFlagsAttr("none")},
    )
    DivisionExpansion(Emitter(block)).expand(op, list(block.args))
    made = list(block.ops)
    pipe, _ = instructions(op)
    assert sum(isinstance(inner, PIPE) for inner in made) == pipe
