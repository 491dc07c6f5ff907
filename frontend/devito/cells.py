"""From an expression of SymPy to operations on single cells, as the text of MLIR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.differences import WeightedDifference, weighted_differences
from timetile.frontend.devito.evaluation import least_divisor, number_of
from timetile.frontend.devito.kinds import NARROW, Kinds, is_divisor, is_integer_kind, widest_kind
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

FLOATS = {"f32": np.float32, "f64": np.float64}
"""NumPy's types of floats."""

MOST_FACTORS = 16
"""The largest whole exponent written as products."""

Leaf = Callable[[Any], str | None]
"""The value of an expression known from elsewhere; None if operations must compute the value."""

TypedLeaf = Callable[[Any, str], str | None]
"""As Leaf, of a type."""

OF_INTEGERS = {
    "addf": "addi", "subf": "subi", "mulf": "muli", "divf": "divsi", "maximumf": "maxsi",
    "minimumf": "minsi",
}  # fmt: skip
"""The integer operation for each operation on floats."""

SIGNED = {"oeq": "eq", "une": "ne", "olt": "slt", "ole": "sle", "ogt": "sgt", "oge": "sge"}
"""The integer comparison for each comparison of floats."""


OTHERS = (
    "And", "Or", "Not", "Max", "Min", "Piecewise", "ExprCondPair", "BooleanTrue", "IntDiv", "Mod",
    "INT", "SafeInv", "atan2",
)  # fmt: skip
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


def c_conversion(have: str, want: str) -> str:
    """The operation from a type to another."""
    if is_integer_kind(have):
        if not is_integer_kind(want):
            return "sitofp"
        return "extsi" if int(have[1:]) < int(want[1:]) else "trunci"
    if is_integer_kind(want):
        return "fptosi"
    return "extf" if have == "f32" else "truncf"


