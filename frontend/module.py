"""Makes a module of the stencil dialect from a step: one function, with a time loop over rotating
buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.frontend.boundaries import boundary_attribute
from timetile.frontend.boxes import Box, box_of
from timetile.frontend.cells import Cell, FloatType, located
from timetile.frontend.functions import STEP
from timetile.frontend.operations import Access, Argument, Time
from timetile.frontend.symbols import Assignment
from timetile.frontend.tracing import Step, walk
from timetile.passes.raising.cells import BOUNDARY

Buffer = tuple[str, Time]
"""A field, and the time level of one of its buffers."""


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


def spelled(name: str) -> str:
    """A Python name as an MLIR name, in ASCII letters: `λ` becomes `x3bb`."""
    return "".join(letter if letter.isascii() else f"x{ord(letter):x}" for letter in name)


def hint(buffer: Buffer) -> str:
    """The name of a buffer: the field's name, with the time level unless present."""
    name, level = spelled(buffer[0]), buffer[1]
    return name if level is Time.NOW else f"{name}_{level}"


def shape_of(step: Step, name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a field's array. The array may have fewer axes than the step."""
    return tuple(shape[axis] for axis in step.fields[name])


def reads_of(made: Sequence[Assignment]) -> list[Buffer]:
    """The buffers read by assignments, each once, in the order of the source."""
    found: dict[Buffer, None] = {}
    for value in walk([item.value for item in made]):
        if isinstance(value.operation, Access):
            found[value.operation.field, value.operation.time] = None
    return list(found)


def groups_of(step: Step, shape: Sequence[int]) -> list[tuple[Box, list[Assignment]]]:
    """
    Groups of consecutive assignments to equal cells of several fields, none reading a field written
    by another.
    """
    groups: list[tuple[Box, list[Assignment]]] = []
    for made in step.assignments:
        box = box_of(step, made, shape)
        if groups and groups[-1][0] == box:
            fields = {item.field for item in groups[-1][1]}
            read = {name for name, level in reads_of([made]) if level is Time.NEXT}
            if made.field not in fields and not fields & read:
                groups[-1][1].append(made)
                continue
        groups.append((box, [made]))
    return groups


class StepBuilder:
    """Builds the function of a step for arrays of one shape and type."""

    def __init__(self, step: Step, shape: Sequence[int], element: FloatType):
        self.step, self.shape, self.element = step, tuple(shape), element
        self.buffers = buffers_of(step)
        self.carried = [buffer for buffer in self.buffers if buffer[0] in step.written]
        kinds: list[Attribute] = [self.field_type(name) for name, _ in self.buffers]
        kinds += [element for _ in step.scalars]
        kinds += [
            MemRefType(i64 if name == STEP else element, [DYNAMIC_INDEX]) for name in step.series
        ]
        self.entry = Block(arg_types=[*kinds, IndexType()])
        self.outer: dict[Buffer, SSAValue] = dict(zip(self.buffers, self.entry.args))
        self.scalars: dict[str, SSAValue] = dict(
            zip(step.scalars, self.entry.args[len(self.buffers) :])
        )
        first = len(self.buffers) + len(step.scalars)
        self.series = dict(zip(step.series, self.entry.args[first:]))
        for buffer, argument in self.outer.items():
            argument.name_hint = hint(buffer)
        for name, argument in self.scalars.items():
            argument.name_hint = spelled(name)
        for name, argument in self.series.items():
            argument.name_hint = spelled(name).replace(" ", "_")
        self.entry.args[-1].name_hint = "steps"

    def field_type(self, name: str) -> stencil.FieldType[Attribute]:
        """The type of a field: all cells of its array."""
        sizes = shape_of(self.step, name, self.shape)
        bounds = stencil.StencilBoundsAttr.from_bounds([(0, size) for size in sizes])
        return stencil.FieldType(bounds, self.element)

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
        self.entry.add_ops([zero, one, loop, ReturnOp()])
        kinds = [argument.type for argument in self.entry.args]
        function = FuncOp(spelled(self.step.name), (kinds, []), Region(self.entry))
        located(function, self.step.place)
        module = ModuleOp([function])
        module.verify()
        return module

    def fill(self, body: Block, inner: dict[Buffer, SSAValue]) -> None:
        """The body of the time loop."""
        for name, series in self.series.items():
            number = memref.LoadOp.get(series, [body.args[0]])
            body.add_op(located(number, self.step.place))
            self.scalars[name] = number.res
        loaded: dict[Buffer, SSAValue] = {}
        for buffer in reads_of(self.step.assignments):
            if buffer[1] is not Time.NEXT:
                loaded[buffer] = self.load(body, inner, buffer, self.step.assignments[0])
        for box, made in groups_of(self.step, self.shape):
            for buffer in reads_of(made):
                if buffer not in loaded:
                    loaded[buffer] = self.load(body, inner, buffer, made[0])
            apply = self.apply(made, loaded)
            body.add_op(located(apply, made[0].place))
            for item, result in zip(made, apply.res):
                bounds = stencil.StencilBoundsAttr.from_bounds(box)
                store = stencil.StoreOp(result, inner[item.field, Time.NEXT], bounds)
                body.add_op(located(store, item.place))
        body.add_op(scf.YieldOp(*(inner[self.following(buffer)] for buffer in self.carried)))

    def following(self, buffer: Buffer) -> Buffer:
        """The buffer in the place of another after a step."""
        name, level = buffer
        last = Time.PREV if name in self.step.second else Time.NOW
        return name, {Time.NOW: Time.NEXT, Time.NEXT: last, Time.PREV: Time.NOW}[level]

    def load(
        self, body: Block, inner: dict[Buffer, SSAValue], buffer: Buffer, near: Assignment
    ) -> SSAValue:
        """A load of a buffer."""
        load = stencil.LoadOp(inner[buffer])
        if buffer[0] in self.step.edges:
            load.attributes[BOUNDARY] = boundary_attribute(self.step.edges[buffer[0]])
        body.add_op(located(load, near.place))
        return load.res

    def apply(self, made: Sequence[Assignment], loaded: dict[Buffer, SSAValue]) -> stencil.ApplyOp:
        """The apply of a group of assignments."""
        reads = reads_of(made)
        values = [item.value for item in made]
        used = {value.operation for value in walk(values)}
        edges = self.step.edges
        beyond = {side for name, _ in reads for sides in edges.get(name, ()) for side in sides}
        names = (*self.step.scalars, *self.step.series)
        scalars = [name for name in names if Argument(name) in used or name in beyond]
        operands = [loaded[buffer] for buffer in reads] + [self.scalars[name] for name in scalars]
        block = Block(arg_types=[operand.type for operand in operands])
        fields = dict(zip(reads, block.args))
        numbers = dict(zip(scalars, block.args[len(reads) :]))
        cell = Cell(block, self.element, self.shape, fields, numbers, edges)
        hints = [*map(hint, reads), *(spelled(name).replace(" ", "_") for name in scalars)]
        for text, argument in zip(hints, block.args):
            argument.name_hint = text
        results = cell.results(values)
        last: Operation = stencil.ReturnOp(results)
        block.add_op(located(last, made[-1].place))
        kind = stencil.TempType(IntAttr(self.step.rank), self.element)
        return stencil.ApplyOp(operands, block, [kind for _ in made])


def module_of(step: Step, shape: Sequence[int], element: FloatType) -> ModuleOp:
    """
    The stencil program of a step for arrays of a shape. Raises ValueError for too small arrays.
    """
    return StepBuilder(step, shape, element).module()
