"""Translates sparse operations, injection and interpolation, to loops of the host over entries.

Each pair of a point and a neighbouring grid point is an entry. NumPy computes, once a run, the
place of the entry in a field, and the part of its value that changes neither with time nor with
arrays written by the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.cells import Cells
from timetile.frontend.devito.equations import (
    Equation,
    Equations,
    Loop,
    Role,
    TimeArrays,
    has_time,
    indexed_in,
    is_sparse,
)
from timetile.frontend.devito.evaluation import Array, evaluate, flat_place, integer, is_known
from timetile.frontend.devito.kinds import is_integer_kind, stored_kind, widest_kind
from timetile.frontend.devito.library import NotCovered, sympy
from timetile.frontend.devito.parameters import Argument, Meaning, Parameters

MOST_ENTRIES = 1 << 25
"""Most entries of a list: places and values take some bytes each."""


@dataclass(frozen=True)
class Statement:
    """
    The action of one entry: `value` is set or added to `target`. `makes` are numbers needed for
    both. With a `total`, a sum over neighbours has one number for each point beside the target:
    `value` goes to the point's number if `is_of_total`; otherwise `value` is the number itself.
    """

    equation: Equation
    target: Any
    value: Any
    adds: bool
    loops: tuple[Loop, ...]
    guards: tuple[Any, ...]
    makes: tuple[tuple[Any, Any], ...]
    total: Any = None
    is_of_total: bool = False


def reads_itself(target: Any, value: Any) -> bool:
    """
    Whether a sum for a point of `target` reads the target. Raises NotCovered if the sum reads the
    target at another point.
    """
    reads = [i for i in indexed_in(value) if i.function is target.function]
    first = 1 if has_time(target.function) else 0
    for read in reads:
        if read.indices[first:] != target.indices[first:]:
            raise NotCovered(f"it reads {read} for {target}, another point, which may be new")
    return bool(reads)


def statements_of(
    equations: Sequence[Equation], apart: Container[int] = ()
) -> dict[int, list[Statement]]:
    """
    The actions of each sparse equation that writes an array, by number. `apart` are the numbers of
    equations that write sums over the grid.
    """
    found: dict[int, list[Statement]] = {}
    makes: dict[Any, Any] = {}
    sums: dict[Any, Equation] = {}
    begins: dict[Any, Any] = {}
    for equation in equations:
        target, value = equation.target, equation.value
        if not getattr(target, "is_Indexed", False):
            if equation.adds:
                sums[target] = equation
            else:
                begins[target] = value
                makes[target] = value
            continue
        known = tuple(makes.items())
        if equation.number in apart:
            sums.pop(value, None)
            continue

        def statement(
            value: Any,
            adds: bool,
            part: Equation,
            total: Any = None,
            at: Any = target,
            known: Any = known,
        ) -> Statement:
            of_total = total is not None and value is not total
            return Statement(part, at, value, adds, part.loops, part.where, known, total, of_total)

        if value not in sums:
            if any(name in value.free_symbols for name in sums):
                raise NotCovered(f"{equation.text}: it computes with a sum over neighbours")
            found[equation.number] = [statement(value, equation.adds, equation)]
            continue
        added = sums.pop(value)
        begin = begins[value]
        try:
            is_apart = reads_itself(target, added.value)
        except NotCovered as error:
            raise NotCovered(f"{equation.text}: {error}") from None
        if is_apart:
            found[equation.number] = [
                statement(begin, False, equation, value),
                statement(added.value, True, added, value),
                statement(value, equation.adds, equation, value),
            ]
            continue
        first = statement(begin, equation.adds, equation)
        found[equation.number] = [first, statement(added.value, True, added)]
    return found


@dataclass
class Entries:
    """
    The arrays of a statement's entries, one value each, in the order of the program's arguments.
    """

    statement: Statement
    parts: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])


def entry_grid(loops: Sequence[Loop], values: Mapping[str, Any]) -> list[Array]:
    """The values of each loop at all entries, in row-major order."""
    ranges = [
        np.arange(integer(loop.first, values), integer(loop.last, values) + 1) for loop in loops
    ]
    return [axis.reshape(-1) for axis in np.meshgrid(*ranges, indexing="ij")]


def entry_count(loops: Sequence[Loop], values: Mapping[str, Any]) -> int:
    """How many entries a nest of loops has."""
    sizes = [integer(p.last, values) - integer(p.first, values) + 1 for p in loops]
    return int(np.prod([max(size, 0) for size in sizes]))


def entries_of(
    entries: Entries, values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], kind: Any
) -> list[Any]:
    """The number of entries passing the guards, and the arrays of their values."""
    statement = entries.statement
    every = dict(values)
    grid = entry_grid(statement.loops, values)
    every.update({loop.dimension.name: axis for loop, axis in zip(statement.loops, grid)})
    count = len(grid[0]) if grid else 0
    for name, made in statement.makes:
        if is_known(made):
            every[name.name] = evaluate(made, every, kind)
    inside = np.ones(count, bool)
    for guard in statement.guards:
        inside &= np.broadcast_to(evaluate(guard, every, kind), count)

    def kept(name: str, value: Any) -> Any:
        is_each = name not in values and np.shape(value) == (count,)
        return value[inside] if is_each else value

    every = {name: kept(name, value) for name, value in every.items()}
    number = int(inside.sum())
    found: list[Any] = [number]
    for meaning, of in entries.parts:
        if meaning == "place":
            indices = of.indices[1:] if has_time(of.function) else of.indices
            shape = shapes[of.function.name][-len(indices) :]
            value = flat_place([evaluate(sympy.sympify(i), every) for i in indices], shape)
            array = np.zeros(count, np.int64)
        else:
            value = evaluate(of, every, kind)
            array = np.zeros(count, kind)
        array[:number] = value
        found.append(array)
    return found


@dataclass
class Nest:
    """Writes the loop over the entries of one statement."""

    equations: Equations
    entries: Entries
    number: int
    parameters: Parameters
    ints: Mapping[str, Any]
    field_of: Callable[[Role], str]
    written: frozenset[str]
    clock: str
    """The type of the number of the step."""

    def __post_init__(self) -> None:
        statement = self.entries.statement
        self.kind = self.kind_at_points(statement.target)
        self.size = entry_count(statement.loops, self.ints)
        if self.size > MOST_ENTRIES:
            raise NotCovered(
                f"it picks cells of {self.size}, and places are lists of at most {MOST_ENTRIES}"
            )
        self.cells = Cells(self.kind, f"n{self.number}_", self.leaf, self.is_fixed)
        self.makes = dict(statement.makes)

    def kind_at_points(self, indexed: Any) -> str:
        """The type of cells used at points. Raises NotCovered for integers."""
        kind = stored_kind(indexed.function)
        if is_integer_kind(kind):
            raise NotCovered(f"it uses {indexed}, an integer, at each point; use floats")
        return kind

    def is_fixed(self, expression: Any) -> bool:
        """The expression has one value at an entry during the whole run."""
        if self.equations.time is not None and self.equations.time in expression.free_symbols:
            return False
        for name in expression.free_symbols:
            if name in self.makes and not self.is_fixed(self.makes[name]):
                return False
        reads = indexed_in(expression)
        if any(has_time(i.function) or i.function.name in self.written for i in reads):
            return False
        return is_known(expression)

    def array(self, meaning: str, of: Any) -> str:
        """The entry's value in an array of one value for each entry."""
        part = meaning, of
        if part not in self.entries.parts:
            self.entries.parts.append(part)
        place = self.entries.parts.index(part)
        kind = f"memref<{self.size}x{'i64' if meaning == 'place' else self.kind}>"
        name = self.parameters.name(Argument(Meaning.ENTRIES, (self.number, place)), kind)
        return self.cells.add(f"memref.load {name}[%n{self.number}_k] : {kind}")

    def leaf(self, expression: Any, kind: str) -> str | None:
        """The values computed before the run, and cells of arrays."""
        if expression.is_Number:
            return None
        statement = self.entries.statement
        if self.equations.time is not None and expression == self.equations.time:
            return self.cells.converted("%clock", self.clock, self.kind)
        if expression == statement.total:
            memory, at, kind = self.total_cell()
            return self.cells.add(f"memref.load {memory}[{at}] : {kind}")
        if self.is_fixed(expression):
            return self.array("value", expression)
        if getattr(expression, "is_Indexed", False):
            memory, index, kind = self.cell(expression)
            loaded = self.cells.add(f"memref.load {memory}[{index}] : {kind}")
            return self.cells.converted(loaded, stored_kind(expression.function), self.kind)
        if expression.is_Symbol and expression in self.makes:
            return self.cells.value(self.makes[expression])
        if expression.is_Symbol:
            raise NotCovered(f"it computes with {expression} at each point")
        return None

    def total_cell(self) -> tuple[str, str, str]:
        """The memory, the index, and the type of the number of the entry's point."""
        statement = self.entries.statement
        place = self.array("place", statement.target)
        at = self.cells.add(f"arith.index_cast {place} : i64 to index")
        function = statement.target.function
        shape = self.parameters.shapes[function.name]
        size = int(np.prod(shape[1:] if has_time(function) else shape))
        kind = f"memref<{size}x{self.kind}>"
        argument = Argument(Meaning.TOTALS, (statement.total.name, self.kind, size))
        return self.parameters.name(argument, kind), at, kind

    def cell(self, indexed: Any) -> tuple[str, str, str]:
        """
        The memory, the index, and the type of the cell named by an indexed function at the entry.
        """
        function = indexed.function
        own = self.kind_at_points(indexed)
        if widest_kind(own, self.kind) != self.kind:
            raise NotCovered(
                f"it stores float64 values as float32 at each point: {indexed}; use one"
            )
        shape = self.parameters.shapes[function.name]
        place = self.array("place", indexed)
        at = self.cells.add(f"arith.index_cast {place} : i64 to index")
        if is_sparse(function) or not has_time(function):
            return self.memory_cell(indexed, at, shape, own)
        role = self.equations.role(indexed)
        kind = f"memref<{int(np.prod(shape[1:]))}x{own}>"
        name = self.field_of(role)
        source = self.parameters.field_kind(function.name)
        memory = self.cells.add(f"builtin.unrealized_conversion_cast {name} : {source} to {kind}")
        return memory, at, kind

    def memory_cell(
        self, indexed: Any, at: str, shape: Sequence[int], own: str
    ) -> tuple[str, str, str]:
        """An access's memory, place and type: of a series, or of a grid function without time."""
        function = indexed.function
        kind = f"memref<{int(np.prod(shape))}x{own}>"
        if not is_sparse(function):
            name = self.parameters.array(Role(function.name, TimeArrays.ONE))
            source = self.parameters.field_kind(function.name)
            memory = self.cells.add(
                f"builtin.unrealized_conversion_cast {name} : {source} to {kind}"
            )
            return memory, at, kind
        memory = self.parameters.name(Argument(Meaning.MEMORY, function.name), kind)
        if not has_time(function):
            return memory, at, kind
        step = integer(indexed.indices[0] - self.equations.time, self.ints)
        shift = self.cells.add(f"arith.constant {step} : index")
        row = self.cells.add(f"arith.addi %now, {shift} : index")
        width = self.cells.add(f"arith.constant {int(np.prod(shape[1:]))} : index")
        start = self.cells.add(f"arith.muli {row}, {width} : index")
        return memory, self.cells.add(f"arith.addi {start}, {at} : index"), kind

    def write(self) -> list[str]:
        """The lines of the loop."""
        if self.size == 0:
            return []
        statement, cells = self.entries.statement, self.cells
        number = self.number
        count = self.parameters.name(Argument(Meaning.COUNT, number), "index")
        value = cells.value(statement.value)
        memory, index, kind = (
            self.total_cell() if statement.is_of_total else self.cell(statement.target)
        )
        if statement.adds:
            old = cells.add(f"memref.load {memory}[{index}] : {kind}")
            value = cells.binary("addf", old, value, self.kind)
        cells.lines.append(f"memref.store {value}, {memory}[{index}] : {kind}")
        return [
            f"scf.for %n{number}_k = %zero to {count} step %one {{",
            *(f"  {line}" for line in cells.lines),
            "}",
        ]
