"""Runs a translated operator on the arrays given by Devito to its C function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, repeat
from typing import Any

import numpy as np

from timetile.frontend.devito.complex_equations import add_parts, write_back
from timetile.frontend.devito.complex_parts import without_suffix
from timetile.frontend.devito.equations import Equation, Equations, TimeArrays, is_sparse
from timetile.frontend.devito.evaluation import Array, evaluate, index_values
from timetile.frontend.devito.function_slices import original_name
from timetile.frontend.devito.functions import Function, Writer
from timetile.frontend.devito.grid_sums import GridSum, grid_sums_of
from timetile.frontend.devito.kinds import loaded_kind
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.messages import in_devitos_words
from timetile.frontend.devito.parameters import Argument, Meaning
from timetile.frontend.devito.pickled import equations_apart, equations_together
from timetile.frontend.devito.sparse import Statement, entries_of, statements_of
from timetile.passes.diagnostics import CompileError, Remark, collected_remarks
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram

TYPES = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
"""NumPy's types of numbers."""


@dataclass(frozen=True)
class StepSegment:
    """
    Steps running equal equations: the first value of time, the number of steps, the numbers of the
    equations, and the direction in time: 1 or -1, 0 without time.
    """

    start: int
    steps: int
    active: tuple[int, ...]
    direction: int = 0


@dataclass(frozen=True)
class TimeLoop:
    """
    A loop over time: 1 for growing time, -1 for falling time, and the numbers of the equations.
    """

    direction: int
    equations: tuple[int, ...]


@dataclass
class Call:
    """The arguments of a call: numbers by name, and arrays by function name."""

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
        elif isinstance(value, int | float | complex | np.generic):
            call.numbers[parameter.name] = value
        elif getattr(value, "is_Integer", False):
            # Bounds of functions on a subdomain are integers of SymPy.
            call.numbers[parameter.name] = int(value)
    return call


def check_shared(arrays: Mapping[str, Array], written: Iterable[str]) -> None:
    """Raise NotCovered for a written array that shares memory with another."""
    changed = {without_suffix(original_name(name)) for name in written}
    spans = sorted((*np.lib.array_utils.byte_bounds(each), name) for name, each in arrays.items())
    for (_, end, first), (begin, _, second) in pairwise(spans):
        if begin < end and not changed.isdisjoint((first, second)):
            raise NotCovered(f"{first} and {second} share memory")


def is_integer(value: Any) -> bool:
    """The value is an integer of Python's or NumPy's."""
    return isinstance(value, int) or np.asarray(value).dtype.kind == "i"


