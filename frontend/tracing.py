"""
Traces a Python function as a step: the function is called once, on symbols that record operations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, cast, get_args, get_origin

from timetile.frontend.boundaries import Boundary, edges_of
from timetile.frontend.boxes import Reads, farthest_reads
from timetile.frontend.called_names import Called, closed_over
from timetile.frontend.complex_fields import IMAG, REAL, Complex, field_of_part
from timetile.frontend.errors import (
    SourcePlace,
    StencilError,
    caller_locals,
    error,
    explained,
    place_of_function,
)
from timetile.frontend.functions import STEP
from timetile.frontend.operations import Access, Argument, Coordinate, Extent, Time
from timetile.frontend.points import Points, PointsArgument, PointUse
from timetile.frontend.random_numbers import RandomNumbers
from timetile.frontend.repeats import check_closed
from timetile.frontend.steps import Step, walk
from timetile.frontend.sweeps import check_sweeps
from timetile.frontend.symbols import (
    RECORDING,
    Field,
    Held,
    Recorder,
    Scalar,
    Series,
)
from timetile.frontend.types_of_steps import check_types

TAKEN = {
    "state": "advance", "steps": "advance", "stream": "advance", "every": "snapshots",
    "first_step": "advance", "until": "advance", "keep": "advance", "batch": "advance",
}  # fmt: skip
"""Names of arguments of `Model`'s methods with scalars by name."""

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""Kinds of arguments with a name."""

DECLARED = {
    name: kind
    for kind in (Field, Scalar, Series, Complex, Points)
    for name in (kind.__name__, f"timetile.{kind.__name__}")
}
"""Annotations as text, for step functions in modules without the names at run time."""


Symbol = Field | Scalar | Series | Complex | Points
"""The symbol of an argument."""


def fields_of(symbols: Mapping[str, Symbol]) -> list[str]:
    """The fields among the arguments, both of a pair."""
    found: list[str] = []
    for name, symbol in symbols.items():
        if isinstance(symbol, Complex):
            found += [field_of_part(name, REAL), field_of_part(name, IMAG)]
        elif isinstance(symbol, Field):
            found.append(name)
    return found


def with_parts(boundary: Boundary, symbols: Mapping[str, Symbol]) -> Boundary:
    """A boundary by fields, with both fields of a pair."""
    if not isinstance(boundary, Mapping):
        return boundary
    found = dict(boundary)
    for name in [name for name in found if isinstance(symbols.get(name), Complex)]:
        both = found.pop(name)
        found |= {field_of_part(name, REAL): both, field_of_part(name, IMAG): both}
    return found


def annotation_of(parameter: inspect.Parameter, function: Callable[..., object]) -> object:
    """
    The declared type of a parameter, without what `typing.Annotated` adds. A type written as text
    is looked up among the names known where the function stands, and stays text if unknown.
    """
    found = parameter.annotation
    if isinstance(found, str):
        names = {**caller_locals(), **closed_over(cast("Called", function))}
        try:
            found = eval(found, function.__globals__, names)
        except (NameError, AttributeError, SyntaxError, TypeError):
            found = DECLARED.get(found, found)
    return get_args(found)[0] if get_origin(found) is Annotated else found


def arguments_of(
    function: Callable[..., object], recorder: Recorder, place: SourcePlace
) -> dict[str, Symbol]:
    """The symbols for the arguments of a step function."""
    symbols: dict[str, Symbol] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in NAMED:
            raise StencilError(f"{name} is no plain argument; name each field and scalar", place)
        if parameter.default is not inspect.Parameter.empty:
            raise StencilError(
                f"{name} has a default value; give the value to advance, or use a number from "
                "around the function",
                place,
            )
        if name in TAKEN:
            raise StencilError(f"{name} is an argument of {TAKEN[name]}; take another name", place)
        kind = annotation_of(parameter, function)
        if kind is Field:
            symbols[name] = Field(recorder, name)
            recorder.names.append(name)
        elif kind is Complex:
            parts = [field_of_part(name, part) for part in (REAL, IMAG)]
            symbols[name] = Complex(*(Field(recorder, part) for part in parts))
            recorder.names += parts
        elif kind is Scalar:
            symbols[name] = Scalar(name)
        elif kind is Series:
            symbols[name] = Series(name)
        elif kind is Points:
            symbols[name] = PointsArgument(recorder, name)
        elif name == "self" and kind is inspect.Parameter.empty:
            raise StencilError(
                "self has no type; decorate a method in the body of its class, or leave out self",
                place,
            )
        else:
            raise StencilError(
                f"{name} has no type; write {name}: timetile.Field or {name}: timetile.Scalar",
                place,
            )
    return symbols


def called(
    function: Callable[..., object],
    recorder: Recorder,
    symbols: Mapping[str, Symbol],
    place: SourcePlace,
) -> None:
    """Call the step function. Wrong names and types in the function become a StencilError."""
    try:
        token = RECORDING.set(recorder)
        try:
            returned = function(**symbols)
        finally:
            RECORDING.reset(token)
    except (AttributeError, IndexError, NameError, TypeError) as problem:
        found = explained(problem, advice_on(problem))
        if found is None:
            raise
        raise found from problem
    if returned is not None:
        raise StencilError("the step returns a value; assign the value, as u.next = ...", place)


def advice_on(problem: Exception) -> str:
    """A correction for a step found wrong by Python itself."""
    text = str(problem)
    if isinstance(problem, NameError):
        return (
            "a step uses its arguments, names around the function, and NumPy's functions as np.exp"
        )
    if isinstance(problem, IndexError):
        return (
            "an array of numbers is indexed by numbers; pass different numbers for cells as a "
            "timetile.Field"
        )
    if isinstance(problem, AttributeError) and any(
        f"{n!r}" in text for n in ("shape", "size", "ndim")
    ):
        return "timetile.extent(axis) is the size of the arrays along an axis"
    if isinstance(problem, AttributeError) and text.startswith("module "):
        return "a step uses functions of single numbers, as np.exp, np.sqrt and timetile.where"
    of = getattr(problem, "obj", None)
    is_of_user = of is not None and not type(of).__module__.startswith("timetile.")
    if isinstance(problem, AttributeError) and is_of_user:
        return "an object has its attributes before its step is used"
    if isinstance(problem, AttributeError):
        return "a field has u[...], u.prev[...] and u.next, and a value of a cell has operators"
    if any(name in text for name in ("Field", "Level", "Next")):
        return "a field has a value at each cell: say which, as u[0, 0] for the cell's own"
    return "write it with the operators and functions of single numbers"


def traced(function: Callable[..., object], reach: int | None, boundary: Boundary = "keep") -> Step:
    """The step described by a function. Raises StencilError if the function is no step."""
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise error(f"stencil takes a function of one time step, got {function!r}")
    place = place_of_function(function.__code__)
    recorder = Recorder(reach=reach)
    symbols = arguments_of(function, recorder, place)
    drawn = RandomNumbers(function)
    called(function, recorder, symbols, place)
    drawn.check(place)
    fields = fields_of(symbols)
    pairs = tuple(name for name, symbol in symbols.items() if isinstance(symbol, Complex))
    check_closed(recorder)
    if recorder.assignments:
        check_types(recorder, function.__name__, fields, place)
    if not recorder.assignments:
        raise StencilError("the step assigns no new values; write u.next = ...", place)
    if recorder.rank is None:
        made = recorder.assignments[0]
        raise StencilError(
            f"no index tells how many axes {made.field} has; assign a region of all cells, as "
            f"{made.field}.next[:, :] = ... for two axes",
            made.place,
        )
    for made in recorder.assignments:
        recorder.axes.setdefault(made.field, tuple(range(recorder.rank)))
    scalars = tuple(name for name, symbol in symbols.items() if isinstance(symbol, Scalar))
    try:
        edges = edges_of(with_parts(boundary, symbols), recorder.rank, fields, scalars)
    except ValueError as problem:
        raise StencilError(str(problem), place) from None
    step = Step(
        function.__name__,
        place,
        recorder.rank,
        {name: recorder.axes[name] for name in fields if name in recorder.axes},
        scalars,
        tuple(recorder.body),
        frozenset(recorder.previous),
        reach,
        edges,
        series_of(recorder, symbols),
        recorder.aliases,
        points=points_of(recorder, symbols, place),
        pairs=pairs,
    )
    check(step, fields)
    return step


def series_of(recorder: Recorder, symbols: Mapping[str, Symbol]) -> tuple[str, ...]:
    """The series of a step, and the number of the step if an assignment reads the number."""
    names = [name for name, symbol in symbols.items() if isinstance(symbol, Series)]
    read = {value.operation for value in walk([made.value for made in recorder.statements])}
    return (*names, *([STEP] if Argument(STEP) in read else []))


def points_of(
    recorder: Recorder, symbols: Mapping[str, Symbol], place: SourcePlace
) -> tuple[PointUse, ...]:
    """The uses of points. Raises StencilError for points without a use, or of a wrong field."""
    used = {use.name for use in recorder.points}
    for name, symbol in symbols.items():
        if isinstance(symbol, Points) and name not in used:
            raise StencilError(f"{name} is neither added nor read; remove the argument", place)
    for use in recorder.points:
        if not recorder.is_assigned(use.field):
            raise StencilError(
                f"{use.name} uses the new values of {use.field}, which gets none; assign "
                f"{use.field}.next",
                use.place,
            )
    return tuple(recorder.points)


def check(step: Step, fields: Sequence[str]) -> None:
    """StencilError where the parts of a step do not go together."""
    for name in fields:
        if name not in step.fields:
            raise StencilError(
                f"{name} is neither read nor assigned; remove the argument", step.place
            )
    check_sweeps(step)
    for made in step.assignments:
        if len(step.fields[made.field]) != step.rank:
            raise StencilError(
                f"{made.field} gets new values, and has fewer axes than the step with "
                f"{step.rank}; give it all axes",
                made.place,
            )
    known: dict[str, Reads] = {}
    for made in step.statements:
        sides = farthest_reads(step, made.value, known)
        if isinstance(made, Held):
            known[made.name] = sides
        reads = [far for both in sides for far in both]
        far = max((far for far in reads if far is not None), default=0)
        if step.reach is not None and far > step.reach:
            raise StencilError(
                f"the value reads {far} cells away through a temporary, and the step declares "
                f"reach={step.reach}; declare reach={far}",
                made.place,
            )
    for name in sorted(step.second - set(step.written)):
        raise StencilError(
            f"{name}.prev is read, and {name} gets no new values; read {name}[...], unchanged by "
            "the step",
            step.place,
        )
    for value in walk([made.value for made in step.statements]):
        match value.operation:
            case Access(time=Time.INSIDE):
                continue
            case Argument(name=name) | Access(field=name):
                check_own(step, name, value.place)
            case Coordinate(axis=axis):
                check_axis(step, f"coordinate({axis})", axis, value.place)
            case Extent(axis=axis):
                check_axis(step, f"extent({axis})", axis, value.place)
            case _:
                continue


def check_own(step: Step, name: str, place: SourcePlace) -> None:
    """
    Raise StencilError for a field or a scalar of another step, brought in by a name around the
    functions.
    """
    if name not in step.fields and name not in step.scalars and name not in step.series:
        raise StencilError(
            f"{name} is an argument of another step; make {name} an argument of {step.name}, too",
            place,
        )


def check_axis(step: Step, call: str, axis: int, place: SourcePlace) -> None:
    """Raise StencilError for a call that names an axis missing in the step."""
    if axis >= step.rank:
        raise StencilError(
            f"{call} names axis {axis}, and the last axis of the step is {step.rank - 1}; count "
            "from 0",
            place,
        )