@dataclass
class Cells:
    """
    Writes operations on values. All values are of `kind`, or with `kinds` of the types of
    expressions. `leaf` gives values from elsewhere: cells of indexed functions, scalars.
    `is_outside` says which leaves no operation computes. `reciprocal` gives the reciprocal of an
    expression, if known. `prefix` begins the names of values. With a `free_order`, sums stay plain.
    """

    kind: str
    prefix: str
    leaf: TypedLeaf
    is_outside: Callable[[Any], bool]
    reciprocal: Leaf = nowhere
    kinds: Kinds | None = None
    free_order: bool = False
    lines: list[str] = field(default_factory=list[str])
    known: dict[Any, str] = field(default_factory=dict[Any, str])
    ordering: Ordering = field(default_factory=Ordering)

    def own(self, expression: Any) -> str:
        """The type in which an expression is computed."""
        return self.kind if self.kinds is None else self.kinds.of(expression)

    def add(self, text: str) -> str:
        """Append an operation, and return the result's name."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def binary(self, operation: str, left: str, right: str, kind: str) -> str:
        """An operation of two numbers, named by the operation of floats."""
        name = OF_INTEGERS[operation] if is_integer_kind(kind) else operation
        return self.add(f"arith.{name} {left}, {right} : {kind}")

    def number(self, value: float, kind: str) -> str:
        """A constant."""
        key = ("number", value, kind)
        if key not in self.known:
            text = str(int(value)) if is_integer_kind(kind) else f"{value:.17e}"
            self.known[key] = self.add(f"arith.constant {text} : {kind}")
        return self.known[key]

    def converted(self, name: str, have: str, want: str) -> str:
        """A value in another type, as C converts."""
        if have == want:
            return name
        key = ("converted", name, want)
        if key not in self.known:
            wide = "i64" if want == "i64" else "i32"
            if want in NARROW and not is_integer_kind(have):
                name, have = self.converted(name, have, wide), wide
            operation = c_conversion(have, want)
            self.known[key] = self.add(f"arith.{operation} {name} : {have} to {want}")
        return self.known[key]

    def value(self, expression: Any, kind: str | None = None) -> str:
        """
        The name of an expression's value in a type, by default the expression's own; equal
        expressions are computed once.
        """
        own = self.own(expression)
        want = own if kind is None else kind
        # A scalar is made in the wanted type, unless the type has less numbers.
        made = want if self.is_scalar(expression) and widest_kind(own, want) == want else own
        if expression.is_Number or expression.is_NumberSymbol:
            whole = expression.is_Integer
            return self.number(int(expression) if whole else number_of(expression), made)
        key = expression, made
        if key not in self.known:
            found = self.leaf(expression, made)
            self.known[key] = self.compute(expression) if found is None else found
        return self.converted(self.known[key], made, want)

    def is_scalar(self, expression: Any) -> bool:
        """Whether the value is a number, or comes from elsewhere and is equal for all cells."""
        return bool(expression.is_Number or self.is_outside(expression))

    def compute(self, expression: Any) -> str:
        """Write the operations of an expression that is no leaf."""
        name = type(expression).__name__
        kind = self.own(expression)
        if expression.is_Add:
            return self.sum(expression.args, kind)
        if expression.is_Mul:
            return self.product(expression.args, kind)
        if expression.is_Pow:
            base, exponent = expression.args
            return self.power(base, exponent, kind)
        if name in ("Max", "Min"):
            operation = "maximumf" if name == "Max" else "minimumf"
            return self.extremum(operation, expression.args, kind)
        if name in ("IntDiv", "Mod", "INT"):
            return self.whole(name, expression, kind)
        if name == "atan2":
            first, second = (self.value(argument, kind) for argument in expression.args)
            return self.add(f"math.atan2 {first}, {second} : {kind}")
        if name in FUNCTIONS:
            return self.function(name, expression.args[0], kind)
        if name == "Piecewise":
            return self.choice(expression.args, kind)
        if name == "SafeInv":
            base, guard = expression.args
            return self.safe_reciprocal(base, guard, kind)
        raise NotCovered(f"it computes {expression}, and timetile has no operation for {name}")

    def function(self, name: str, argument: Any, kind: str) -> str:
        """A function with one argument. Integers are rounded already."""
        value = self.value(argument, kind)
        if not is_integer_kind(kind):
            return self.add(f"{FUNCTIONS[name]} {value} : {kind}")
        return self.add(f"math.absi {value} : {kind}") if name == "Abs" else value

    def whole(self, name: str, expression: Any, kind: str) -> str:
        """A quotient or a remainder of integers, or a number made an integer."""
        if not is_integer_kind(kind):
            raise NotCovered(f"it computes {expression} of floats")
        if name == "INT":
            return self.value(expression.args[0], kind)
        left, right = (self.value(argument, kind) for argument in expression.args)
        operation = "divsi" if name == "IntDiv" else "remsi"
        return self.add(f"arith.{operation} {left}, {right} : {kind}")

    def sum(self, terms: Any, kind: str) -> str:
        """
        A sum: terms constant in time first, and subtracted terms behind the first added one.
        Differences as in `u.dt2` are then small early, and round little (measured in gradients of
        size 100 summed by parts in two ways: they differ by 4e-13, and with all added terms first
        by 6e-13). Weighted differences come last.
        """
        known = self.ordering
        pairs = self.differences_in(terms, kind)
        names = [self.difference(pair, kind) for pair in pairs]
        used = {term for pair in pairs for term in pair.terms}
        terms = known.ordered(term for term in terms if term not in used)
        fixed = [term for term in terms if not known.key(term)[0]]
        in_turn = [*differences(fixed), *differences(terms[len(fixed) :])]
        first = next((term for term in in_turn if not is_negative(term)), (*in_turn, None)[0])
        if first is None:
            total = names.pop(0)
        else:
            in_turn.remove(first)
            total = self.value(first, kind)
        for term in in_turn:
            if is_negative(term):
                total = self.binary("subf", total, self.value(-term, kind), kind)
            else:
                total = self.binary("addf", total, self.value(term, kind), kind)
        for name in names:
            total = self.binary("addf", total, name, kind)
        return total

    def differences_in(self, terms: Any, kind: str) -> list[WeightedDifference]:
        """The weighted differences in a sum, of floats of the sum's own type alone."""
        if self.free_order or is_integer_kind(kind) or {self.own(t) for t in terms} != {kind}:
            return []
        found = weighted_differences(terms, self.is_scalar, self.ordering)
        return [pair for pair in found if self.own(pair.plus) == self.own(pair.minus) == kind]

    def difference(self, pair: WeightedDifference, kind: str) -> str:
        """The value of a weighted difference."""
        plus, minus = self.value(pair.plus, kind), self.value(pair.minus, kind)
        between = self.binary("subf", plus, minus, kind)
        return self.binary("mulf", self.value(pair.weight, kind), between, kind)

    def product(self, factors: Any, kind: str) -> str:
        """
        A product: factors known to `leaf` together as one, then other factors, then denominators.
        """
        scalars = [f for f in factors if f.is_Number or self.is_outside(f)]
        if is_integer_kind(kind):
            # A quotient of integers is rounded: no divisor is known as a reciprocal.
            scalars = [factor for factor in scalars if not is_divisor(factor)]
        rest = [factor for factor in factors if factor not in scalars]
        below = [factor for factor in rest if is_divisor(factor)]
        above = [factor for factor in rest if factor not in below]
        scalar = sympy.Mul(*scalars)
        names = [self.value(factor, kind) for factor in self.ordering.ordered(above)]
        if scalar not in (1, -1) or not names:
            names.insert(0, self.value(scalar, kind))
        total = names[0]
        for name in names[1:]:
            total = self.binary("mulf", total, name, kind)
        if scalar == -1 and above:
            total = self.negative(total, kind)
        bottoms: list[str] = []
        for factor in below:
            base, exponent = factor.args
            inverse = self.inverse(base, exponent, kind)
            if inverse is None:
                bottoms.append(self.power(base, -exponent, kind))
            else:
                total = self.binary("mulf", total, inverse, kind)
        if not bottoms:
            return total
        bottom = bottoms[0]
        for name in bottoms[1:]:
            bottom = self.binary("mulf", bottom, name, kind)
        return self.binary("divf", total, bottom, kind)

    def negative(self, name: str, kind: str) -> str:
        """The negative of a number."""
        if is_integer_kind(kind):
            return self.binary("subf", self.number(0, kind), name, kind)
        return self.add(f"arith.negf {name} : {kind}")

    def inverse(self, base: Any, exponent: Any, kind: str) -> str | None:
        """
        The reciprocal of the base for an exponent of -1, if known from elsewhere; otherwise None.
        """
        found = self.reciprocal(base) if exponent == -1 and not is_integer_kind(kind) else None
        return None if found is None else self.converted(found, self.own(base), kind)

    def power(self, base: Any, exponent: Any, kind: str) -> str:
        """A power: products for a small whole exponent, a root for an exponent of a half."""
        inverse = self.inverse(base, exponent, kind)
        if inverse is not None:
            return inverse
        if exponent.is_Number and float(exponent).is_integer() and abs(exponent) <= MOST_FACTORS:
            count = int(exponent)
            total = factor = self.value(base, kind)
            for _ in range(abs(count) - 1):
                total = self.binary("mulf", total, factor, kind)
            if count == 0:
                return self.number(1.0, kind)
            return total if count > 0 else self.binary("divf", self.number(1.0, kind), total, kind)
        if is_integer_kind(kind):
            raise NotCovered(f"it computes the power {exponent} of an integer")
        if exponent.is_Number and abs(float(exponent)) == 0.5:
            root = self.add(f"math.sqrt {self.value(base, kind)} : {kind}")
            return root if exponent > 0 else self.binary("divf", self.number(1, kind), root, kind)
        return self.add(
            f"math.powf {self.value(base, kind)}, {self.value(exponent, kind)} : {kind}"
        )

    def extremum(self, operation: str, arguments: Any, kind: str) -> str:
        """The largest or the smallest of several values."""
        total = self.value(arguments[0], kind)
        for argument in arguments[1:]:
            total = self.binary(operation, total, self.value(argument, kind), kind)
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
        kind = widest_kind(*map(self.own, expression.args))
        left, right = (self.value(argument, kind) for argument in expression.args)
        asked = COMPARISONS[name]
        if is_integer_kind(kind):
            return self.add(f"arith.cmpi {SIGNED[asked]}, {left}, {right} : {kind}")
        return self.add(f"arith.cmpf {asked}, {left}, {right} : {kind}")

    def choice(self, pieces: Any, kind: str) -> str:
        """
        The value of the first piece with a true condition. Raises NotCovered if possibly no
        condition holds.
        """
        *others, last = pieces
        if last[1] != sympy.true:
            raise NotCovered("it has a Piecewise without a last case; add (value, True)")
        total = self.value(last[0], kind)
        for piece in reversed(others):
            yes = self.value(piece[0], kind)
            total = self.select(self.condition(piece[1]), yes, total, kind)
        return total

    def safe_reciprocal(self, base: Any, guard: Any, kind: str) -> str:
        """
        The reciprocal of the base, or 0 where the base or a guard is less than Devito's least
        divisor.
        """
        floats = FLOATS[widest_kind(self.own(guard), "f32")]
        least = self.number(float(least_divisor(floats)), kind)
        value, other = self.value(base, kind), self.value(guard, kind)
        small = self.add(f"arith.cmpf olt, {value}, {least} : {kind}")
        if other != value:
            too = self.add(f"arith.cmpf olt, {other}, {least} : {kind}")
            small = self.add(f"arith.ori {small}, {too} : i1")
        made = self.binary("divf", self.number(1.0, kind), value, kind)
        return self.select(small, self.number(0.0, kind), made, kind)

    def select(self, condition: str, yes: str, no: str, kind: str) -> str:
        """One of two values."""
        return self.add(f"arith.select {condition}, {yes}, {no} : {kind}")


def differences(terms: list[Any]) -> list[Any]:
    """Terms in order, with the subtracted ones behind the first added one."""
    minus = [term for term in terms if is_negative(term)]
    plus = [term for term in terms if not is_negative(term)]
    return [*plus[:1], *minus, *plus[1:]]


def is_negative(term: Any) -> bool:
    """Whether the term's numeric factor is negative."""
    return bool(term.as_coeff_Mul()[0].is_negative)
