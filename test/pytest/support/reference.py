"""
The meaning of a program, step by step with NumPy: the file imports nothing of timetile.

Every operation is rounded once, in the program's element type; nothing is contracted. A fused
multiply-add of a program goes through exact rational arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import copysign, inf, isfinite, nan
from typing import Any

import numpy as np

from support.description import DTYPES, Array, Box, Inputs, Program, Update
from support.expressions import Call, Constant, Coordinate, Expression, Power, Scalar, Select, Tap

LARGEST: dict[type[np.floating[Any]], Fraction] = {
    kind: Fraction(float(np.finfo(kind).max)) for kind in (np.float32, np.float64)
}


def round_to(kind: type[np.floating[Any]], exact: Fraction) -> float:
    """The nearest number of a type, ties to even, of a nonzero rational."""
    limits = np.finfo(kind)
    sign, size = (1 if exact > 0 else -1), abs(exact)
    # The exponent of the leading bit, at least the least normal exponent: subnormals share a
    # unit.
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, int(limits.minexp))
    unit = Fraction(2) ** (exponent - int(limits.nmant))
    count = size / unit
    whole = count.numerator // count.denominator
    rest = count - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    rounded = whole * unit
    if rounded > LARGEST[kind]:
        return sign * inf
    return copysign(float(rounded), sign)


def exact_fma(kind: type[np.floating[Any]], a: float, b: float, c: float) -> float:
    """a * b + c rounded once, with IEEE 754's rules for zeros, infinities and NaN."""
    if any(x != x for x in (a, b, c)):
        return nan
    if not (isfinite(a) and isfinite(b)):
        if a == 0 or b == 0:
            return nan
        product = copysign(inf, copysign(1.0, a) * copysign(1.0, b))
        return nan if c == -product else product
    if not isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return round_to(kind, exact)
    negative = copysign(1.0, a) * copysign(1.0, b) < 0
    if (a == 0 or b == 0) and c == 0:
        # Two zeros: the sign is negative where both are.
        return -0.0 if negative and copysign(1.0, c) < 0 else 0.0
    return 0.0


def fma(a: Array, b: Array, c: Array) -> Array:
    """A fused multiply-add, cell by cell."""
    kind = a.dtype.type
    flat = zip(a.ravel(), b.ravel(), c.ravel(), strict=True)
    values = [exact_fma(kind, float(x), float(y), float(z)) for x, y, z in flat]
    return np.array(values, dtype=kind).reshape(a.shape)


def power(base: Array, exponent: int) -> Array:
    """
    An integer power as documented: by squaring from the highest bit of the exponent down; a
    negative power is the reciprocal of the positive power.
    """
    result = np.ones_like(base)
    for bit in range(abs(exponent).bit_length() - 1, -1, -1):
        result = result * result
        if abs(exponent) >> bit & 1:
            result = result * base
    return np.divide(np.ones_like(base), result) if exponent < 0 else result


def reciprocal_root(x: Array) -> Array:
    """Rounded twice: the root, then the reciprocal."""
    return np.divide(np.ones_like(x), np.sqrt(x))


def extreme(*, greatest: bool, skips_nan: bool) -> Callable[[Array, Array], Array]:
    """
    An extremum with -0.0 below 0.0, as in MLIR; a NaN operand gives NaN, or the other operand. The
    results of NumPy's functions for two zeros, and for a signaling NaN, depend on the processor.
    """

    def evaluate(a: Array, b: Array) -> Array:
        least = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
        most = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
        left, right = (b, a) if skips_nan else (a, b)
        return np.where(
            np.isnan(a), left, np.where(np.isnan(b), right, most if greatest else least)
        )

    return evaluate


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": reciprocal_root,
    "maximum": extreme(greatest=True, skips_nan=False),
    "minimum": extreme(greatest=False, skips_nan=False),
    "maxnum": extreme(greatest=True, skips_nan=True),
    "minnum": extreme(greatest=False, skips_nan=True),
    "copysign": np.copysign,
    "fma": fma,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "oeq": np.equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "olt": np.less,
    "ole": np.less_equal,
    # Ordered comparisons: a NaN is neither less nor greater.
    "one": lambda a, b: (a < b) | (a > b),
}


def region(bounds: Box, box: Box, offset: tuple[int, ...]) -> tuple[slice, ...]:
    """Where a box, moved by an offset, lies in the array of a buffer."""
    return tuple(
        slice(low + d - origin, high + d - origin)
        for low, high, d, origin in zip(box.lower, box.upper, offset, bounds.lower, strict=True)
    )


class Evaluation:
    """Evaluates the expressions of one update over one box."""

    def __init__(self, program: Program, box: Box, arrays: dict[str, Array], inputs: Inputs):
        self.program, self.box, self.arrays, self.inputs = program, box, arrays, inputs
        self.kind = DTYPES[program.element]
        self.known: dict[Expression, Array] = {}

    def value(self, node: Expression) -> Array:
        """The value of an expression in every cell of the box."""
        if node not in self.known:
            self.known[node] = self.evaluate(node)
        return self.known[node]

    def evaluate(self, node: Expression) -> Array:
        match node:
            case Tap(buffer=name, offset=offset):
                field = self.program.buffer(name)
                place: list[slice | None] = list(region(field.bounds, self.box, offset))
                for axis in range(self.program.rank):
                    if field.axes is not None and axis not in field.axes:
                        place[axis] = None
                cells = self.arrays[name][tuple(place)].astype(self.kind)
                return np.broadcast_to(cells, self.box.shape)
            case Scalar(name=name):
                return np.full(self.box.shape, self.kind(self.inputs.scalars[name]))
            case Constant(value=value):
                return np.full(self.box.shape, self.kind(value))
            case Coordinate(axis=axis, shift=shift):
                line = np.arange(self.box.lower[axis] + shift, self.box.upper[axis] + shift)
                shape = [-1 if k == axis else 1 for k in range(self.program.rank)]
                return np.broadcast_to(line.reshape(shape), self.box.shape).astype(self.kind)
            case Call(name=name, arguments=arguments):
                return OPERATIONS[name](*(self.value(a) for a in arguments))
            case Power(base=base, exponent=exponent):
                return power(self.value(base), exponent)
            case Select():
                holds = COMPARISONS[node.predicate](self.value(node.left), self.value(node.right))
                return np.where(holds, self.value(node.then), self.value(node.otherwise))
            case _:
                raise TypeError(f"{node} is no expression")


def run_update(program: Program, update: Update, arrays: dict[str, Array], inputs: Inputs) -> None:
    """Compute all results of an update, then store the results."""
    computed = [
        Evaluation(program, store.box, arrays, inputs).value(update.results[store.result])
        for store in update.stores
    ]
    for store, result in zip(update.stores, computed, strict=True):
        bounds = program.buffer(store.buffer).bounds
        arrays[store.buffer][region(bounds, store.box, (0,) * program.rank)] = result


def run(program: Program, inputs: Inputs, steps: int) -> dict[str, str]:
    """
    Run the unfused program on the inputs' arrays, in place. Returns, for each carried name, the
    buffer of the name after the run.
    """
    names = {b.name: b.name for b in program.buffers}
    for _ in range(steps):
        arrays = {name: inputs.arrays[buffer] for name, buffer in names.items()}
        for update in program.updates:
            run_update(program, update, arrays, inputs)
        rotated = {
            name: names[program.carried[source]]
            for name, source in zip(program.carried, program.rotation, strict=True)
        }
        names |= rotated
    return {name: names[name] for name in program.carried}
