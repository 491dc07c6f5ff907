"""Programs that make a number of all cells: a pass that computes a value, and the reduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from timetile.dialects.temporal import ReduceOp, Reduction
from timetile.frontend.arrays import seen_by_program, type_of
from timetile.frontend.boxes import Box, farthest_reads, reads_of_temporaries
from timetile.frontend.cells import located
from timetile.frontend.errors import StencilError
from timetile.frontend.field_types import (
    ARRAY_DTYPES,
    DType,
    FieldTypes,
    computing_type,
    elements_of,
)
from timetile.frontend.operations import Access, Argument, Time
from timetile.frontend.options import Options
from timetile.frontend.runs import StateRun
from timetile.frontend.statements import Buffer, Statements, hint, reads_of, spelled
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Held, StepStatement
from timetile.frontend.typed_values import TypedStep
from timetile.frontend.values import Value
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.graph_loop import PlacedNumber

NumberKey = tuple[object, ...]
"""The kind of a number, the operations behind it, and shape and type of the arrays."""

ALL_CELLS = "all cells"
"""The name of the value at all cells: no name of an argument."""


@dataclass
class PastChecks:
    """What earlier checks of a number leave: steps and seconds of runs, and programs for them."""

    steps: int = 0
    seconds: float = 0.0
    programs: dict[object, Any] = field(default_factory=dict[object, Any])
    pieces: list[Any] = field(default_factory=list[Any])
    """The work between two checks of runs that are done, the latest at the end."""


@dataclass(frozen=True)
class NumberProgram:
    """
    The program of a number, or of one for each box: of the arrays of `buffers`, and of the step's
    scalars.
    """

    program: CompiledProgram
    buffers: tuple[Buffer, ...]
    kind: Reduction
    boxes: tuple[Box, ...]
    body: tuple[StepStatement, ...]
    """The temporaries of the condition, and the value at all cells."""
    past: PastChecks = field(default_factory=PastChecks, compare=False)

    def run(self, arrays: Sequence[Any], scalars: Mapping[str, Any], stream: Any) -> Any:
        """The number."""
        (found,) = self.numbers(arrays, scalars, stream)
        return found

    def numbers(
        self, arrays: Sequence[Any], scalars: Mapping[str, Any], stream: Any
    ) -> Sequence[Any]:
        """The number of each box."""
        values = [seen_by_program(array) for array in arrays]
        return self.program(*values, *scalars.values(), stream=stream).returned

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the number."""
        return dtype_of(self.program.function.function_type.outputs.data[0])

    def noted(self, arrays: Sequence[Any], run: StateRun) -> list[PlacedNumber]:
        """
        Give the work to the run's stream while it is recorded: where the number of each box lies.
        """
        with self.program.runner(run.stream).fields.noting() as found:
            self.numbers(arrays, run.scalars, run.stream)
        return found.numbers


def types_of_fields(run: StateRun) -> dict[str, DType]:
    """The types of the fields of a run, by name."""
    return {name: cast(DType, type_of(run.arrays[name, Time.NOW])) for name in run.step.fields}


def structure(statements: Sequence[StepStatement]) -> tuple[object, ...]:
    """The operations behind statements, equal for equal values."""
    numbers: dict[int, int] = {}
    found: list[object] = []
    values = [made.value for made in statements]
    for value in walk(values):
        numbers[id(value)] = len(numbers)
        operands = tuple(numbers[id(operand)] for operand in value.operands)
        found.append((repr(value.operation), operands))
    return (*found, *(numbers[id(value)] for value in values))


def number_program(
    run: StateRun,
    kind: Reduction,
    held: Sequence[StepStatement],
    value: Value,
    known: dict[NumberKey, NumberProgram],
    options: Options,
) -> NumberProgram:
    """
    The program of a number made of a value at all cells, after temporaries, from `known` or made
    now.
    """
    body = (*held, Held(ALL_CELLS, value, value.place))
    types = types_of_fields(run)
    key = (kind, structure(body), run.shape, *types.values())
    if key not in known:
        for made in body:
            check_value(run.step, made.value)
        known[key] = number_of_boxes(run, kind, body, options)
    return known[key]


