"""Makes a module of the stencil dialect from a step: one function, with a time loop over rotating
buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from timetile.dialects.verified_once import verify_module
from timetile.frontend.boxes import needed_boxes
from timetile.frontend.cells import located
from timetile.frontend.field_types import ARRAY_DTYPES, FieldTypes, computing_type, elements_of
from timetile.frontend.functions import STEP
from timetile.frontend.operations import Time
from timetile.frontend.point_operations import PointOperations
from timetile.frontend.point_runs import Rooms
from timetile.frontend.statements import Buffer, Statements, crossing, hint, spelled
from timetile.frontend.steps import Step
from timetile.frontend.sweep_operations import SweepOperations
from timetile.frontend.typed_values import TypedStep


def buffers_of(step: Step) -> list[Buffer]:
    """The arrays taken by the function of a step, in order."""
    buffers: list[Buffer] = []
    for name in step.fields:
        buffers.append((name, Time.NOW))
        if name in step.written:
            buffers.append((name, Time.NEXT))
        if name in step.second:
            buffers.append((name, Time.PREV))
    return buffers


def shape_of(step: Step, name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a field's array. The array may have fewer axes than the step."""
    return tuple(shape[axis] for axis in step.fields[name])


class StepBuilder:
    """
    Builds the function of a step for arrays of one shape, with elements of a type for each field.
    """

    def __init__(self, step: Step, shape: Sequence[int], types: FieldTypes, rooms: Rooms):
        self.step, self.shape, self.elements = step, tuple(shape), elements_of(types)
        self.typed = TypedStep(step, types)
        element = computing_type(types.values())
        self.buffers = buffers_of(step)
        self.carried = [buffer for buffer in self.buffers if buffer[0] in step.written]
        kinds: list[Attribute] = [self.field_type(name) for name, _ in self.buffers]
        kinds += [element for _ in step.scalars]
        kinds += [
            MemRefType(i64 if name == STEP else element, [DYNAMIC_INDEX]) for name in step.series
        ]
        self.points = PointOperations(step, self.shape, self.elements, rooms)
        kinds += self.points.kinds
        self.entry = Block(arg_types=[*kinds, IndexType()])
        self.outer: dict[Buffer, SSAValue] = dict(zip(self.buffers, self.entry.args))
        self.scalars: dict[str, SSAValue] = dict(
            zip(step.scalars, self.entry.args[len(self.buffers) :])
        )
        first = len(self.buffers) + len(step.scalars)
        self.series = dict(zip(step.series, self.entry.args[first:]))
        self.points.take(self.entry.args[first + len(step.series) : -1])
        for buffer, argument in self.outer.items():
            argument.name_hint = hint(buffer)
        for name, argument in self.scalars.items():
            argument.name_hint = spelled(name)
        for name, argument in self.series.items():
            argument.name_hint = spelled(name).replace(" ", "_")
        self.entry.args[-1].name_hint = "steps"
        self.sweeps = SweepOperations(spelled(step.name))

    def field_type(self, name: str) -> stencil.FieldType[Attribute]:
        """The type of a field: all cells of its array."""
        sizes = shape_of(self.step, name, self.shape)
        bounds = stencil.StencilBoundsAttr.from_bounds([(0, size) for size in sizes])
        return stencil.FieldType(bounds, self.elements[name])

    def module(self) -> ModuleOp:
        """The module."""
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        one = arith.ConstantOp(IntegerAttr(1, IndexType()))
        initial = [self.outer[buffer] for buffer in self.carried]
        body = Block(arg_types=[IndexType(), *(value.type for value in initial)])
        inner = {**self.outer, **dict(zip(self.carried, body.args[1:]))}
        for (name, level), argument in zip(self.carried, body.args[1:]):
            argument.name_hint = f"{spelled(name)}_{level}"
        self.fill(body, inner)
        loop = scf.ForOp(zero, self.entry.args[-1], one, initial, Region(body))
        located(loop, self.step.place)
        spread = list(self.sweeps.spread.values())
        self.entry.add_ops([zero, one, *spread, loop, ReturnOp()])
        kinds = [argument.type for argument in self.entry.args]
        function = FuncOp(spelled(self.step.name), (kinds, []), Region(self.entry))
        located(function, self.step.place)
        module = ModuleOp([*self.sweeps.functions, function])
        verify_module(module)
        return module

    def fill(self, body: Block, inner: dict[Buffer, SSAValue]) -> None:
        """Fill the body of the time loop."""
        for name, series in self.series.items():
            number = memref.LoadOp.get(series, [body.args[0]])
            body.add_op(located(number, self.step.place))
            self.scalars[name] = number.res
        fields = {**inner, **self.held()}
        statements = Statements(self.typed, self.shape, fields, self.scalars, sweeps=self.sweeps)
        statements.carry_over(body)
        statements.fill(body, self.step.body)
        self.points.emit(body, inner)
        body.add_op(scf.YieldOp(*(inner[self.following(buffer)] for buffer in self.carried)))

    def held(self) -> dict[Buffer, SSAValue]:
        """Fields of the function for temporaries made and read in different bodies."""
        found: dict[Buffer, SSAValue] = {}
        boxes = needed_boxes(self.step, self.shape)
        for name in crossing(self.step.body):
            bounds = stencil.StencilBoundsAttr.from_bounds(boxes[name])
            kind = ARRAY_DTYPES[self.typed.temporary(name)]
            alloc = stencil.AllocOp.build(result_types=[stencil.FieldType(bounds, kind)])
            self.entry.add_op(located(alloc, self.step.temporaries[name].place))
            alloc.results[0].name_hint = hint((name, Time.INSIDE))
            found[name, Time.INSIDE] = alloc.results[0]
        return found

    def following(self, buffer: Buffer) -> Buffer:
        """The buffer in the place of another after a step."""
        name, level = buffer
        last = Time.PREV if name in self.step.second else Time.NOW
        return name, {Time.NOW: Time.NEXT, Time.NEXT: last, Time.PREV: Time.NOW}[level]


def module_of(step: Step, shape: Sequence[int], types: FieldTypes, rooms: Rooms = ()) -> ModuleOp:
    """
    A step's stencil program for arrays of a shape, a type for each field, and the sizes of lists of
    points. Raises ValueError for arrays that are too small, StencilError for an operation that the
    types lack.
    """
    return StepBuilder(step, shape, types, rooms).module()
