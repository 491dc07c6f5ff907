"""NumPy's meaning of an operation on operands with types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from timetile.frontend.errors import StencilError
from timetile.frontend.field_types import holds_integers, in_range
from timetile.frontend.number_types import Typed, common_type, converted, is_weak
from timetile.frontend.operations import (
    COMPARISONS,
    INTEGERS,
    LOGIC,
    SAME,
    Arithmetic,
    Cast,
    Choice,
    Comparison,
    Constant,
    Logic,
    NamedCall,
    Operation,
)
from timetile.frontend.values import Value

PARENTHESES = "`&`, `|`, `^` and `~` join conditions; write (a < b) & (b < c), in parentheses"

REMAINDERS = "`//` and `%` are of a coordinate and a positive int; write np.floor(a / b) for floats"

DIFFERENCE = (
    "conditions have no difference, as in NumPy; write a ^ b for conditions that differ, ~a for "
    "the opposite, or timetile.where(a, 1.0, 0.0) for a number"
)

TRUTH = {
    "add": "bitwise_or",
    "multiply": "bitwise_and",
    "maximum": "bitwise_or",
    "minimum": "bitwise_and",
    "fmax": "bitwise_or",
    "fmin": "bitwise_and",
}
"""What NumPy's arithmetic makes of two truth values."""

TypingRule = Callable[["TypingRules", str, Sequence[Typed]], Typed]


