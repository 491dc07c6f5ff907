"""Runs a translated operator on the arrays given by Devito to its C function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.equations import KINDS, Equation, Equations, TimeArrays, is_sparse
from timetile.frontend.devito.evaluation import Array, evaluate, integer
from timetile.frontend.devito.functions import Function, Writer
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.parameters import Argument, Meaning
from timetile.frontend.devito.sparse import Statement, entries_of, statements_of
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram

TYPES = {kind: np.dtype(dtype).type for dtype, kind in KINDS.items()}


@dataclass(frozen=True)
class StepSegment:
    """Steps running equal equations: the first value of time, and the number of steps."""

    start: int
    steps: int
    active: tuple[int, ...]


@dataclass
class Call:
    """The arguments of one call of an operator: numbers by name, and arrays by function name."""

    numbers: dict[str, Any]
    arrays: dict[str, Array]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array."""
        return {name: array.shape for name, array in self.arrays.items()}


def call_of(parameters: Sequence[Any], given: Sequence[Any]) -> Call:
    """The arguments of the generated C function as numbers and arrays, halos included."""
    call = Call({}, {})
    for parameter, value in zip(parameters, given):
        if hasattr(parameter, "_C_as_ndarray") and hasattr(value, "_obj"):
            call.arrays[parameter.name] = np.asarray(value._obj.underlying_array)
        elif isinstance(value, int | float | np.generic):
            call.numbers[parameter.name] = value
    return call


def is_integer(value: Any) -> bool:
    """The value is an integer of Python's or NumPy's."""
    return isinstance(value, int) or np.asarray(value).dtype.kind == "i"


@dataclass
class OperatorPlan:
    """
    A translated operator, which `prepare`s its calls. `direction` is 1 for growing time, -1 for
    falling time, 0 without time; `options` are options of `timetile.compile`.
    """

    equations: Equations
    direction: int
    options: Mapping[str, Any]
    statements: dict[int, list[Statement]] = field(init=False)
    programs: dict[Any, tuple[Function, CompiledProgram]] = field(
        default_factory=dict[Any, tuple[Function, CompiledProgram]]
    )

    def __post_init__(self) -> None:
        self.statements = statements_of(self.equations.items)

    def segments(self, call: Call) -> list[StepSegment]:
        """
        The steps of a call, joined if they run equal equations and a kernel may take several at
        once.
        """
        items = self.equations.items
        timed = [equation for equation in items if equation.in_time]
        first = [
            e.number for e in items if not e.in_time and (not timed or e.number < timed[0].number)
        ]
        last = [e.number for e in items if not e.in_time and e.number not in first]
        found = [StepSegment(0, 0, tuple(first))] if first else []
        if timed:
            found += self.timed_segments(timed, call)
        return [*found, StepSegment(0, 0, tuple(last))] if last else found

    def timed_segments(self, timed: Sequence[Equation], call: Call) -> list[StepSegment]:
        """The segments of the loop over time."""
        name = self.equations.time.name
        low, high = int(call.numbers[f"{name}_m"]), int(call.numbers[f"{name}_M"])
        times = range(low, high + 1)[:: self.direction]
        found: list[StepSegment] = []
        for now in times:
            values = {**call.numbers, name: now}
            active = tuple(
                e.number for e in timed if all(bool(evaluate(when, values)) for when in e.when)
            )
            before = found[-1] if found else None
            if before is not None and before.active == active and not self.has_series(active):
                found[-1] = StepSegment(before.start, before.steps + 1, active)
            else:
                found.append(StepSegment(now, 1, active))
        return [segment for segment in found if segment.active]

    def has_series(self, active: Sequence[int]) -> bool:
        """Whether the equations use an array dependent on the number of the step."""
        for number in active:
            equation = self.equations.items[number]
            for indexed in (*equation.reads, equation.target):
                if not getattr(indexed, "is_Indexed", False) or is_sparse(indexed.function):
                    continue
                if self.equations.role(indexed).series is TimeArrays.SLOTS:
                    return True
        return False

    def program(self, segment: StepSegment, call: Call) -> tuple[Function, CompiledProgram]:
        """The program of a segment, compiled if new."""
        time_name = self.equations.time.name if self.equations.time is not None else "time"
        left_out = (f"{time_name}_m", f"{time_name}_M")
        ints = {
            name: int(value)
            for name, value in call.numbers.items()
            if is_integer(value) and name not in left_out
        }
        key = segment.active, tuple(ints.items()), tuple(call.shapes.items()), bool(segment.steps)
        if key not in self.programs:
            direction = self.direction if segment.steps else 0
            writer = Writer(self.equations, self.statements, ints, call.shapes, direction)
            function = writer.function([self.equations.items[k] for k in segment.active])
            self.programs[key] = function, compile_program(function.text, **self.options)
        return self.programs[key]

    def prepare(self, call: Call) -> list[tuple[CompiledProgram, list[Any]]]:
        """
        The compiled programs of a call, in order, with arguments. Raises NotCovered or CompileError
        if a segment has no program.
        """
        entries: dict[tuple[int, ...], list[list[Any]]] = {}
        prepared: list[tuple[CompiledProgram, list[Any]]] = []
        for segment in self.segments(call):
            function, program = self.program(segment, call)
            if segment.active not in entries:
                entries[segment.active] = self.entries(function, call)
            own = entries[segment.active]
            arguments = [
                self.value(argument, function, segment, call, own)
                for argument in function.arguments
            ]
            prepared.append((program, arguments))
        return prepared

    def entries(self, function: Function, call: Call) -> list[list[Any]]:
        """The number and the arrays of the entries of each sparse operation of a function."""
        values = {**call.numbers, **call.arrays}
        kind = TYPES[function.kind]
        return [entries_of(each, values, call.shapes, kind) for each in function.entries]

    def value(
        self,
        argument: Argument,
        function: Function,
        segment: StepSegment,
        call: Call,
        entries: Sequence[Sequence[Any]],
    ) -> Any:
        """The value of a program's argument in a segment."""
        of = argument.of
        match argument.meaning:
            case Meaning.MADE:
                values = {**call.numbers, **call.arrays}
                kind = TYPES[function.kind]
                return np.ascontiguousarray(evaluate(of, values, kind), kind)
            case Meaning.STEPS:
                return segment.steps
            case Meaning.START:
                return segment.start
            case Meaning.SCALAR:
                return TYPES[function.kind](evaluate(of, call.numbers))
            case Meaning.MEMORY:
                return call.arrays[of].reshape(-1)
            case Meaning.COUNT:
                return entries[of][0]
            case Meaning.ENTRIES:
                return entries[of[0]][1 + of[1]]
            case Meaning.FIELD:
                return self.array(of, segment, call)

    def array(self, role: Any, segment: StepSegment, call: Call) -> Array:
        """The array of a role at the first step of a segment."""
        found = call.arrays[role.function]
        if role.series is TimeArrays.ONE:
            return found
        if role.series is TimeArrays.LEVELS:
            return found[(segment.start + role.at) % self.equations.levels[role.function]]
        time_name = self.equations.time.name if self.equations.time is not None else "time"
        place = integer(role.at, {**call.numbers, time_name: segment.start})
        if not 0 <= place < len(found):
            raise NotCovered(f"{role.function} has no time {place}")
        return found[place]


def run(prepared: Sequence[tuple[CompiledProgram, list[Any]]]) -> float:
    """Run the programs of a call in order, in place; the seconds without transfers."""
    return sum(program(*arguments).seconds for program, arguments in prepared)
