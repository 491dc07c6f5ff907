"""Operators of Devito running on timetile: a language beside C and OpenMP."""

from __future__ import annotations

import copyreg
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from timetile.frontend.devito.builds import (
    Build,
    complete,
    is_quick,
    loops_over_time,
    properties_of,
)
from timetile.frontend.devito.calls import RunsInC, calling, running_call
from timetile.frontend.devito.checking import equations_of
from timetile.frontend.devito.complex_parts import without_suffix
from timetile.frontend.devito.equations import Equations
from timetile.frontend.devito.function_slices import original_name
from timetile.frontend.devito.library import NotCovered, module
from timetile.frontend.devito.runs import OperatorPlan, TimeLoop, call_of
from timetile.frontend.devito.where_calls_ran import COUNTS, RanOn
from timetile.passes.diagnostics import CompileError

LANGUAGE = "timetile"


class DevitoWarning(UserWarning):
    """An operator, or a call of one, runs in Devito's own C."""


def time_loops_of(operator: Any, equations: Equations) -> tuple[TimeLoop, ...]:
    """
    The operator's loops over time, in order, with their equations. Raises NotCovered for several
    loops that write one function.
    """
    iet, found = module("devito.ir.iet"), loops_over_time(operator)
    timed = [equation for equation in equations.items if equation.in_time]
    if len(found) == 1:
        return (TimeLoop(direction_of(found[0]), tuple(each.number for each in timed)),)
    written = [
        {each.write.name for each in iet.FindNodes(iet.Expression).visit(loop) if each.write}
        for loop in found
    ]
    numbers: list[list[int]] = [[] for _ in found]
    waiting: list[int] = []
    for equation in timed:
        waiting.append(equation.number)
        if not getattr(equation.target, "is_Indexed", False):
            # A number of a sparse operation, for the equation behind.
            continue
        name = without_suffix(original_name(equation.target.function.name))
        writers = [k for k, names in enumerate(written) if name in names]
        if len(writers) != 1:
            raise NotCovered(
                f"several loops over time write {name}; make the operator several operators"
            )
        numbers[writers[0]] += waiting
        waiting = []
    if waiting:
        raise NotCovered(
            f"{equations.items[waiting[0]].text} is in none of the several loops over time that is "
            "known; make the operator several operators"
        )
    pairs = zip(found, numbers, strict=True)
    return tuple(TimeLoop(direction_of(loop), tuple(each)) for loop, each in pairs if each)


def direction_of(loop: Any) -> int:
    """The direction of a loop over time: 1 or -1."""
    return -1 if str(loop.direction) == "--" else 1


def warn(reason: object) -> None:
    """Warn, with the reason, before Devito's own C runs."""
    text = str(reason)
    warnings.warn(f"Devito's own C runs in place of timetile: {text}", DevitoWarning, stacklevel=4)


def is_device(platform: Any) -> bool:
    """Whether Devito itself runs operators of the platform on a device."""
    return isinstance(platform, module("devito.arch").Device)


class LanguageKind(type):
    """
    The class of the operator classes on timetile, which pickle: a class is made anew from Devito's
    class `stock` and the options of `timetile.compile`.
    """

    stock: Any
    options: dict[str, Any]


def pickled_kind(kind: LanguageKind) -> tuple[Callable[..., Any], tuple[Any, dict[str, Any]]]:
    """How pickle makes an operator class again."""
    return language_operator, (kind.stock, kind.options)


copyreg.pickle(LanguageKind, pickled_kind)

KINDS: dict[Any, list[LanguageKind]] = {}
"""The operator classes made so far, by Devito's class."""


def language_operator(stock: Any, options: dict[str, Any]) -> LanguageKind:
    """The subclass of Devito's operator class, running on timetile instead of C."""
    known = KINDS.setdefault(stock, [])
    found = next((kind for kind in known if kind.options == options), None)
    if found is None:
        found = new_language_operator(stock, options)
        found.stock, found.options = stock, options
        known.append(found)
    return found


