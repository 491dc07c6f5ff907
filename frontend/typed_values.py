"""The values of a step with types, for arrays of given types: NumPy's meaning of each operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from timetile.frontend.errors import StencilError
from timetile.frontend.field_types import DType, computing_type, holds_integers, value_type
from timetile.frontend.functions import STEP
from timetile.frontend.number_types import Typed, check_literal, converted
from timetile.frontend.operations import (
    Access,
    Argument,
    Cast,
    Choice,
    Constant,
    Coordinate,
    Extent,
    NamedCall,
    Time,
)
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment, Held, StepStatement
from timetile.frontend.typing_rules import TypingRules
from timetile.frontend.values import Value


class TypedStep:
    """
    The values of a step with types, by the types of the fields' arrays. `element` is the type of
    weak floats. `floats` names temporaries of floats, whatever the value.
    """

    def __init__(self, step: Step, types: Mapping[str, DType], floats: Iterable[str] = ()):
        self.step, self.types = step, types
        of_f32 = str(computing_type(types.values())) == "f32"
        self.element = "float32" if of_f32 else "float64"
        self.whole = any(map(holds_integers, types.values()))
        self.floats = frozenset(floats)
        self.done: dict[int, Typed] = {}
        self.raw: list[Value] = []
        """The values behind `done`, kept alive: the keys of `done` are identities."""
        self.temporaries: dict[str, str] = {}

    def check(self) -> None:
        """Raise StencilError for an operation without a meaning for the types."""
        for made in self.step.statements:
            self.stored(made)

    def temporary(self, name: str) -> str:
        """The type of a temporary's values."""
        if name not in self.temporaries:
            value = self.value(self.step.temporaries[name].value)
            found = value.type
            if name in self.floats or not self.whole or (value.weak and not holds_integers(found)):
                # Totals of integers are exact in float64, up to 2**53.
                found = "float64" if holds_integers(found) and self.whole else self.element
                found = found if holds_integers(value.type) or value.weak else value.type
            self.temporaries[name] = found
        return self.temporaries[name]

    def stored(self, made: StepStatement) -> Typed:
        """
        The value of a statement as a number of the field's type, or of the temporary's. Raises
        StencilError for a float in a field of integers, and a number in a field of truth values.
        """
        value = self.value(made.value)
        if isinstance(made, Held):
            return converted(value, self.temporary(made.name))
        return self.assigned(made, value)

    def assigned(self, made: Assignment, value: Typed) -> Typed:
        """A value as a number of a field; a float keeps its type until the store."""
        kind = self.types[made.field]
        if not holds_integers(kind):
            wide = self.element if value.weak or value.type == "bool" else value_type(kind)
            return converted(value, wide) if holds_integers(value.type) else value
        number = value.number
        if value.weak and isinstance(number, float) and number.is_integer():
            value = Typed(Constant(int(number)), "int64", (), value.place, weak=True)
        if value.is_literal and kind != "bool":
            check_literal(value, kind)
        if not holds_integers(value.type) or (kind == "bool" and value.type != "bool"):
            raise StencilError(
                f"{made.field} has an array of {kind}, and the value is of {value.type}; write "
                + ("a condition, as a != 0" if kind == "bool" else f"(...).astype(np.{kind})")
                + f", or pass {made.field} as {value.type}",
                made.place,
            )
        return converted(value, kind)

    def value(self, value: Value) -> Typed:
        """A value with its type."""
        for each in walk([value]):
            if id(each) not in self.done:
                self.done[id(each)] = self.typed(each)
                self.raw.append(each)
        return self.done[id(value)]

    def typed(self, value: Value) -> Typed:
        """A value whose operands have types."""
        operands = [self.done[id(operand)] for operand in value.operands]
        rules = TypingRules(value, self.element, self.whole)
        match value.operation:
            case Constant(number=bool()):
                return rules.leaf("bool")
            case Constant(number=int()) | Coordinate() | Extent():
                return rules.leaf("int64", weak=True)
            case Constant() | Argument():
                is_step = value.operation == Argument(STEP)
                return rules.leaf("int64" if is_step else self.element, weak=True)
            case Access(field=name, time=Time.INSIDE):
                return rules.leaf(self.temporary(name))
            case Access(field=name):
                # A field of another step is reported after tracing.
                kind = value_type(self.types.get(name, "float64"))
                return rules.leaf(kind, weak=name in self.step.weak)
            case Cast(dtype=name):
                return replace(converted(operands[0], name), weak=False)
            case Choice():
                return rules.choice(*operands)
            case NamedCall(name=name):
                return rules.call(name, operands)