@dataclass
class OperatorPlan:
    """
    A translated operator, which `prepare`s its calls. `loops` are the operator's loops over time,
    in order; `options` are options of `timetile.compile`.
    """

    equations: Equations
    loops: tuple[TimeLoop, ...]
    options: Mapping[str, Any]
    statements: dict[int, list[Statement]] = field(init=False)
    sums: dict[int, GridSum] = field(init=False)
    programs: dict[Any, tuple[Function, CompiledProgram | None]] = field(
        default_factory=dict[Any, tuple[Function, CompiledProgram | None]]
    )
    remarks: dict[int, dict[str, None]] = field(default_factory=dict[int, dict[str, None]])
    """What keeps each compiled program slow, in Devito's words, by the program's `id`."""

    slotted: frozenset[int] = field(init=False)
    """The numbers of the equations that use an array dependent on the number of the step."""

    def __post_init__(self) -> None:
        self.sums = grid_sums_of(self.equations.items)
        self.statements = statements_of(self.equations.items, self.sums)
        self.slotted = frozenset(e.number for e in self.equations.items if self.uses_slots(e))

    def __getstate__(self) -> dict[str, Any]:
        """The equations and options: a copy, or a plan in another process, compiles anew."""
        apart = replace(self.equations, items=equations_apart(self.equations.items))
        return {"equations": apart, "loops": self.loops, "options": self.options}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """The plan of pickled equations."""
        apart: Equations = state["equations"]
        together = replace(apart, items=equations_together(apart.items))
        made = OperatorPlan(together, state["loops"], state["options"])
        self.__dict__.update(made.__dict__)

    def uses_slots(self, equation: Equation) -> bool:
        """Whether an equation uses an array dependent on the number of the step."""
        used = [i for i in (*equation.reads, equation.target) if getattr(i, "is_Indexed", False)]
        on_grid = [indexed for indexed in used if not is_sparse(indexed.function)]
        return any(self.equations.role(each).series is TimeArrays.SLOTS for each in on_grid)

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
        for loop in self.loops:
            found += self.timed_segments(loop, call)
        return [*found, StepSegment(0, 0, tuple(last))] if last else found

    def timed_segments(self, loop: TimeLoop, call: Call) -> list[StepSegment]:
        """The segments of a loop over time."""
        timed = [self.equations.items[k] for k in loop.equations]
        name = self.equations.time.name
        low, high = int(call.numbers[f"{name}_m"]), int(call.numbers[f"{name}_M"])
        times = np.arange(low, high + 1)[:: loop.direction]
        if not times.size:
            return []
        values = {**call.numbers, name: times}
        runs = np.ones((len(times), len(timed)), bool)
        for column, equation in enumerate(timed):
            for when in equation.when:
                runs[:, column] &= np.asarray(evaluate(when, values), bool)
        turns = np.flatnonzero((runs[1:] != runs[:-1]).any(axis=1)) + 1
        found: list[StepSegment] = []
        for begin, end in pairwise([0, *turns.tolist(), len(times)]):
            active = tuple(e.number for e, is_on in zip(timed, runs[begin]) if is_on)
            step = 1 if self.has_slots(active) else end - begin
            found += [
                StepSegment(int(times[k]), step, active, loop.direction)
                for k in range(begin, end, step)
                if active
            ]
        return found

    def has_slots(self, active: Sequence[int]) -> bool:
        """Whether the equations use an array dependent on the number of the step."""
        return not self.slotted.isdisjoint(active)

    def program(self, segment: StepSegment, call: Call) -> tuple[Function, CompiledProgram | None]:
        """The program of a segment, compiled if new; None for equations without cells."""
        time_name = self.equations.time.name if self.equations.time is not None else "time"
        left_out = (f"{time_name}_m", f"{time_name}_M")
        ints = {
            name: int(value)
            for name, value in call.numbers.items()
            if is_integer(value) and name not in left_out
        }
        key = group_of(segment), tuple(ints.items()), tuple(call.shapes.items())
        if key not in self.programs:
            writer = Writer(
                self.equations, self.statements, ints, call.shapes, segment.direction, self.sums,
                self.options.get("fp_reassoc") == "on",
            )  # fmt: skip
            function = writer.function([self.equations.items[k] for k in segment.active])
            self.programs[key] = function, self.compiled(function) if function.writes else None
        return self.programs[key]

    def compiled(self, function: Function) -> CompiledProgram:
        """The program of a function. Raises NotCovered, in Devito's words, if there is none."""

        with collected_remarks(untold=True) as remarks:
            try:
                made = compile_program(function.text, **self.options)
            except CompileError as error:
                raise NotCovered(self.words(error, function)) from error
        self.keep(remarks, function, made)
        return made

    def words(self, said: CompileError | Remark, function: Function) -> str:
        """A message of the compiler on a function, in Devito's words."""
        line = said.line if isinstance(said, CompileError) else said.place.line
        return in_devitos_words(said.reason, line, function, self.equations.items)

    def keep(self, remarks: Iterable[Remark], function: Function, program: CompiledProgram) -> None:
        """Keep remarks on a function's program."""
        kept = self.remarks.setdefault(id(program), {})
        kept |= dict.fromkeys(self.words(each, function) for each in remarks)

    def remarks_on(self, prepared: Sequence[tuple[CompiledProgram, list[Any]]]) -> tuple[str, ...]:
        """What keeps the programs of a call slow, each remark once."""
        programs = dict.fromkeys(id(program) for program, _ in prepared)
        return tuple(dict.fromkeys(each for key in programs for each in self.remarks[key]))

    def run(self, prepared: Sequence[tuple[CompiledProgram, list[Any]]], call: Call) -> float:
        """Run the programs of a call in order, in place; the seconds without transfers."""
        functions = {id(program): function for function, program in self.programs.values()}
        seconds = 0.0
        for program, arguments in prepared:
            with collected_remarks(untold=True) as remarks:
                seconds += program(*arguments).seconds
            self.keep(remarks, functions[id(program)], program)
        written = self.equations.slices.write_back(call.arrays, self.equations.written)
        write_back(call.arrays, written, self.equations.parts)
        return seconds

    def prepare(self, call: Call) -> list[tuple[CompiledProgram, list[Any]]]:
        """
        The compiled programs of a call, in order, with arguments. Raises NotCovered or CompileError
        if a segment has no program.
        """
        check_shared(call.arrays, self.equations.written)
        add_parts(call.arrays, call.numbers, self.equations.parts)
        self.equations.slices.add_to(call.arrays, call.numbers)
        for name, bounds in self.equations.sets.items():
            if not np.array_equal(call.arrays[name], bounds):
                raise NotCovered(f"the bounds of the subdomains {name} have changed")
        for each in self.equations.beginnings:
            each.store(call.arrays, call.numbers)
        groups: dict[tuple[Any, ...], list[StepSegment]] = {}
        segments = self.segments(call)
        for segment in segments:
            groups.setdefault(group_of(segment), []).append(segment)
        made = {key: iter(self.prepared(group, call)) for key, group in groups.items()}
        return [each for segment in segments for each in islice(made[group_of(segment)], 1)]

    def prepared(
        self, group: Sequence[StepSegment], call: Call
    ) -> list[tuple[CompiledProgram, list[Any]]]:
        """
        The program of segments running equal equations, with the arguments of each segment; nothing
        for equations without cells.
        """
        function, program = self.program(group[0], call)
        if program is None:
            return []
        entries = self.entries(function, call)
        each = [self.values(a, group, call, entries) for a in function.arguments]
        return [(program, list(arguments)) for arguments in zip(*each, strict=True)]

    def entries(self, function: Function, call: Call) -> list[list[Any]]:
        """The number and the arrays of the entries of each sparse operation of a function."""
        values = {**call.numbers, **call.arrays}
        return [
            entries_of(
                each, values, call.shapes, TYPES[loaded_kind(each.statement.target.function)]
            )
            for each in function.entries
        ]

    def values(
        self,
        argument: Argument,
        group: Sequence[StepSegment],
        call: Call,
        entries: Sequence[Sequence[Any]],
    ) -> Iterable[Any]:
        """The value of a program's argument in each segment of a group."""
        match argument.meaning:
            case Meaning.STEPS:
                return [segment.steps for segment in group]
            case Meaning.START:
                return [segment.start for segment in group]
            case Meaning.FIELD:
                return self.fields(argument.of, group, call)
            case _:
                return repeat(self.value(argument, call, entries), len(group))

    def value(self, argument: Argument, call: Call, entries: Sequence[Sequence[Any]]) -> Any:
        """The value of a program's argument that is equal in all segments."""
        of = argument.of
        match argument.meaning:
            case Meaning.MADE:
                values, kind = {**call.numbers, **call.arrays}, TYPES[of[1]]
                return np.ascontiguousarray(evaluate(of[0], values, kind), kind)
            case Meaning.SCALAR:
                return TYPES[of[1]](evaluate(of[0], call.numbers))
            case Meaning.TOTALS:
                return np.zeros(of[2], TYPES[of[1]])
            case Meaning.MEMORY:
                return call.arrays[of].reshape(-1)
            case Meaning.COUNT:
                return entries[of][0]
            case Meaning.ENTRIES:
                return entries[of[0]][1 + of[1]]
            case _:
                raise AssertionError(f"{argument.meaning} differs between segments")

    def fields(self, role: Any, group: Sequence[StepSegment], call: Call) -> Iterable[Array]:
        """The array of a role at the first step of each segment."""
        found = call.arrays[role.function]
        if role.series is TimeArrays.ONE:
            return repeat(found, len(group))
        starts = np.array([segment.start for segment in group])
        if role.series is TimeArrays.LEVELS:
            return [found[k] for k in (starts + role.at) % self.equations.levels[role.function]]
        time_name = self.equations.time.name if self.equations.time is not None else "time"
        places = index_values(role.at, {**call.numbers, time_name: starts}, len(group))
        outside = places[(places < 0) | (places >= len(found))]
        if outside.size:
            raise NotCovered(f"{role.function} has no time {outside[0]}")
        return [found[place] for place in places]


def group_of(segment: StepSegment) -> tuple[Any, ...]:
    """Segments of a group run one program."""
    return segment.active, segment.direction
