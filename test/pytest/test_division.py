"""
Quotients and roots are correctly rounded for every operand, whatever Newton's method starts from within
the hardware's accuracy; and ordinary operands never take the slow side of the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import ldexp, prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import scf

import timetile
from support.catalogue import entry
from support.compare import bits_of
from support.executors import kernel_executors
from support.programs import program_text
from timetile.dialects import simt
from timetile.runtime import arithmetic
from timetile.runtime.kernels import run_passes
from timetile.runtime.loading import load
from timetile.runtime.program import Executor
from timetile.runtime.simt import interpreter

Array = NDArray[Any]
KINDS: dict[str, type[np.floating[Any]]] = {"f64": np.float64, "f32": np.float32}
BITS: dict[str, type[np.unsignedinteger[Any]]] = {"f64": np.uint64, "f32": np.uint32}
FRACTION = {"f64": 52, "f32": 23}

BODIES: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "quotient": ("%r = arith.divf %a, %b", np.divide),
    "reciprocal": ("%r = arith.divf %one, %b", lambda a, b: np.divide(b.dtype.type(1), b)),
    "root": ("%r = math.sqrt %a", lambda a, b: np.sqrt(a)),
    "reciprocal root": (
        "%r = math.rsqrt %a",
        lambda a, b: np.divide(a.dtype.type(1), np.sqrt(a)),
    ),
}


def program(body: str, element: str, cells: int) -> str:
    """Every cell of the third field is made of the first two's."""
    field, temp = f"!stencil.field<[0,{cells}]x{element}>", f"!stencil.temp<?x{element}>"
    return f"""
    func.func @points(%A: {field}, %B: {field}, %C: {field}, %n: index) {{
      %zero = arith.constant 0 : index
      %step = arith.constant 1 : index
      scf.for %t = %zero to %n step %step {{
        %x = stencil.load %A : {field} -> {temp}
        %y = stencil.load %B : {field} -> {temp}
        %z = stencil.apply(%p = %x : {temp}, %q = %y : {temp}) -> ({temp}) {{
          %a = stencil.access %p[0] : {temp}
          %b = stencil.access %q[0] : {temp}
          %one = arith.constant 1.0 : {element}
          {body} : {element}
          stencil.return %r : {element}
        }}
        stencil.store %z to %C(<[0], [{cells}]>) : {temp} to {field}
      }}
      func.return
    }}"""


def specials(element: str) -> Array:
    """Zeros, infinities, NaN, the ends of the ordinary range and of the format, with either sign."""
    kind = KINDS[element]
    info = np.finfo(kind)
    farthest = 400 if element == "f64" else 60
    ends = [kind(2.0**-farthest), kind(2.0**farthest)]
    values = [0.0, 1.0, 1.5, 3.0, np.inf, np.nan, info.tiny, info.max, info.smallest_subnormal]
    values += [*ends, *(np.nextafter(e, kind(0)) for e in ends)]
    array = np.array([float(v) for v in values]).astype(kind)
    return np.concatenate([array, -array])


def near_ones(element: str, generator: np.random.Generator, count: int) -> Array:
    """Fractions of nearly only ones or only zeros, around powers of two."""
    word = BITS[element]
    step = generator.integers(-64, 64, count).astype(word)
    power = generator.integers(-30, 30, count)
    return np.ldexp((np.ones(count, KINDS[element]).view(word) + step).view(KINDS[element]), power)


