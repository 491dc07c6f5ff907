"""The arguments of a translated function, each once, by meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from timetile.frontend.devito.equations import Equations, Role, TimeArrays, left_of, space_of
from timetile.frontend.devito.kinds import stored_kind
from timetile.frontend.devito.library import NotCovered


class Meaning(Enum):
    """
    What a call passes: a FIELD of the grid; a SCALAR; an array in host MEMORY; an array of ENTRIES
    of a sparse operation, and their COUNT; the START and the number of STEPS of the loop over time;
    an array MADE from coefficients; TOTALS, one number for each point.
    """

    FIELD = auto()
    SCALAR = auto()
    MEMORY = auto()
    ENTRIES = auto()
    COUNT = auto()
    START = auto()
    STEPS = auto()
    MADE = auto()
    TOTALS = auto()


@dataclass(frozen=True)
class Argument:
    """
    One argument. `of` depends on the meaning: a field's role; a scalar's expression and type; the
    name of a function whose array is in host memory; the number of an array of entries, or of
    their count; expression and type of an array computed from coefficients; or name and type of a
    sum, and the number of points.
    """

    meaning: Meaning
    of: Any = None


@dataclass
class Parameters:
    """The arguments needed by a function, in order, with names and types."""

    equations: Equations
    shapes: Mapping[str, tuple[int, ...]]
    known: dict[Argument, tuple[str, str]] = field(default_factory=dict[Argument, tuple[str, str]])

    def name(self, argument: Argument, kind: str) -> str:
        """The name of an argument. A new argument is added."""
        if argument not in self.known:
            self.known[argument] = f"%p{len(self.known)}", kind
        return self.known[argument][0]

    def field_kind(self, name: str) -> str:
        """
        The type of a field: cells before the domain have bounds below 0, cells behind lie beyond
        the domain.
        """
        function = self.equations.functions[name]
        spans: list[str] = []
        if name not in self.shapes:
            raise NotCovered(f"Devito passes no array of {name} to the operator")
        shape = self.shapes[name]
        space = space_of(function)
        for size, dimension in zip(shape[len(shape) - len(space) :], space):
            left = left_of(function, dimension)
            spans.append(f"[{-left},{size - left}]")
        return f"!stencil.field<{'x'.join(spans)}x{self.cell_kind(name)}>"

    def cell_kind(self, name: str) -> str:
        """The type of a function's cells."""
        return stored_kind(self.equations.functions[name])

    def scalar(self, expression: Any, kind: str) -> str:
        """The name of a number equal in all steps, of a type."""
        return self.name(Argument(Meaning.SCALAR, (expression, kind)), kind)

    def array(self, role: Role) -> str:
        """The name of the field for one array of a function."""
        kind = self.field_kind(role.function)
        for level in range(self.equations.levels.get(role.function, 0)):
            self.name(Argument(Meaning.FIELD, Role(role.function, TimeArrays.LEVELS, level)), kind)
        return self.name(Argument(Meaning.FIELD, role), kind)

    def levels(self) -> list[Argument]:
        """The rotating fields, function by function, each from level 0 on."""
        fields = (argument for argument in self.known if argument.meaning is Meaning.FIELD)
        return [argument for argument in fields if argument.of.series is TimeArrays.LEVELS]