def number_of_boxes(
    run: StateRun,
    kind: Reduction,
    body: Sequence[StepStatement],
    options: Options,
    boxes: Sequence[Box] = (),
) -> NumberProgram:
    """The program of the number of the last value, at the cells of each box, or at all cells."""
    types = types_of_fields(run)
    step = replace(
        run.step,
        name=f"{run.step.name}_{kind}",
        body=tuple(body),
        reach=None,
        series=(),
        aliases={},
    )
    cells = tuple(boxes) or (box_of_value(step, run.shape),)
    module, buffers = module_of_number(step, kind, run.shape, types, cells)
    # The sweep is a single step, whatever the depth of the step's own kernels.
    chosen = options.copy()
    chosen["depth"] = None
    made = compile_program(module, **chosen)
    return NumberProgram(made, tuple(buffers), kind, cells, tuple(body))


def check_value(step: Step, value: Value) -> None:
    """Raise StencilError for reads that a condition cannot make."""
    for item in walk([value]):
        match item.operation:
            case Access(field=name, time=Time.NEXT) if name not in step.written:
                raise StencilError(
                    f"{name}.next is read, and the step assigns {name} no new values; read "
                    f"{name}[...]",
                    item.place,
                )
            case Access(field=name, time=Time.PREV) if name not in step.second:
                raise StencilError(
                    f"{name}.prev is read, and the step does not read it; read {name}[...], the "
                    "value a step before the newest",
                    item.place,
                )
            case Argument(name=name) if name not in step.scalars:
                raise StencilError(
                    "a condition reads fields and scalars; the number of the step is state.steps",
                    item.place,
                )
            case _:
                continue


def box_of_value(step: Step, shape: Sequence[int]) -> Box:
    """The cells with all reads inside the arrays. Raises StencilError if there is none."""
    made = step.temporaries[ALL_CELLS]
    reads = farthest_reads(step, made.value, reads_of_temporaries(step))
    box = tuple(
        (max(before or 0, 0), size - max(behind or 0, 0))
        for size, (before, behind) in zip(shape, reads)
    )
    if any(low >= high for low, high in box):
        raise StencilError(
            f"no cell of arrays of shape {tuple(shape)} has all reads inside; pass larger arrays",
            made.place,
        )
    return box


def module_of_number(
    step: Step, kind: Reduction, shape: tuple[int, ...], types: FieldTypes, boxes: Sequence[Box]
) -> tuple[ModuleOp, list[Buffer]]:
    """The program of a number for each box, and the buffers among its arguments."""
    element = computing_type(types.values())
    typed, elements = TypedStep(step, types, [ALL_CELLS]), elements_of(types)
    buffers = list(
        dict.fromkeys(read[:2] for read in reads_of(step.statements) if read[1] is not Time.INSIDE)
    )
    kinds: list[Attribute] = []
    for name, _ in buffers:
        sizes = [(0, shape[axis]) for axis in step.fields[name]]
        bounds = stencil.StencilBoundsAttr.from_bounds(sizes)
        kinds.append(stencil.FieldType(bounds, elements[name]))
    kinds += [element for _ in step.scalars]
    entry = Block(arg_types=kinds)
    result = ARRAY_DTYPES[typed.temporary(ALL_CELLS)]
    fields: dict[Buffer, SSAValue] = dict(zip(buffers, entry.args))
    for buffer, argument in fields.items():
        argument.name_hint = hint(buffer)
    scalars = dict(zip(step.scalars, entry.args[len(buffers) :]))
    for name, argument in scalars.items():
        argument.name_hint = spelled(name)
    numbers: list[SSAValue] = []
    for box in boxes:
        cells = stencil.StencilBoundsAttr.from_bounds(box)
        held = stencil.AllocOp.build(result_types=[stencil.FieldType(cells, result)])
        entry.add_op(held)
        fields[ALL_CELLS, Time.INSIDE] = held.results[0]
        statements = Statements(typed, shape, fields, scalars, {ALL_CELLS: box})
        statements.fill(entry, step.body)
        number = ReduceOp(kind, held.results[0], cells)
        entry.add_op(located(number, step.place))
        numbers.append(number.result)
    entry.add_op(ReturnOp(*numbers))
    function = FuncOp(spelled(step.name), (kinds, [result] * len(boxes)), Region(entry))
    module = ModuleOp([located(function, step.place)])
    module.verify()
    return module, buffers
