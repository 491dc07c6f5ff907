"""From an expression of SymPy to operations on single cells, as the text of MLIR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from timetile.frontend.devito.evaluation import number_of
from timetile.frontend.devito.library import NotCovered, sympy
from timetile.frontend.devito.ordering import Ordering

FUNCTIONS = {
    "Abs": "math.absf", "acos": "math.acos", "acosh": "math.acosh", "asin": "math.asin",
    "asinh": "math.asinh", "atan": "math.atan", "atanh": "math.atanh", "ceiling": "math.ceil",
    "cos": "math.cos", "cosh": "math.cosh", "erf": "math.erf", "exp": "math.exp",
    "floor": "math.floor", "log": "math.log", "sin": "math.sin", "sinh": "math.sinh",
    "sqrt": "math.sqrt", "tan": "math.tan", "tanh": "math.tanh",
}  # fmt: skip
"""Operations of functions with one argument, by the names of SymPy's classes."""

COMPARISONS = {
    "Equality": "oeq", "CondEq": "oeq", "Unequality": "une", "CondNe": "une", "Ne": "une",
    "StrictLessThan": "olt", "Lt": "olt", "LessThan": "ole", "Le": "ole",
    "StrictGreaterThan": "ogt", "Gt": "ogt", "GreaterThan": "oge", "Ge": "oge",
}  # fmt: skip

MOST_FACTORS = 16
"""The largest whole exponent written as products."""

Leaf = Callable[[Any], str | None]
"""The value of an expression known from elsewhere; None if operations must compute the value."""


OTHERS = ("And", "Or", "Not", "Max", "Min", "Piecewise", "ExprCondPair", "BooleanTrue")
"""Further classes with operations."""


def check_operations(expression: Any) -> None:
    """Raise NotCovered for an expression without an operation."""
    if getattr(expression, "is_Indexed", False):
        return
    for part in expression.args:
        check_operations(part)
    is_plain = expression.is_Atom or expression.is_Add or expression.is_Mul or expression.is_Pow
    names = {kind.__name__ for kind in type(expression).__mro__}
    if is_plain or names & {*FUNCTIONS, *COMPARISONS, *OTHERS}:
        return
    name = type(expression).__name__
    raise NotCovered(f"it computes {expression}, and timetile has no operation for {name}")


def nowhere(expression: Any) -> str | None:
    """No value comes from elsewhere."""
    return None


