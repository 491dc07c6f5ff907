"""
Builds of Devito's operators: quick ones for operators with many terms on timetile, and whole ones
for Devito's C.

Devito looks for common and invariant parts of terms, and blocks loops: with a thousand terms, half
of a build goes into C that timetile does not use. A quick build takes the equations as lowered for
timetile, and makes the parameters, the checks of a call and the loop over time from them, without
optimisations. When the C is looked at, or runs, the whole build follows, and the quickly built
operator takes the state of Devito's operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from timetile.frontend.devito.calls import calling, running_call
from timetile.frontend.devito.library import module

MANY = 20
"""The least number of accesses of functions for a quick build."""

MODES = ("noop", "advanced", "advanced-fsg")
"""Devito's named sets of optimisations; lists of passes are checked by whole builds."""

WHOLE = "_timetile_build"
"""The attribute of a quickly built operator for the whole build."""


def number_of_accesses(equations: Sequence[Any]) -> int:
    """The number of accesses of functions in lowered equations."""
    found = module("devito.symbolics").retrieve_indexed
    return sum(len(found(each, mode="all")) for each in equations)


@dataclass(frozen=True)
class Build:
    """The build of an operator: its class, Devito's class, expressions and options."""

    kind: Any
    stock: Any
    expressions: Any
    options: dict[str, Any]
    registry: Any = field(default_factory=lambda: module("devito.ir.support").SymbolRegistry())
    """The names of symbols of the equations without optimisations."""

    @property
    def plain(self) -> dict[str, Any]:
        """Devito's options without optimisations, with the operator's substitutions."""
        parse = module("devito.operator.operator").parse_kwargs
        given = parse(opt=("noop", {}), language="C", platform="cpu64")
        given["subs"] = self.options.get("subs", {})
        given["sym_options"] = self.options.get("sym_options", {})
        given["sregistry"] = self.registry
        return given

    def lowered(self) -> list[Any]:
        """Devito's equations with indices in place of derivatives, without optimisations."""
        core = module("devito.core.cpu").Cpu64NoopCOperator
        return list(core._lower_exprs(self.expressions, **self.plain))

    def whole(self) -> Any:
        """Devito's operator."""
        return self.stock._build.__func__(self.kind, self.expressions, **self.options)

    def whole_later(self) -> Any:
        """Devito's operator, built after the quick build has ended."""
        operators = module("devito.operator.operator")
        with operators.timed_region("op-compile") as region:
            try:
                operator = self.whole()
            finally:
                operators.CacheInstances.clear_caches()
                operators.memoized_func.clear_build_caches()
        operator._profiler.py_timers.update(region.timings)
        return operator

    def quick(self, equations: Sequence[Any]) -> Any | None:
        """
        The operator of equations lowered before, without optimisations. None for few accesses, for
        a list of passes, and for several loops over time: Devito's optimisations join loops.
        """
        if self.options["mode"] not in MODES or number_of_accesses(equations) < MANY:
            return None
        core = module("devito.core.cpu").Cpu64NoopCOperator

        def lowered_before(_: Any, expressions: Any, **options: Any) -> list[Any]:
            if expressions is not taken:
                return core._lower_exprs(expressions, **options)
            return list(equations)

        taken = module("devito.tools").as_tuple(self.expressions)
        quickly = type("Quick", (core,), {"_lower_exprs": classmethod(lowered_before)})
        plain = core._normalize_kwargs(**self.plain)
        plain["options"]["mpi"] = False
        names = ("name", "compiler", "allocator", "platform")
        given = {name: self.options[name] for name in names if name in self.options}
        operator = quickly._build(taken, **{**plain, **given})
        if len(loops_over_time(operator)) != 1:
            return None
        operator.__class__ = self.kind
        setattr(operator, WHOLE, self)
        return operator


def is_quick(operator: Any) -> bool:
    """Whether the operator was built quickly, without C."""
    return WHOLE in operator.__dict__


def complete(operator: Any) -> None:
    """Give a quickly built operator the state of Devito's operator; leave whole operators."""
    if not is_quick(operator):
        return
    plan, whole = operator._timetile, operator.__dict__[WHOLE].whole_later()
    operator.__dict__.clear()
    operator.__dict__.update({**whole.__dict__, "_timetile": plan})


def loops_over_time(operator: Any) -> list[Any]:
    """The loops over time of an operator, in order."""
    iet = module("devito.ir.iet")
    found = iet.FindNodes(iet.Iteration).visit(operator.__dict__["body"])
    return [loop for loop in found if loop.dim.is_Time]


def properties_of(stock: Any) -> dict[str, Any]:
    """Attributes for a subclass of Devito's class: a look at the C completes the operator first."""

    def body(operator: Any) -> Any:
        if running_call(operator) is None:
            complete(operator)
        return operator.__dict__["body"]

    def set_body(operator: Any, value: Any) -> None:
        operator.__dict__["body"] = value

    def state(operator: Any) -> Any:
        complete(operator)
        return stock.__getstate__(operator)

    def dimensions(operator: Any) -> Any:
        if not is_quick(operator):
            return stock.dimensions.func(operator)
        # Other dimensions come from optimisations.
        found = {each for one in operator._dimensions for each in one._defines}
        return tuple(sorted(found, key=attrgetter("name")))

    def arguments(operator: Any, **given: Any) -> Any:
        with calling(operator):
            return stock.arguments(operator, **given)

    def estimate_memory(operator: Any, **given: Any) -> Any:
        complete(operator)
        return stock.estimate_memory(operator, **given)

    return {
        "arguments": arguments,
        "body": property(body, set_body),
        "dimensions": property(dimensions),
        "estimate_memory": estimate_memory,
        "__getstate__": state,
    }
