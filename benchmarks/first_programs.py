"""The programs of first_result.py, and what makes and runs each."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from check_programs import programs, stated_programs, values_of
from check_python import EXAMPLES
from level_solver import solver_text

import timetile
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model

DOMAINS = {2: (2048, 2048), 3: (256, 256, 256)}
"""The domains of steps in Python, by the number of axes."""

SMALL_DOMAINS = {2: (512, 512), 3: (64, 64, 64)}
"""The domains on the executor `cpu`, whose machine code does not depend on the domain."""

STEPS = 20
"""Steps of a call, unless asked for."""

STEPS_OF_TEXTS = 16
"""Steps of a call of a program's text: values for points are given for so many."""

EXAMPLE_CELLS = 512
"""Cells along the first axis of the examples in Python, unless asked for."""

Run = Callable[[], object]
"""Runs a made program, and returns its arrays."""

Make = Callable[[], Run]
"""Compiles a program."""


@dataclass(frozen=True)
class Way:
    """How a program runs: the executor, the steps of a call, and cells along each axis."""

    executor: Any
    steps: int | None = None
    cells: int | None = None


def kernels_of(program: timetile.CompiledProgram) -> None:
    """Compile and assemble all kernels of a program."""
    names = [fact.name for facts in program.kernels.facts for fact in facts]
    program.kernels.begin(names)
    for name in names:
        program.kernels.kernel(name)


def nothing() -> None:
    """Kernels alone do not run."""


def make_text(text: str, way: Way) -> Make:
    """A program in IR."""
    values = values_of(timetile.compile(text, executor="cpu", cache=False), 3)
    steps = way.steps or STEPS_OF_TEXTS

    def make() -> Run:
        if way.executor == "kernels":
            kernels_of(timetile.compile(text, executor="cpu"))
            return nothing
        program = timetile.compile(text, executor=way.executor)

        def run() -> object:
            program(*values, steps=steps)
            return values

        return run

    return make


def make_step(
    model: Model, cells: Callable[[str, tuple[int, ...]], Any], numbers: dict[str, float], way: Way
) -> Make:
    """A step in Python."""
    shape = (SMALL_DOMAINS if way.executor == "cpu" else DOMAINS)[model.step.rank]
    shape = shape if way.cells is None else (way.cells,) * model.step.rank
    return make_model(model, {name: cells(name, shape) for name in model.step.fields}, numbers, way)


def make_model(model: Model, arrays: dict[str, Any], numbers: dict[str, float], way: Way) -> Make:
    """A step in Python on arrays."""

    def make() -> Run:
        if way.executor == "kernels":
            shape = max((array.shape for array in arrays.values()), key=len)
            kinds: dict[str, DType] = {}
            for name, array in arrays.items():
                kinds[name] = cast(DType, str(array.dtype))
            kernels_of(timetile.compile(model.module(shape, kinds), executor="cpu"))
            return nothing
        made = model.on(executor=way.executor)
        return lambda: made.advance(arrays, way.steps or STEPS, **numbers)

    return make


def make_example(name: str, way: Way) -> Make:
    """A step of examples/python."""
    sys.path.insert(0, str(EXAMPLES))
    example = import_module(name)
    arrays = dict(example.start(way.cells or EXAMPLE_CELLS))
    return make_model(getattr(example, name), arrays, dict(example.NUMBERS), way)


LOWERING: list[float] = []
"""Seconds of this process in Devito's own lowering, by parts."""


def timed_part(part: Callable[..., Any]) -> Callable[..., Any]:
    """A part of Devito's lowering that adds its seconds to `LOWERING`."""

    def run(*given: Any) -> Any:
        start = time.perf_counter()
        try:
            return part(*given)
        finally:
            LOWERING.append(time.perf_counter() - start)

    return run


def make_operator(model_of: Callable[[tuple[int, ...]], Any], way: Way) -> Make:
    """An operator of Devito."""
    from devito_operators import operator_of

    from timetile.frontend.devito.builds import Build

    for name in ("lowered", "quick", "whole"):
        setattr(Build, name, timed_part(getattr(Build, name)))

    usual = 32 if way.executor == "cpu" else 128
    model = model_of((way.cells or usual,) * 3)
    if way.executor == "kernels":
        raise ValueError("Devito makes kernels of an operator in a run: give cpu or gpu")

    def make() -> Run:
        operator = operator_of(model, way.executor)

        def run() -> object:
            operator.apply(time_m=1, time_M=way.steps or STEPS, dt=model.dt)
            return [function.data for function in model.changed]

        return run

    return make


def devito_seconds(model_of: Callable[[tuple[int, ...]], Any], way: Way) -> float:
    """Seconds of Devito's own work for an operator: equations to C, without a compiler of C."""
    dv: Any = import_module("devito")
    model = model_of((way.cells or 32,) * 3)
    start = time.perf_counter()
    str(dv.Operator(model.equations, opt="noop"))
    return time.perf_counter() - start


def operators() -> dict[str, Callable[[tuple[int, ...]], Any]]:
    """The operators of Devito by name; none without Devito."""
    if find_spec("devito") is None:
        return {}
    from devito_operators import MODELS as OPERATORS
    from devito_waves import MODELS as WAVES

    made = {name: make for name, (make, _) in OPERATORS.items()} | WAVES
    return {f"Devito {name}": make for name, make in made.items()}


Makes = Iterator[tuple[str, Callable[[Way], Make]]]
"""Programs by name, each with what makes it."""


def usual_cases() -> Makes:
    """docs/programs.md, all examples, operators of Devito, waves in 3D, a solver of 159 levels."""
    for name, text in stated_programs().items():
        yield name, partial(make_text, text)
    examples = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "draw")
    for name in examples:
        yield f"examples/python/{name}.py", partial(make_example, name)
    yield "159 levels", partial(make_text, solver_text())
    from real_steps import PROGRAMS, first_cells

    cells = partial(first_cells, dtype="float32")
    elastic = PROGRAMS["elastic_3d_so4"]
    yield "elastic_3d_so4 f32", partial(make_step, elastic, cells, {})
    for name, make in operators().items():
        yield name, partial(make_operator, make)


def other_cases() -> Makes:
    """test/programs, and steps of the other benchmarks."""
    stated = stated_programs()
    for name, text in programs([]).items():
        if name not in stated:
            yield name, partial(make_text, text)
    from choice_models import MODELS, start
    from coupled_programs import SYSTEMS
    from real_steps import PROGRAMS, first_cells

    for name, model in MODELS.items():
        for element, dtype in (("f32", "float32"), ("f64", "float64")):
            cells = partial(start, dtype=dtype)
            yield f"{name} {element}", partial(make_step, model.step, cells, dict(model.numbers))
    systems = {name: system.step for name, system in SYSTEMS.items()}
    for name, step in (PROGRAMS | systems).items():
        if name not in MODELS and name != "elastic_3d_so4":
            cells = partial(first_cells, dtype="float32")
            yield f"{name} f32", partial(make_step, step, cells, {})


def make_of(name: str, way: Way) -> Make:
    """What makes a program. Programs behind it, and their packages, are not even imported."""
    for cases in (usual_cases, other_cases):
        for each, make in cases():
            if each == name:
                return make(way)
    raise ValueError(f"no program has the name {name}")
