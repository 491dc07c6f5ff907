"""Writes a sum of the grid's cells: an apply, a reduction, and a store of the number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from timetile.frontend.devito.cells import c_conversion
from timetile.frontend.devito.equations import has_time
from timetile.frontend.devito.evaluation import flat_place, integer
from timetile.frontend.devito.grid_sums import GridSum
from timetile.frontend.devito.kinds import is_integer_kind, stored_kind
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.parameters import Argument, Meaning
from timetile.frontend.devito.sweeps import Sweep


@dataclass
class NumberOfCells:
    """
    Writes one sum. `sweep` makes the added cells, in double precision: sums of many cells lose
    less, and have one order on all executors.
    """

    made: GridSum
    sweep: Sweep
    ints: Mapping[str, Any]

    @property
    def field_kind(self) -> str:
        """The type of the field of the added cells."""
        spans = (f"[{low},{high}]" for low, high in zip(*self.sweep.box()))
        return f"!stencil.field<{'x'.join(spans)}xf64>"

    def is_empty(self) -> bool:
        """No cell is added."""
        return any(low >= high for low, high in zip(*self.sweep.box()))

    def scratch(self) -> list[str]:
        """The line of the field of the added cells, for the beginning of the function."""
        if self.is_empty():
            raise NotCovered("it sums no cells")
        return [f"%{self.sweep.name}_cells = temporal.scratch : {self.field_kind}"]

    def write(self) -> list[str]:
        """The lines of the sum."""
        name, (low, high) = self.sweep.name, self.sweep.box()
        lines = self.sweep.written_to(f"%{name}_cells", self.field_kind, "f64")
        lines.append(
            f"%{name}_sum = temporal.reduce total %{name}_cells in <{low}, {high}> : "
            f"{self.field_kind} -> f64"
        )
        return [*lines, *self.stored(f"%{name}_sum")]

    def stored(self, total: str) -> list[str]:
        """The lines that store the number, or add the number to the target's."""
        name, target = self.sweep.name, self.made.equation.target
        function = target.function
        cell = stored_kind(function)
        if is_integer_kind(cell):
            raise NotCovered(f"it sums cells to {function.name}, an integer")
        if float(self.made.begin):
            raise NotCovered(f"its sum begins with {self.made.begin}")
        lines: list[str] = []
        if cell != "f64":
            lines.append(f"%{name}_n = arith.{c_conversion('f64', cell)} {total} : f64 to {cell}")
            total = f"%{name}_n"
        shape = self.sweep.parameters.shapes[function.name]
        kind = f"memref<{int(np.prod(shape))}x{cell}>"
        memory = self.sweep.parameters.name(Argument(Meaning.MEMORY, function.name), kind)
        place, at = self.place(target, shape)
        lines += place
        if self.made.keeps:
            lines.append(f"%{name}_old = memref.load {memory}[{at}] : {kind}")
            lines.append(f"%{name}_new = arith.addf %{name}_old, {total} : {cell}")
            total = f"%{name}_new"
        return [*lines, f"memref.store {total}, {memory}[{at}] : {kind}"]

    def place(self, target: Any, shape: tuple[int, ...]) -> tuple[list[str], str]:
        """The lines of the target's place in memory, and the place's name."""
        name, function = self.sweep.name, target.function
        if not has_time(function):
            indices = [integer(index, self.ints) for index in target.indices]
            place = flat_place(indices, shape)
            return [f"%{name}_at = arith.constant {place} : index"], f"%{name}_at"
        if function.dimensions[0].is_Stepping:
            raise NotCovered(f"it sums cells to {function.name}, with buffers that take turns")
        rest = [integer(index, self.ints) for index in target.indices[1:]]
        shift = integer(target.indices[0] - self.sweep.equations.time, self.ints)
        width = int(np.prod(shape[1:]))
        first = flat_place(rest, shape[1:]) + shift * width
        return [
            f"%{name}_width = arith.constant {width} : index",
            f"%{name}_row = arith.muli %now, %{name}_width : index",
            f"%{name}_first = arith.constant {first} : index",
            f"%{name}_at = arith.addi %{name}_row, %{name}_first : index",
        ], f"%{name}_at"
