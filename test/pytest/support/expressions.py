"""Cell expressions as trees: the meaning of an update, independent of any IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Offset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Expression:
    """Base of the trees; equal trees are different nodes: a shared node is computed once."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return ()

    def walk(self) -> Iterator[Expression]:
        """The node and all nodes below, operands first."""
        for operand in self.operands:
            yield from operand.walk()
        yield self

    def __add__(self, other: Expression | float) -> Expression:
        return call("add", self, other)

    def __sub__(self, other: Expression | float) -> Expression:
        return call("sub", self, other)

    def __mul__(self, other: Expression | float) -> Expression:
        return call("mul", self, other)

    def __rmul__(self, other: float) -> Expression:
        return call("mul", other, self)

    def __truediv__(self, other: Expression | float) -> Expression:
        return call("div", self, other)

    def __neg__(self) -> Expression:
        return call("neg", self)


@dataclass(frozen=True, eq=False)
class Tap(Expression):
    """The cell of a buffer at an offset, converted from the buffer's type to the program's type."""

    buffer: str
    offset: Offset


@dataclass(frozen=True, eq=False)
class Scalar(Expression):
    """A scalar argument of the program."""

    name: str


@dataclass(frozen=True, eq=False)
class Coordinate(Expression):
    """The cell's coordinate along an axis, plus a shift, as a float."""

    axis: int
    shift: int = 0


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A number."""

    value: float


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """An operation by name: see `programs.OPERATIONS` and `reference.OPERATIONS`."""

    name: str
    arguments: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Power(Expression):
    """An integer power."""

    base: Expression
    exponent: int

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.base,)


@dataclass(frozen=True, eq=False)
class Select(Expression):
    """
    `then` where the comparison (`olt`, `oge`, ...) of left and right holds, `otherwise` elsewhere.
    """

    predicate: str
    left: Expression
    right: Expression
    then: Expression
    otherwise: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.left, self.right, self.then, self.otherwise)


def expression(value: Expression | float) -> Expression:
    """A number as a constant."""
    return value if isinstance(value, Expression) else Constant(float(value))


def call(name: str, *arguments: Expression | float) -> Call:
    """An operation on expressions and numbers."""
    return Call(name, tuple(expression(argument) for argument in arguments))


def weighted_sum(terms: dict[Offset, float], buffer: str = "u") -> Expression:
    """The sum of a buffer's taps times their weights, in the order given."""
    total: Expression | None = None
    for offset, weight in terms.items():
        term = Tap(buffer, offset) * weight
        total = term if total is None else total + term
    assert total is not None, "a sum has at least one term"
    return total