def hard_squares() -> Iterator[float]:
    """
    FP64 numbers next to the square of a number between two others: k^2 leaves c modulo 2^54, k odd of 54
    bits, found bit by bit.
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


def hard_divisors() -> Iterator[float]:
    """FP64 numbers whose reciprocals lie next to the middle of two others: divisors of 2^106 - 1."""
    primes = (3, 107, 6361, 69431, 20394401, 28059810762433)
    for count in range(1, len(primes) + 1):
        for chosen in combinations(primes, count):
            divisor = prod(chosen)
            while divisor < 1 << 52:
                divisor *= 2
            if divisor < 1 << 53:
                yield ldexp(divisor, -52)


def operands(element: str) -> tuple[Array, Array]:
    """Numerators and divisors."""
    kind, word = KINDS[element], BITS[element]
    generator = np.random.default_rng(11)
    ends = specials(element)
    size = 8 * np.dtype(kind).itemsize

    def any_bits() -> Array:
        return generator.integers(0, 2**size, 4000, dtype=word).view(kind)

    hard = [*hard_squares(), *hard_divisors()] if element == "f64" else [1.0]
    columns = [
        (np.repeat(ends, len(ends)), np.tile(ends, len(ends))),
        (any_bits(), any_bits()),
        (near_ones(element, generator, 4000), near_ones(element, generator, 4000)),
        (np.array(hard, kind), np.array(hard[::-1], kind)),
        ((1 + generator.random(4000)).astype(kind), (1 + generator.random(4000)).astype(kind)),
    ]
    return np.concatenate([a for a, _ in columns]), np.concatenate([b for _, b in columns])


def check(element: str, body: str, executor: Executor) -> None:
    """All of `operands`."""
    compare(element, body, executor, *operands(element))


def compare(element: str, body: str, executor: Executor, a: Array, b: Array) -> None:
    """The program's cells are those of NumPy, bit for bit; one NaN is as good as another."""
    text, expected = BODIES[body]
    result = np.zeros_like(a)
    compiled = timetile.compile(program(text, element, len(a)), executor=executor, cache=False)
    compiled(a.copy(), b.copy(), result, 1, steps=1)
    with np.errstate(all="ignore"):
        wanted = expected(a, b)
    wrong = (bits_of(result) != bits_of(wanted)) & ~(np.isnan(result) & np.isnan(wanted))
    assert not wrong.any(), (a[wrong][:3], b[wrong][:3], result[wrong][:3], wanted[wrong][:3])


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("element", KINDS)
def test_every_operand_is_rounded_correctly(element: str, body: str, executor: Executor):
    check(element, body, executor)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("body", BODIES)
def test_so_it_is_in_fp64_whatever_20_bits_newton_starts_from(
    body: str, sign: int, monkeypatch: pytest.MonkeyPatch
):
    def off(exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def apply(a: Array) -> Array:
            with np.errstate(all="ignore"):
                return exact(a) * (1 + sign * 2.0**-20)

        return apply

    for op in (simt.ReciprocalOp, simt.ReciprocalRootOp):
        monkeypatch.setitem(arithmetic.OPERATIONS, op, off(arithmetic.OPERATIONS[op]))
    check("f64", body, "simt")


@pytest.mark.skipif("gpu" not in kernel_executors(), reason="needs a GPU")
@pytest.mark.parametrize("body", ["reciprocal", "root", "reciprocal root"])
def test_so_it_is_in_fp32_for_every_fraction(body: str):
    """In FP32 a single step follows the hardware's approximation, which must be as good as it is."""
    a = np.arange(2**23, dtype=np.uint32)
    for power in (0x3F800000, 0x40000000):
        compare("f32", body, "gpu", *2 * ((a + np.uint32(power)).view(np.float32),))


def test_ordinary_numbers_take_the_quick_side(monkeypatch: pytest.MonkeyPatch):
    """Also in the guarded copies, whose cells outside the bounds come from other levels."""
    taken = {True: 0, False: 0}
    original = interpreter.HANDLERS[simt.AllOp]

    def count(launch: interpreter.Launch, op: simt.AllOp, active: Array) -> None:
        original(launch, op, active)
        (branch,) = (use.operation for use in op.result.uses)
        assert isinstance(branch, scf.IfOp)
        for side in launch.spread(op.result)[active]:
            taken[bool(side)] += 1

    monkeypatch.setitem(interpreter.HANDLERS, simt.AllOp, count)
    inputs = entry("roots-2d").make((60, 300))
    compiled = timetile.compile(program_text(inputs), executor="simt", depth=3, cache=False)
    generator = np.random.default_rng(5)
    fields = [generator.random((62, 302)) + 0.5 for _ in range(2)]
    compiled(*fields, 7, steps=7)
    assert taken[True] > 1000
    assert taken[False] == 0


def test_quotients_share_a_branch():
    """One for the cells that a thread makes of a level; the exact operations are inside only."""
    compiled = timetile.compile(
        program_text(entry("roots-2d").make((60, 300))), executor="simt", depth=2, cache=False
    )
    (fact, *_), *_ = compiled.kernels.facts
    ops = list(compiled.kernels.threads(fact.name).walk())
    branches = [op for op in ops if isinstance(op, simt.AllOp)]
    guesses = [op for op in ops if isinstance(op, simt.ReciprocalOp | simt.ReciprocalRootOp)]
    assert len(guesses) >= 8 * len(branches) > 0
    module = load(program("%r = arith.divf %a, %b", "f64", 64))
    run_passes(timetile.pipeline(), module)
    assert "math.sqrt" not in str(module)