@dataclass
class Cells:
    """
    Writes operations on values of `kind`. `leaf` gives values from elsewhere: cells of indexed
    functions, scalars. `is_outside` says which leaves no operation computes. `reciprocal` gives the
    reciprocal of an expression, if known. `prefix` begins the names of values.
    """

    kind: str
    prefix: str
    leaf: Leaf
    is_outside: Callable[[Any], bool]
    reciprocal: Leaf = nowhere
    lines: list[str] = field(default_factory=list[str])
    known: dict[Any, str] = field(default_factory=dict[Any, str])
    ordering: Ordering = field(default_factory=Ordering)

    def add(self, text: str) -> str:
        """Append an operation, and return the result's name."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def binary(self, operation: str, left: str, right: str) -> str:
        """An operation of two floats."""
        return self.add(f"arith.{operation} {left}, {right} : {self.kind}")

    def number(self, value: float) -> str:
        """A constant."""
        key = ("number", value)
        if key not in self.known:
            self.known[key] = self.add(f"arith.constant {value:.17e} : {self.kind}")
        return self.known[key]

    def value(self, expression: Any) -> str:
        """The name of an expression's value; equal expressions are computed once."""
        if expression not in self.known:
            found = self.leaf(expression)
            self.known[expression] = self.compute(expression) if found is None else found
        return self.known[expression]

    def compute(self, expression: Any) -> str:
        """Write the operations of an expression that is no leaf."""
        name = type(expression).__name__
        if expression.is_Number or expression.is_NumberSymbol:
            return self.number(number_of(expression))
        if expression.is_Add:
            return self.sum(expression.args)
        if expression.is_Mul:
            return self.product(expression.args)
        if expression.is_Pow:
            return self.power(*expression.args)
        if name in ("Max", "Min"):
            return self.extremum("maximumf" if name == "Max" else "minimumf", expression.args)
        if name in FUNCTIONS:
            return self.add(f"{FUNCTIONS[name]} {self.value(expression.args[0])} : {self.kind}")
        if name == "Piecewise":
            return self.choice(expression.args)
        raise NotCovered(f"it computes {expression}, and timetile has no operation for {name}")

    def sum(self, terms: Any) -> str:
        """A sum: added terms first, subtracted terms after."""
        terms = self.ordering.ordered(terms)
        minus = [term for term in terms if is_negative(term)]
        plus = [term for term in terms if not is_negative(term)]
        total = self.value(plus[0] if plus else minus.pop(0))
        for term in plus[1:]:
            total = self.binary("addf", total, self.value(term))
        for term in minus:
            total = self.binary("subf", total, self.value(-term))
        return total

    def product(self, factors: Any) -> str:
        """
        A product: factors known to `leaf` together as one, then other factors, then denominators.
        """
        scalars = [f for f in factors if f.is_Number or self.is_outside(f)]
        rest = [factor for factor in factors if factor not in scalars]
        below = [f for f in rest if f.is_Pow and f.args[1].is_Number and f.args[1] < 0]
        above = [factor for factor in rest if factor not in below]
        scalar = sympy.Mul(*scalars)
        names = [self.value(factor) for factor in self.ordering.ordered(above)]
        if scalar not in (1, -1) or not names:
            names.insert(0, self.value(scalar))
        total = names[0]
        for name in names[1:]:
            total = self.binary("mulf", total, name)
        if scalar == -1 and above:
            total = self.add(f"arith.negf {total} : {self.kind}")
        bottoms: list[str] = []
        for factor in below:
            base, exponent = factor.args
            inverse = self.inverse(base, exponent)
            if inverse is None:
                bottoms.append(self.power(base, -exponent))
            else:
                total = self.binary("mulf", total, inverse)
        if not bottoms:
            return total
        bottom = bottoms[0]
        for name in bottoms[1:]:
            bottom = self.binary("mulf", bottom, name)
        return self.binary("divf", total, bottom)

    def inverse(self, base: Any, exponent: Any) -> str | None:
        """
        The reciprocal of the base for an exponent of -1, if known from elsewhere; otherwise None.
        """
        return self.reciprocal(base) if exponent == -1 else None

    def power(self, base: Any, exponent: Any) -> str:
        """A power: products for a small whole exponent, a root for an exponent of a half."""
        inverse = self.inverse(base, exponent)
        if inverse is not None:
            return inverse
        if exponent.is_Number and float(exponent).is_integer() and abs(exponent) <= MOST_FACTORS:
            count = int(exponent)
            total = factor = self.value(base)
            for _ in range(abs(count) - 1):
                total = self.binary("mulf", total, factor)
            if count == 0:
                return self.number(1.0)
            return total if count > 0 else self.binary("divf", self.number(1.0), total)
        if exponent.is_Number and abs(float(exponent)) == 0.5:
            root = self.add(f"math.sqrt {self.value(base)} : {self.kind}")
            return root if exponent > 0 else self.binary("divf", self.number(1.0), root)
        return self.add(f"math.powf {self.value(base)}, {self.value(exponent)} : {self.kind}")

    def extremum(self, operation: str, arguments: Any) -> str:
        """The largest or the smallest of several values."""
        total = self.value(arguments[0])
        for argument in arguments[1:]:
            total = self.binary(operation, total, self.value(argument))
        return total

    def condition(self, expression: Any) -> str:
        """The name of a truth value."""
        name = type(expression).__name__
        if expression in (sympy.true, sympy.false):
            return self.add(f"arith.constant {'true' if expression == sympy.true else 'false'}")
        if name in ("And", "Or"):
            operation = "andi" if name == "And" else "ori"
            total = self.condition(expression.args[0])
            for argument in expression.args[1:]:
                total = self.add(f"arith.{operation} {total}, {self.condition(argument)} : i1")
            return total
        if name == "Not":
            true = self.add("arith.constant true")
            return self.add(f"arith.xori {self.condition(expression.args[0])}, {true} : i1")
        if name not in COMPARISONS:
            raise NotCovered(f"it asks for {expression}, and timetile has no operation for {name}")
        left, right = map(self.value, expression.args)
        return self.add(f"arith.cmpf {COMPARISONS[name]}, {left}, {right} : {self.kind}")

    def choice(self, pieces: Any) -> str:
        """
        The value of the first piece with a true condition. Raises NotCovered if possibly no
        condition holds.
        """
        *others, last = pieces
        if last[1] != sympy.true:
            raise NotCovered("it has a Piecewise without a last case; add (value, True)")
        total = self.value(last[0])
        for piece in reversed(others):
            total = self.select(self.condition(piece[1]), self.value(piece[0]), total)
        return total

    def select(self, condition: str, yes: str, no: str) -> str:
        """One of two values."""
        return self.add(f"arith.select {condition}, {yes}, {no} : {self.kind}")


def is_negative(term: Any) -> bool:
    """Whether the term's numeric factor is negative."""
    return bool(term.as_coeff_Mul()[0].is_negative)
