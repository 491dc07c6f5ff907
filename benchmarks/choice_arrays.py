"""Arrays for the programs of `choice.py`, and how fast a program runs on them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from choice_answers import DTYPES, Question, domain_of
from choice_models import MODELS, start
from timing import events
from xdsl.dialects import stencil
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from timetile.dialects.syntax import element_type, field_type
from timetile.frontend.field_types import DType
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram

DRAWN = 2_000_003
"""Drawn cells of a field: a number without common factors with lengths of rows."""

SECONDS = 0.1
"""The least time of a timed run."""


def is_field(kind: Attribute) -> bool:
    """Whether an argument is a field."""
    return kind.name == stencil.FieldType.name


def takes(function: FuncOp) -> bool:
    """Whether a function has a body, and takes fields."""
    return bool(function.body.blocks) and any(map(is_field, function.body.block.arg_types))


@lru_cache(maxsize=24)
def cells_of(name: str, shape: tuple[int, ...], dtype: DType) -> Any:
    """
    A field to begin with, in GPU memory: some cells, drawn once for many programs, and again and
    again, at other places of each row.
    """
    cupy: Any = import_module("cupy")
    drawn = cupy.asarray(start(name, (DRAWN,), dtype))
    cells = cupy.empty(shape, dtype)
    done = min(drawn.nbytes, cells.nbytes)
    cells.data.copy_from_device(drawn.data, done)
    while done < cells.nbytes:
        size = min(done, cells.nbytes - done)
        (cells.data + done).copy_from_device(cells.data, size)
        done += size
    return cells


class Arrays:
    """The arguments of a program's function: arrays in GPU memory, and numbers."""

    def __init__(self, program: CompiledProgram, question: Question):
        (function,) = (op for op in program.module.walk() if isinstance(op, FuncOp) and takes(op))
        numbers = dict(MODELS[question.program].numbers) if question.program in MODELS else {}
        self.values: list[Any] = []
        for argument in function.body.block.args:
            hint = argument.name_hint or ""
            if not is_field(argument.type):
                self.values.append(numbers.get(hint, 1))
                continue
            shape = field_type(argument).get_shape()
            dtype = DTYPES[str(element_type(argument))]
            # Buffers that take turns begin with equal halos: buffers of one name, or of one shape.
            base = hint.removesuffix("_next").removesuffix("_prev")
            if question.program not in MODELS:
                base = f"cells of {shape}"
            self.values.append(cells_of(base, shape, dtype).copy())


def rate(
    program: CompiledProgram,
    question: Question,
    gpu: Device,
    depth: int,
    arrays: list[Any] | None = None,
    seconds: float = SECONDS,
    behind: int = 0,
) -> float:
    """
    The speed of long runs in 1e9 cell updates per second, on arrays or on new ones: the best of
    three runs of some seconds, less a run of few steps. A run's last steps are single ones, to
    leave all buffers as the plain loop does: of 30 ms of Yee's equations they take 8. Some steps
    may come behind all launches of the deepest kernel.
    """
    values = arrays or Arrays(program, question).values
    cells = 1
    for extent in domain_of(question.program):
        cells *= extent

    def run(steps: int) -> None:
        program(*values, steps=steps)

    # Kernels are made for even numbers of launches.
    period = 2 * depth
    few = period + behind
    run(few)
    spent = min(events(gpu, lambda: run(few), 3))
    more = period * max(2, int(seconds * 1e3 / max(spent, 1e-3)))
    best = min(events(gpu, lambda: run(few + more), 3))
    program.close()
    return round(cells * more / (best - spent) / 1e6, 1)
