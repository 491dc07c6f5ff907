"""
The exact sides of FP32 quotients and roots, and of FP64 roots, are correctly rounded for every
operand, from any guess within the hardware's accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.division import SINGLE, TILE, Body, compare, counted_votes, guess_off_by

Array = NDArray[Any]


def exact_operands() -> tuple[Array, Array]:
    """
    FP32 numerators and divisors of all pairs of exponents, subnormal ones too; numbers next to ties
    among subnormal quotients, and next to squares of middles. Every warp has special numbers,
    and takes the exact side.
    """
    generator = np.random.default_rng(12)

    def numbers(exponents: Array) -> Array:
        fractions = generator.integers(0, 2**23, len(exponents), dtype=np.uint32)
        signs = generator.integers(0, 2, len(exponents), dtype=np.uint32) << 31
        return (signs | exponents.astype(np.uint32) << 23 | fractions).view(np.float32)

    every = np.arange(255)
    a, b = numbers(np.repeat(every, 255)), numbers(np.tile(every, 255))
    # q = (2 m + 1) 2^-150 lies in the middle of two subnormal numbers: a = q b, exactly.
    halves = (2 * generator.integers(0, 2**11, 4000) + 1).astype(np.float32)
    divisors = np.ldexp(generator.integers(1, 2**11, 4000).astype(np.float32), 20)
    ties = np.ldexp(halves.astype(float) * divisors, -150).astype(np.float32)
    near = generator.integers(-1, 2, 4000).astype(np.int32)
    ties = (ties.view(np.int32) + near).view(np.float32)
    # A root next to the middle of two numbers of 24 bits: x is the nearest number to its square.
    middles = generator.integers(2**23, 2**24, 4000) + 0.5
    squares = (middles**2).astype(np.float32)
    a, b = np.concatenate([a, ties, squares]), np.concatenate([b, divisors, squares])
    a[:: TILE // 2], b[:: TILE // 2] = np.inf, 0
    return a, b


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("body", SINGLE)
def test_the_exact_side_of_fp32_is_correctly_rounded_for_any_guess_of_20_bits(
    body: str, sign: int, monkeypatch: pytest.MonkeyPatch
):
    votes = counted_votes(monkeypatch)
    guess_off_by(sign * 2.0**-20, monkeypatch)
    compare("f32", SINGLE[body], "simt", *exact_operands())
    assert votes.quick == 0


ROOTS = {
    "root": SINGLE["root"],
    "reciprocal root": SINGLE["reciprocal root"],
    "one by a root, and the root": Body(
        "%s = math.sqrt %a : TYPE  %q = arith.divf %one, %s : TYPE  %r = arith.addf %q, %s",
        lambda a, b: 1 / np.sqrt(a) + np.sqrt(a),
    ),
}


def radicands() -> Array:
    """
    FP64 numbers of all exponents, subnormal ones too, and squares of fractions of ones, with
    neighbours. Every warp has an infinity, and takes the exact side.
    """
    generator = np.random.default_rng(13)
    exponents = np.repeat(np.arange(2048, dtype=np.uint64), 4) << np.uint64(52)
    every = (exponents | generator.integers(0, 2**52, 8192, dtype=np.uint64)).view(np.float64)
    squares = np.ldexp(1 - 2.0**-53, np.arange(-510, 510)) ** 2
    near = [np.nextafter(squares, 0), np.nextafter(squares, np.inf)]
    special = np.array([0.0, -0.0, np.nan, -np.inf, 5e-324, -5e-324])
    a = np.concatenate([every, squares, *near, special, -every[::64]])
    a = np.resize(a, -(-len(a) // TILE) * TILE).copy()
    a[:: TILE // 2] = np.inf
    return a


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("body", ROOTS)
def test_the_exact_side_of_fp64_roots_is_correctly_rounded(
    body: str, sign: int, monkeypatch: pytest.MonkeyPatch
):
    """One by a root needs all 20 bits, as on the quick side."""
    votes = counted_votes(monkeypatch)
    guess_off_by(sign * 2.0 ** -(20 if body == "root" else 22), monkeypatch)
    compare("f64", ROOTS[body], "simt", *2 * (radicands(),))
    assert votes.quick == 0
