"""From the equations of a step to the text of a function for `timetile.compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timetile.frontend.devito.cells import Cells
from timetile.frontend.devito.equations import (
    Equation,
    Equations,
    Role,
    TimeArrays,
    is_sparse_equation,
)
from timetile.frontend.devito.evaluation import integer
from timetile.frontend.devito.grid_sums import GridSum
from timetile.frontend.devito.kinds import loaded_kind
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.number_of_cells import NumberOfCells
from timetile.frontend.devito.parameters import Argument, Meaning, Parameters
from timetile.frontend.devito.sparse import Entries, Nest, Statement
from timetile.frontend.devito.sweeps import Scalars, Sweep


@dataclass(frozen=True)
class Function:
    """A function's text, its arguments in order, and its entries."""

    text: str
    arguments: tuple[Argument, ...]
    entries: tuple[Entries, ...]
    kind: str
    writes: bool = True
    """Whether an equation has cells to write; a box may be empty."""


WHOLE = {"IntDiv": "divsi", "Mod": "remsi"}
"""Operations on whole numbers, by the names of Devito's classes."""


@dataclass
class Writer:
    """
    Writes the function of some equations of a step. `ints` are the values behind indices and
    bounds, `shapes` the shapes of all arrays. `direction` is 1 for growing time, -1 for falling
    time, 0 without time.
    """

    equations: Equations
    statements: Mapping[int, Sequence[Statement]]
    ints: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    direction: int
    sums: Mapping[int, GridSum] = field(default_factory=dict[int, GridSum])
    free_order: bool = False
    """Whether the compiler may order the terms of sums."""
    parameters: Parameters = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = Parameters(self.equations, self.shapes)

    def function(self, active: Sequence[Equation]) -> Function:
        """The function; NotCovered names the equation without a translation."""
        parameters = self.parameters
        kind = kind_of(active)
        host = Cells(kind, "h", lambda e, kind: self.host_leaf(e, host, kind), self.is_scalar)
        scalars = Scalars(parameters, host, self.equations.time)
        lines: list[str] = []
        entries: list[Entries] = []
        written = self.equations.written
        before: list[str] = []

        def field_of(role: Role) -> str:
            name = parameters.array(role)
            return level_name(role) if role.series is TimeArrays.LEVELS else name

        for equation in active:
            try:
                if is_sparse_equation(equation):
                    for statement in self.statements.get(equation.number, ()):
                        entries.append(Entries(statement))
                        nest = Nest(
                            self.equations,
                            entries[-1],
                            len(entries) - 1,
                            parameters,
                            self.ints,
                            field_of,
                            written,
                            kind,
                        )
                        lines += nest.write()
                    continue
                added = self.sums.get(equation.number)
                sweep = Sweep(
                    self.equations,
                    equation if added is None else added.cells(),
                    parameters,
                    scalars,
                    self.ints,
                    f"e{equation.number}",
                    field_of,
                    written if self.direction else None,
                    self.free_order,
                )
                if added is None:
                    made = sweep.write()
                    stored = lines.pop() if equation.is_second_part and made else None
                    lines += made
                    if stored is not None:
                        # Both parts are read before either is written.
                        lines.insert(len(lines) - 1, stored)
                else:
                    number = NumberOfCells(added, sweep, self.ints)
                    before += number.scratch()
                    lines += number.write()
            except NotCovered as error:
                raise NotCovered(f"{equation.text}: {error}") from None
        plain = [*host.lines, *lines]
        body = self.looped(parameters, plain, kind) if self.direction else plain
        text = framed(parameters, [*before, *body])
        return Function(text, tuple(parameters.known), tuple(entries), kind, bool(lines))

    def is_scalar(self, expression: Any) -> bool:
        """Whether the expression is an argument of the function, equal in all steps."""
        return self.equations.time not in expression.free_symbols

    def host_leaf(self, expression: Any, host: Cells, kind: str) -> str | None:
        """
        The values from which the host computes: the number of the step, its quotients and
        remainders, and scalars.
        """
        if expression == self.equations.time:
            return "%clock"
        if type(expression).__name__ in WHOLE and not self.is_scalar(expression):
            return self.of_step(expression, host, kind)
        if expression.is_Number or not self.is_scalar(expression):
            return None
        return self.parameters.scalar(expression, kind)

    def of_step(self, expression: Any, host: Cells, kind: str) -> str:
        """A quotient or a remainder of the number of the step, rounded as in C."""
        numerator, divisor = expression.args
        shift = host.number(integer(numerator - self.equations.time, self.ints), "i64")
        below = host.number(integer(divisor, self.ints), "i64")
        moved = host.add(f"arith.addi %word, {shift} : i64")
        operation = WHOLE[type(expression).__name__]
        made = host.add(f"arith.{operation} {moved}, {below} : i64")
        return host.converted(made, "i64", kind)

    def looped(self, parameters: Parameters, body: Sequence[str], kind: str) -> list[str]:
        """The body in a loop over time with rotating fields; the host computes in a type."""
        steps = parameters.name(Argument(Meaning.STEPS), "index")
        used = "\n".join(body)
        lines = list(body)
        if any(name in used for name in ("%clock", "%now", "%word")):
            start = parameters.name(Argument(Meaning.START), "index")
            move = "addi" if self.direction > 0 else "subi"
            before = [f"%now = arith.{move} {start}, %step : index"]
            if "%clock" in used or "%word" in used:
                before.append("%word = arith.index_cast %now : index to i64")
            if "%clock" in used:
                before.append(f"%clock = arith.sitofp %word : i64 to {kind}")
            lines = [*before, *lines]
        levels = parameters.levels()
        kinds = ", ".join(parameters.known[argument][1] for argument in levels)
        names = {argument: level_name(argument.of) for argument in levels}
        carried = ", ".join(f"{names[a]} = {parameters.known[a][0]}" for a in levels)
        turned = ", ".join(level_name(self.next_level(argument.of)) for argument in levels)
        head = f"scf.for %step = %zero to {steps} step %one"
        if not levels:
            return [f"{head} {{", *(f"  {line}" for line in lines), "}"]
        return [
            f"%last:{len(levels)} = {head} iter_args({carried}) -> ({kinds}) {{",
            *(f"  {line}" for line in lines),
            f"  scf.yield {turned} : {kinds}",
            "}",
        ]

    def next_level(self, role: Role) -> Role:
        """The level whose array is the array of `role` in the next step."""
        count = self.equations.levels[role.function]
        return Role(role.function, TimeArrays.LEVELS, (role.at + self.direction) % count)


def level_name(role: Role) -> str:
    """The name of the loop's own field at a level."""
    return f"%{role.function}_level{role.at}"


def kind_of(active: Sequence[Equation]) -> str:
    """The type of the numbers that the host computes: f32 if all written cells are float32."""
    kinds = {
        loaded_kind(e.target.function) for e in active if getattr(e.target, "is_Indexed", False)
    }
    return "f32" if kinds == {"f32"} else "f64"


def framed(parameters: Parameters, body: Sequence[str]) -> str:
    """A function around lines."""
    given = ", ".join(f"{name} : {kind}" for name, kind in parameters.known.values())
    return "\n".join(
        [
            f"func.func @devito({given}) {{",
            "  %zero = arith.constant 0 : index",
            "  %one = arith.constant 1 : index",
            *(f"  {line}" for line in body),
            "  func.return",
            "}",
            "",
        ]
    )
