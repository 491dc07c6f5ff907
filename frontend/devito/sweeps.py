"""Translates an equation over the grid to a `stencil.apply` and a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timetile.frontend.devito.cells import Cells
from timetile.frontend.devito.equations import (
    Equation,
    Equations,
    Role,
    TimeArrays,
    indexed_in,
    left_of,
    space_of,
)
from timetile.frontend.devito.evaluation import integer, is_known
from timetile.frontend.devito.kinds import (
    NARROW,
    Kinds,
    is_signed_function,
    loaded_kind,
    stored_kind,
    widest_kind,
)
from timetile.frontend.devito.library import NotCovered, sympy
from timetile.frontend.devito.parameters import Argument, Meaning, Parameters
from timetile.frontend.devito.quotients import cancelled


@dataclass
class Scalars:
    """Values equal for all cells: arguments, and values dependent on the time step."""

    parameters: Parameters
    host: Cells
    time: Any

    def leaf(self, expression: Any, kind: str) -> tuple[str, str] | None:
        """
        The name and the type of a value equal for all cells, of a type if the value is an argument;
        None for an expression of numbers alone.
        """
        if expression.is_Number or not expression.free_symbols:
            return None
        if self.time in expression.free_symbols:
            return self.host.value(expression), self.host.kind
        return self.parameters.scalar(expression, kind), kind


@dataclass
class Sweep:
    """
    Writes one equation. `ints` are the values behind indices. `written` are the functions written
    by the operator, None outside a loop. With a `free_order`, sums stay plain for the compiler.
    """

    equations: Equations
    equation: Equation
    parameters: Parameters
    scalars: Scalars
    ints: Mapping[str, Any]
    name: str
    field_of: Callable[[Role], str]
    written: frozenset[str] | None
    free_order: bool = False
    operands: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    loads: list[str] = field(default_factory=list[str])
    temps: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        target = self.equation.target
        space = space_of(target.function)
        self.space = space
        self.kind = stored_kind(target.function)
        value_kind = loaded_kind(target.function)
        self.cells = Cells(
            value_kind, f"{self.name}_c", self.leaf, self.is_outside, self.reciprocal,
            Kinds.of_equation(target), self.free_order,
        )  # fmt: skip
        self.places = [
            self.equations.loop_of(index, self.equation)
            for index in target.indices[len(target.indices) - len(space) :]
        ]
        self.loops = {loop.dimension for loop in self.equation.loops}

    def temp_kind(self, rank: int, kind: str) -> str:
        """The type of a loaded value, with cells of a type."""
        return f"!stencil.temp<{'x'.join('?' * rank)}x{kind}>"

    def shift(self, axis: int) -> int:
        """The offset from the loop's value along an axis, or the place itself without a loop."""
        function = self.equation.target.function
        return integer(self.places[axis][1], self.ints) - left_of(function, self.space[axis])

    def box(self) -> tuple[list[int], list[int]]:
        """The written cells: the first cell, and the end beyond the last cell, along each axis."""
        low: list[int] = []
        high: list[int] = []
        for axis, (loop, _) in enumerate(self.places):
            shift = self.shift(axis)
            low.append(shift + (integer(loop.first, self.ints) if loop else 0))
            high.append(shift + (integer(loop.last, self.ints) if loop else 0) + 1)
        return low, high

    def leaf(self, expression: Any, kind: str) -> str | None:
        """The values read by a cell, of a type: fields, the cell's place, scalars."""
        if getattr(expression, "is_Indexed", False):
            return self.access(expression)
        if expression in self.loops:
            return self.coordinate(expression, kind)
        if type(expression).__name__ == "SafeInv":
            # Its type is that of the cells: `made_before` gives no other.
            return self.made_before(expression, expression)
        if not self.is_outside(expression):
            return None
        found = self.scalars.leaf(expression, kind)
        if found is None:
            return None
        name, have = found
        self.operands.setdefault(name, (f"%{self.name}_s{len(self.operands)}", have))
        return self.cells.converted(self.operands[name][0], have, kind)

    def is_outside(self, expression: Any) -> bool:
        """The expression has one value for all cells."""
        return not (expression.has(sympy.Indexed) or expression.free_symbols & self.loops)

    def offsets(self, indexed: Any) -> tuple[str, ...]:
        """
        The distance from the written cell to an indexed function's cell, `_` for a missing axis.
        """
        function = indexed.function
        space = space_of(function)
        offsets = ["_"] * len(self.space)
        for dimension, index in zip(space, indexed.indices[len(indexed.indices) - len(space) :]):
            axis = self.equations.axes.index(dimension.root)
            _, added = self.equations.loop_of(index, self.equation)
            place = integer(added, self.ints) - left_of(function, dimension)
            offsets[axis] = str(place - self.shift(axis))
        return tuple(offsets)

    def rows(self, indexed: Any) -> dict[int, int]:
        """The places of a read that are equal for all cells, by axis."""
        found: dict[int, int] = {}
        function = indexed.function
        space = space_of(function)
        for dimension, index in zip(space, indexed.indices[len(indexed.indices) - len(space) :]):
            loop, place = self.equations.loop_of(index, self.equation)
            axis = self.equations.axes.index(dimension.root)
            if loop is None and self.places[axis][0] is not None:
                found[axis] = integer(place, self.ints) - left_of(function, dimension)
        return found

    def in_row(self, indexed: Any, rows: Mapping[int, int]) -> str:
        """
        The cell of a field in a row for all cells. Raises NotCovered for a row that the equation
        writes.
        """
        function, (low, high) = indexed.function, self.box()
        if self.equations.role(indexed) == self.equations.role(self.equation.target) and all(
            low[axis] <= row < high[axis] for axis, row in rows.items()
        ):
            raise NotCovered(
                f"it reads {indexed}, a cell that the equation itself writes in an order that "
                "Devito chooses"
            )
        moved = {a: 0 if a in rows else int(d) for a, d in enumerate(self.offsets(indexed))}
        zeros, places = ", ".join("0" * len(self.space)), list[str]()
        for axis, distance in moved.items():
            if axis in rows:
                places.append(self.cells.add(f"arith.constant {rows[axis]} : index"))
                continue
            own = self.cells.add(f"stencil.index {axis} <[{zeros}]>")
            shift = self.cells.add(f"arith.constant {distance} : index")
            places.append(self.cells.add(f"arith.addi {own}, {shift} : index"))
        least = [rows[a] - high[a] + 1 if a in rows else d for a, d in moved.items()]
        most = [rows[a] - low[a] if a in rows else d for a, d in moved.items()]
        name = self.field_of(self.equations.role(indexed))
        kind = self.parameters.field_kind(function.name)
        temp = self.temp_kind(len(moved), stored_kind(function))
        loaded = self.loaded(name, kind, temp)
        return self.cells.add(
            f"stencil.dyn_access {loaded}[{', '.join(places)}] in <{least}> : <{most}> : {temp}"
        )

    def access(self, indexed: Any) -> str:
        """The cell of a field, at its distance from the written cell."""
        function = indexed.function
        name = self.field_of(self.equations.role(indexed))
        kind = self.parameters.field_kind(function.name)
        if rows := self.rows(indexed):
            found = self.in_row(indexed, rows)
        else:
            found = self.tap(name, kind, self.offsets(indexed), function)
        cell = stored_kind(function)
        if cell not in NARROW:
            return found
        operation = "extsi" if is_signed_function(function) else "extui"
        return self.cells.add(f"arith.{operation} {found} : {cell} to {NARROW[cell]}")

    def tap(self, name: str, kind: str, offsets: Sequence[str], function: Any) -> str:
        """The cell, at a distance, of a field given by name and type, like a function's."""
        temp = self.temp_kind(len(offsets) - offsets.count("_"), stored_kind(function))
        loaded = self.loaded(name, kind, temp)
        return self.cells.add(f"stencil.access {loaded}[{', '.join(offsets)}] : {temp}")

    def loaded(self, name: str, kind: str, temp: str) -> str:
        """The cells' name of a field's value, loaded once."""
        if name not in self.temps:
            value = f"%{self.name}_t{len(self.temps)}"
            self.loads.append(f"{value} = stencil.load {name} : {kind} -> {temp}")
            self.temps[name] = f"%{self.name}_a{len(self.temps)}"
            self.operands[value] = self.temps[name], temp
        return self.temps[name]

    def reciprocal(self, base: Any) -> str | None:
        """The reciprocal of an expression of coefficients at one cell, if known beforehand."""
        return self.made_before(1 / base, base)

    def made_before(self, made: Any, base: Any) -> str | None:
        """
        A value made of an expression of coefficients at one cell, from an array computed once a
        call; None if the expression has no such array.
        """
        reads = list(dict.fromkeys(indexed_in(base)))
        if self.written is None or not reads or any(map(self.rows, reads)):
            return None
        made = made.xreplace({read: sympy.Symbol(read.function.name) for read in reads})
        moves = made.free_symbols & {*self.loops, self.equations.time}
        roles = [self.equations.role(read) for read in reads]
        kinds = {self.parameters.field_kind(role.function) for role in roles}
        cell = stored_kind(reads[0].function)
        places = {self.offsets(read) for read in reads}
        fixed = all(r.series is TimeArrays.ONE and r.function not in self.written for r in roles)
        if moves or not fixed or len(kinds) > 1 or len(places) > 1 or not is_known(made):
            return None
        if cell != self.cells.own(base):
            return None
        name = self.parameters.name(Argument(Meaning.MADE, (made, cell)), kinds.pop())
        kind = self.parameters.field_kind(roles[0].function)
        return self.tap(name, kind, places.pop(), reads[0].function)

    def coordinate(self, dimension: Any, kind: str) -> str:
        """The value of the loop over a dimension, in a type."""
        axis = self.equations.axes.index(dimension.root)
        zeros = ", ".join("0" * len(self.space))
        index = self.cells.add(f"stencil.index {axis} <[{zeros}]>")
        word = self.cells.add(f"arith.index_cast {index} : index to i64")
        if shift := self.shift(axis):
            back = self.cells.add(f"arith.constant {-shift} : i64")
            word = self.cells.add(f"arith.addi {word}, {back} : i64")
        return self.cells.converted(word, "i64", kind)

    def write(self) -> list[str]:
        """The lines of the loads, the apply and the store; none where the box is empty."""
        role = self.equations.role(self.equation.target)
        kind = self.parameters.field_kind(role.function)
        return self.written_to(self.field_of(role), kind, self.kind)

    def written_to(self, field_name: str, field_kind: str, cell: str) -> list[str]:
        """The lines with a store to a field, given by name, type, and type of cells."""
        low, high = self.box()
        if any(a >= b for a, b in zip(low, high)):
            return []
        equation, cells = self.equation, self.cells
        target = equation.target
        value = cancelled(equation.value, self.is_outside)
        kind = cells.own(value)
        if equation.adds:
            kind = widest_kind(kind, cells.kind)
        result = cells.value(value, kind)
        if equation.adds:
            result = cells.binary("addf", cells.value(target, kind), result, kind)
        if equation.where:
            result, kind = cells.converted(result, kind, cells.kind), cells.kind
            condition = cells.condition(sympy.And(*equation.where))
            result = cells.select(condition, result, cells.value(target), kind)
        result = cells.converted(result, kind, NARROW.get(cell, cell))
        result = cells.converted(result, NARROW.get(cell, cell), cell)
        temp = self.temp_kind(len(self.space), cell)
        given = ", ".join(f"{a} = {v} : {kind}" for v, (a, kind) in self.operands.items())
        return [
            *self.loads,
            f"%{self.name} = stencil.apply({given}) -> ({temp}) {{",
            *(f"  {line}" for line in cells.lines),
            f"  stencil.return {result} : {cell}",
            "}",
            f"stencil.store %{self.name} to {field_name}(<{low}, {high}>) : {temp} to {field_kind}",
        ]