def check_options(options: dict[str, Any]) -> None:
    """Raise NotCovered for options of an operator that need Devito's own C."""
    if options["options"].get("mpi"):
        raise NotCovered("the operator uses MPI; run it on one process")
    if options["options"].get("errctl") == "max":
        raise NotCovered("errctl='max' asks for checks inside the loop over time")
    if is_device(options["platform"]):
        raise NotCovered(
            f"the platform {options['platform']} is a device of Devito's; leave it out, and choose "
            "the GPU by executor='gpu' of timetile.devito"
        )


def planned(build: Build, options: dict[str, Any]) -> tuple[Any, OperatorPlan | RanOn]:
    """A new operator, and the plan of its calls, or why calls run in Devito's own C."""
    operator = None
    try:
        check_options(build.options)
        equations = build.lowered()
        known = equations_of(equations)
        operator = build.quick(equations) or build.whole()
        return operator, OperatorPlan(known, time_loops_of(operator, known), options)
    except NotCovered as reason:
        is_whole = operator is not None and not is_quick(operator)
        return operator if is_whole else build.whole(), RanOn(str(reason))


def new_language_operator(stock: Any, options: dict[str, Any]) -> LanguageKind:
    """A new subclass of Devito's operator class."""

    def build(cls: Any, expressions: Any, **kwargs: Any) -> Any:
        made = Build(cls, stock, expressions, {**kwargs, "language": "C"})
        operator, plan = planned(made, options)
        if isinstance(plan, RanOn):
            warn(plan.reason)
        operator._timetile = plan
        return operator

    def c_function(operator: Any) -> Callable[..., Any]:
        plan: OperatorPlan | RanOn = operator._timetile
        running = running_call(operator)
        if isinstance(plan, RanOn) or (running is not None and running.in_c):
            return stock.cfunction.fget(operator)

        def call(*given: Any) -> int:
            asked = call_of(operator.parameters, given)
            with calling(operator) as running:
                try:
                    prepared = plan.prepare(asked)
                except (NotCovered, CompileError) as reason:
                    running.ran_on = RanOn(str(reason))
                    warn(reason)
                    if is_quick(operator):
                        sentence = "Devito's own C has other parameters; use apply"
                        raise RunsInC(sentence) from reason
                    return stock.cfunction.fget(operator)(*given)
                note(operator, given, plan.run(prepared, asked))
                running.ran_on = RanOn(remarks=plan.remarks_on(prepared))
            return 0

        return call

    def apply(operator: Any, **kwargs: Any) -> Any:
        if is_quick(operator) and not {*kwargs} <= {*operator._known_arguments, "autotune"}:
            complete(operator)
        with calling(operator) as running:
            if isinstance(operator._timetile, RanOn):
                running.ran_on = operator._timetile
            try:
                summary = stock.apply(operator, **kwargs)
            except RunsInC:
                complete(operator)
                running.in_c = True
                summary = stock.apply(operator, **kwargs)
        summary.ran_on = running.ran_on
        COUNTS[summary.ran_on] += 1
        return summary

    apply.__doc__ = stock.apply.__doc__
    names = {"_build": classmethod(build), "cfunction": property(c_function), "apply": apply}
    return LanguageKind(f"Timetile{stock.__name__}", (stock,), names | properties_of(stock))


def note(operator: Any, given: Sequence[Any], seconds: float) -> None:
    """Add the time of a run, in seconds, to Devito's first timer, shown in the summary."""
    for parameter, value in zip(operator.parameters, given):
        if parameter.name == "timers":
            timers = value._obj
            for name, _ in timers._fields_[:1]:
                setattr(timers, name, seconds)


def register(**options: Any) -> None:
    """
    Make `timetile` a language of Devito: `Operator(..., language="timetile")`, or for all operators
    `configuration["language"] = "timetile"`. `options` are options of `timetile.compile`, for
    operators made afterwards.
    """
    devito = module("devito")
    registry = module("devito.operator.registry")
    kinds = registry.OperatorRegistry
    if LANGUAGE not in kinds._languages:
        kinds._languages = (*kinds._languages, LANGUAGE)
        devito.configuration._accepted["language"].append(LANGUAGE)
    for (platform, mode, language), stock in list(registry.operator_registry.items()):
        if language == "C":
            made = language_operator(stock, options)
            registry.operator_registry.add(made, platform, mode, LANGUAGE)
