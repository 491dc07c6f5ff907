"""Runs that end early: conditions on numbers of all cells, and the functions making the numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from numbers import Number
from typing import Any, Protocol

import numpy as np

from timetile.dialects.temporal import Reduction
from timetile.frontend.complex_fields import IMAG, REAL, Complex, field_of_part
from timetile.frontend.errors import error, explained
from timetile.frontend.numbers import NumberKey, NumberProgram, number_program
from timetile.frontend.options import Options
from timetile.frontend.runs import StateRun
from timetile.frontend.steps import Step
from timetile.frontend.symbols import RECORDING, Field, Level, Next, Recorder, Scalar
from timetile.frontend.values import NotReal, Value, lifted
from timetile.frontend.watched import Watch
from timetile.frontend.whole_fields import WholeField
from timetile.runtime.program.pieces import checked_count


class Numbers(Protocol):
    """Makes numbers of all cells during a run."""

    def number(self, kind: Reduction, value: Value) -> Any:
        """The number of a kind, made of a value at all cells."""
        ...


SYMBOLS = [repr(kind.__name__) for kind in (Field, Level, Next, Scalar, Value)]
"""How Python calls the symbols in its errors."""

COMPARED = "in until=, numbers of all cells are compared, as timetile.maximum(u[0]) < 1"
"""What to write where a field or a cell's value has no such operator or method."""

ENDING: ContextVar[Numbers] = ContextVar("ENDING")
"""The run at a check of its condition."""


def number_of_cells(kind: Reduction, value: Value | float) -> Any:
    """The number of a kind. Raises StencilError outside of a condition."""
    found = ENDING.get(None)
    if found is None:
        raise error(
            f"{kind} is a number of all cells, and a step computes one cell; call it in a "
            f"condition, as advance(state, 1000, every=10, until=lambda u: timetile.{kind}("
            "u.next[0]) < 1)"
        )
    return found.number(kind, lifted(value))


def maximum(value: Value | float) -> Any:
    """
    The greatest value of all cells, a number of NumPy of the arrays' type; NaN if a value is NaN.
    Cells with reads outside the arrays are left out, unless `boundary=` continues the fields.
    Raises StencilError outside of `until=`.
    """
    return number_of_cells(Reduction.MAXIMUM, value)


def minimum(value: Value | float) -> Any:
    """The least value of all cells, like `timetile.maximum`."""
    return number_of_cells(Reduction.MINIMUM, value)


def total(value: Value | float) -> Any:
    """
    The sum of the values of all cells, like `timetile.maximum`. The order of the sum is fixed: bits
    are equal on every executor and for any number of threads.
    """
    return number_of_cells(Reduction.TOTAL, value)


class OtherNumbersError(Exception):
    """A condition asks for other numbers than at its check before."""


def arguments_of_condition(until: Callable[..., object], step: Step) -> list[inspect.Parameter]:
    """
    The arguments of a condition that a step has, and no others but with default values. Raises
    TypeError for others, and for no function.
    """
    known = (*step.fields, *step.scalars, *step.pairs)
    try:
        found = inspect.signature(until).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(
            f"until is a function of arguments of {step.label}, got {until!r}; pass lambda "
            f"{known[0]}: ..."
        ) from None
    needed = [each for each in found if each.name in known or each.default is each.empty]
    if unknown := [each.name for each in needed if each.name not in known]:
        raise TypeError(
            f"until takes {', '.join(unknown)}, and {step.label} has {', '.join(known)}; name "
            "arguments of the step"
        )
    return needed


def truth(answer: Any) -> bool:
    """
    The answer of a condition, which may have none and keep numbers only. Raises TypeError for
    several answers, for that of a cell, and for a number.
    """
    if isinstance(answer, Value | NotReal | WholeField):
        raise TypeError(
            "until compares numbers made of all cells, and a cell's value is none; write "
            "timetile.maximum(u[0]) in place of u[0], or minimum or total"
        )
    if np.size(answer) != 1:
        raise TypeError(
            f"until tells by one truth value whether the run ends, got {answer!r}; write a.any() "
            "or a.all()"
        )
    if not isinstance(answer, bool) and isinstance(answer, str | Number):
        raise TypeError(
            f"until tells by a truth value whether the run ends, got {answer!r}; return a "
            "comparison, as timetile.maximum(u[0]) < 1"
        )
    return bool(answer)