class TypingRules:
    """
    The types of one traced value. `element` is the type of floats without a type of their own;
    `whole`: some field is of integers or of truth values.
    """

    def __init__(self, value: Value, element: str, whole: bool):
        self.source, self.place = value.operation, value.place
        self.element, self.whole = element, whole

    def leaf(self, kind: str, *, weak: bool = False) -> Typed:
        """The value itself, without operands."""
        assert not isinstance(self.source, NamedCall | Cast)
        return Typed(self.source, kind, (), self.place, weak)

    def new(self, operation: Operation, kind: str, *operands: Typed, weak: bool = False) -> Typed:
        """A value at the place of the traced value."""
        return Typed(operation, kind, operands, self.place, weak)

    def number(self, number: float | int | bool, kind: str) -> Typed:
        """A constant."""
        return self.new(Constant(number), kind)

    def refused(self, reason: str) -> StencilError:
        """An error at the place of the value."""
        return StencilError(reason, self.place)

    def together(self, operands: Sequence[Typed]) -> tuple[str, list[Typed]]:
        """The common type of operands, and the operands in that type."""
        kind = common_type(operands, self.element)
        return kind, [converted(operand, kind) for operand in operands]

    def as_floats(self, operands: Sequence[Typed]) -> tuple[str, list[Typed]]:
        """The common type of operands as floats, and the operands in that type."""
        kind = common_type(operands, self.element)
        if holds_integers(kind):
            kind = self.element if is_weak(operands, kind) or kind == "bool" else "float64"
        return kind, [converted(operand, kind) for operand in operands]

    def call(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The result of a function by NumPy's name."""
        if name in RULES:
            return RULES[name](self, name, operands)
        if name in COMPARISONS:
            return self.compared(name, operands)
        kind = common_type(operands, self.element)
        if holds_integers(kind) and kind != "bool" and name in INTEGERS:
            return self.whole_number(name, operands)
        if kind == "bool" and (found := self.of_truth_values(name, operands)):
            return found
        return self.float_number(name, operands)

    def float_number(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The result of a function of floats."""
        weak = is_weak(operands, common_type(operands, self.element))
        kind, same = self.as_floats(operands)
        return self.new(Arithmetic(name), kind, *same, weak=weak)

    def of_truth_values(self, name: str, operands: Sequence[Typed]) -> Typed | None:
        """
        Arithmetic on truth values alone, with NumPy's results: a sum is `|`, a product is `&`. None
        for operations whose result is no truth value. Raises StencilError for differences.
        """
        if name == "subtract":
            raise self.refused(DIFFERENCE)
        if name == "absolute":
            return operands[0]
        return self.new(Logic(TRUTH[name]), "bool", *operands) if name in TRUTH else None

    def of_one_bit(self, value: Typed, kind: str) -> Typed:
        """A truth value as 1 or 0; an int64 is weak, as beside a number of Python."""
        return replace(converted(value, kind), weak=kind == "int64")

    def whole_number(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The result of a function of integers."""
        kind, same = self.together(operands)
        if name == "absolute" and kind.startswith("u"):
            return same[0]
        return self.new(Arithmetic(name), kind, *same, weak=is_weak(operands, kind))

    def compared(self, name: str, operands: Sequence[Typed]) -> Typed:
        """A comparison. Integers of Python beyond the other operand's type are compared, too."""
        strong = [each.type for each in operands if not each.weak]
        literals = [each for each in operands if each.is_literal]
        far = literals and strong and holds_integers(strong[0]) and strong[0] != "bool"
        if far and not in_range(int(literals[0].number or 0), strong[0]):
            if strong[0] == "uint64":
                raise self.refused(
                    "a number of uint64 is compared with a number below 0; compare with 0"
                )
            operands = [converted(each, "int64") for each in operands]
        kind, same = self.together(operands)
        if kind == "bool":
            kind, same = self.as_floats(operands)
        return self.new(Comparison(name), "bool", *same)

    def choice(self, condition: Typed, if_true: Typed, if_false: Typed) -> Typed:
        """One of two values, by a condition."""
        if condition.type != "bool":
            raise self.refused(
                "where takes a condition first; compare, as timetile.where(u[0] > 0, a, b)"
            )
        both = [if_true, if_false]
        kind = common_type(both, self.element)
        mixed = {each.type == "bool" for each in both} == {True, False}
        if mixed and not self.whole:
            kind = self.element
        same = [converted(each, kind) for each in both]
        return self.new(Choice(), kind, condition, *same, weak=is_weak(both, kind))

    # Functions with special rules.

    def bitwise(self, name: str, operands: Sequence[Typed]) -> Typed:
        """An operation of truth values, or of the bits of integers."""
        kind = common_type(operands, self.element)
        if kind == "bool":
            return self.new(Logic(SAME.get(name, name)), "bool", *operands)
        typed = any(holds_integers(each.type) and not each.weak for each in operands)
        if name in SAME or not holds_integers(kind) or not typed:
            raise self.refused(PARENTHESES)
        return self.whole_number(name, operands)

    def inverted(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The other truth value, or the other bits of an integer."""
        (value,) = operands
        if value.type == "bool":
            return self.new(Logic("bitwise_xor"), "bool", value, self.number(True, "bool"))
        if name == "logical_not" or not holds_integers(value.type) or value.weak:
            raise self.refused(PARENTHESES)
        return self.new(Arithmetic("bitwise_xor"), value.type, value, self.number(-1, value.type))

    def shifted(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The bits of an integer, moved."""
        if not all(holds_integers(each.type) for each in operands):
            raise self.refused("`<<` and `>>` are of integers; write a * 2**b for floats")
        if all(each.type == "bool" for each in operands):
            raise self.refused("`<<` and `>>` are of integers; write a.astype(np.int32) << 1")
        return self.whole_number(name, operands)

    def divided(self, name: str, operands: Sequence[Typed]) -> Typed:
        """`//` and `%` of integers, rounded down as in Python; 0 for a divisor of 0."""
        value, divisor = operands
        typed = [each for each in operands if holds_integers(each.type) and not each.weak]
        kind = common_type(operands, self.element)
        if not typed:
            number = divisor.number
            if not holds_integers(value.type) or not isinstance(number, int) or number <= 0:
                raise self.refused(REMAINDERS)
            quotient = self.new(Arithmetic("floor_divide"), "int64", value, divisor, weak=True)
            if name == "floor_divide":
                return quotient
            product = self.new(Arithmetic("multiply"), "int64", quotient, divisor, weak=True)
            return self.new(Arithmetic("subtract"), "int64", value, product, weak=True)
        if not holds_integers(kind) or kind == "bool":
            raise self.refused(REMAINDERS)
        if name == "floor_divide" or kind.startswith("u"):
            return self.whole_number("floor_divide" if name == "floor_divide" else "fmod", operands)
        _, (value, divisor) = self.together(operands)
        rest = self.new(Arithmetic("fmod"), kind, value, divisor)
        zero = self.number(0, kind)
        signs = self.new(Arithmetic("bitwise_xor"), kind, rest, divisor)
        other = self.new(Comparison("less"), "bool", signs, zero)
        some = self.new(Comparison("not_equal"), "bool", rest, zero)
        both = self.new(Logic("bitwise_and"), "bool", some, other)
        moved = self.new(Arithmetic("add"), kind, rest, divisor)
        return self.new(Choice(), kind, both, moved, rest)

    def raised(self, name: str, operands: Sequence[Typed]) -> Typed:
        """
        A power: products for a small whole exponent, a root for an exponent of a half. As in NumPy,
        an integer to the power of a float is a float.
        """
        base, exponent = operands
        number = exponent.number
        if base.type == "bool" and holds_integers(exponent.type):
            base = self.of_one_bit(base, "int8" if number == 2 else "int64")
        if not holds_integers(exponent.type):
            base = self.as_floats([base])[1][0] if base.weak or base.type == "bool" else base
            if holds_integers(base.type):
                base = converted(base, "float64")
        if number == 0.5:
            return self.float_number("sqrt", [base])
        if number is None or number not in range(1, 9):
            if holds_integers(base.type) and not base.weak and holds_integers(exponent.type):
                raise self.refused(
                    "an integer's power has an exponent of 1 to 8, or a float; write products, or "
                    "a.astype(np.float64)**b"
                )
            return self.float_number("power", [base, exponent])
        # In the order of the pass expand-powers: from the highest bit of the exponent down.
        result = base
        for bit in f"{int(number):b}"[1:]:
            result = self.call("multiply", [result, result])
            if bit == "1":
                result = self.call("multiply", [result, base])
        return result

    def negated(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The negative number; of an integer without a sign, the last bits."""
        (value,) = operands
        if value.type == "bool":
            raise self.refused(DIFFERENCE)
        if holds_integers(value.type):
            zero = Typed(Constant(0), "int64", (), self.place, weak=True)
            return self.whole_number("subtract", [zero, value])
        return self.float_number(name, operands)

    def squared(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The number times itself."""
        value = operands[0]
        value = self.of_one_bit(value, "int8") if value.type == "bool" else value
        return self.call("multiply", [value, value])

    def rounded(self, name: str, operands: Sequence[Typed]) -> Typed:
        """A whole number near the number: an integer itself."""
        (value,) = operands
        if holds_integers(value.type) and value.type != "bool" and not value.weak:
            return value
        return self.float_number(name, operands)

    def extreme(self, name: str, operands: Sequence[Typed]) -> Typed:
        """The greater or lesser number that is no NaN."""
        kind = common_type(operands, self.element)
        if holds_integers(kind) and kind != "bool":
            return self.whole_number({"fmax": "maximum", "fmin": "minimum"}[name], operands)
        if kind == "bool":
            return self.new(Logic(TRUTH[name]), kind, *operands)
        return self.float_number(name, operands)


RULES: dict[str, TypingRule] = {
    **dict.fromkeys((*LOGIC, *SAME), TypingRules.bitwise),
    **dict.fromkeys(("invert", "logical_not"), TypingRules.inverted),
    **dict.fromkeys(("left_shift", "right_shift"), TypingRules.shifted),
    **dict.fromkeys(("floor_divide", "remainder"), TypingRules.divided),
    **dict.fromkeys(("floor", "ceil", "trunc"), TypingRules.rounded),
    **dict.fromkeys(("fmax", "fmin"), TypingRules.extreme),
    "power": TypingRules.raised,
    "negative": TypingRules.negated,
    "square": TypingRules.squared,
}
"""The functions that are more than one operation on operands of one type."""