class EndCondition:
    """
    The condition that ends a run: a function of fields and scalars, called at each check. Programs
    of numbers are kept in `programs`.
    """

    def __init__(
        self,
        run: StateRun,
        until: Callable[..., object],
        programs: dict[NumberKey, NumberProgram],
        options: Options,
    ):
        self.run, self.until, self.programs, self.options = run, until, programs, options
        self.arguments = arguments_of_condition(until, run.step)
        self.recorder = Recorder()
        self.watches, self.watch = False, Watch()
        """Whether comparisons of numbers are noted, and the comparisons of the latest check."""
        self.used: list[NumberProgram] = []
        """The programs of the numbers of the latest check on the run's arrays, in order."""
        self.known: Sequence[float] | None = None
        """The numbers of a check made before."""
        self.asked = 0
        """How many numbers the present check has asked for."""

    @property
    def is_watched(self) -> bool:
        """Whether all that the latest check compared is known, and something was compared."""
        return self.watches and self.watch.is_known and bool(self.watch.comparisons)

    def holds(self, known: Sequence[float] | None = None) -> bool:
        """
        Whether the run ends: after the steps done, or by the numbers of an earlier check of the
        same kind. Raises OtherNumbersError if the condition asks for more numbers, or for others.
        """
        self.known, self.asked, self.watch = known, 0, Watch()
        if known is None:
            self.used = []
        step = self.run.step
        self.recorder = Recorder(
            rank=step.rank, first=step.label, ended=True, axes=dict(step.fields)
        )
        given = {each.name: self.symbol(each.name) for each in self.arguments}
        placed = [each.name for each in self.arguments if each.kind is each.POSITIONAL_ONLY]
        by_place = [given.pop(name) for name in placed]
        recording, ending = RECORDING.set(self.recorder), ENDING.set(self)
        try:
            answer = truth(self.until(*by_place, **given))
        except (AttributeError, TypeError) as problem:
            # The function may do anything else, with errors of its own.
            of_symbols = any(kind in str(problem) for kind in SYMBOLS)
            found = explained(problem, COMPARED) if of_symbols else None
            if found is None:
                raise
            raise found from problem
        finally:
            ENDING.reset(ending)
            RECORDING.reset(recording)
        if known is not None and self.asked != len(known):
            raise OtherNumbersError
        return answer

    def symbol(self, name: str) -> Field | Scalar | Complex:
        """The symbol of an argument."""
        if name in self.run.step.pairs:
            parts = (field_of_part(name, part) for part in (REAL, IMAG))
            return Complex(*(Field(self.recorder, part) for part in parts))
        return Field(self.recorder, name) if name in self.run.step.fields else Scalar(name)

    def number(self, kind: Reduction, value: Value) -> Any:
        """The number of a kind, made of a value at all cells."""
        program = number_program(
            self.run, kind, [*self.recorder.statements], value, self.programs, self.options
        )
        place, self.asked = self.asked, self.asked + 1
        if self.known is not None:
            if place >= len(self.known) or program is not self.used[place]:
                raise OtherNumbersError
            number = program.dtype.type(self.known[place])
        else:
            self.used.append(program)
            arrays = [self.run.before(*buffer) for buffer in program.buffers]
            number = program.run(arrays, self.run.scalars, self.run.stream)
        return self.watch.number(place, number) if self.watches else number


def checked_pieces(every: object) -> int:
    """The steps between two stops of a run. Raises ValueError for less than 1."""
    between = checked_count(every, "a run stops after every so many steps, an int")
    if between < 1:
        raise ValueError(f"a run stops after every so many steps, 1 or more, got {every}")
    return between


def advanced_in_pieces(
    run: StateRun,
    steps: int,
    every: int,
    condition: EndCondition | None,
    keep: Callable[[], None],
) -> bool:
    """
    Advance by at most `steps` steps, with a stop after every `every` steps and at the end: `keep`
    is called, and after `every` steps the condition asked. Returns whether the condition ended the
    run.
    """
    while run.done < steps:
        count = min(every, steps - run.done)
        run.go(count)
        keep()
        if condition is not None and count == every and condition.holds():
            return True
    return False
