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
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.frontend.boundaries import boundary_attribute
from timetile.frontend.boxes import Box, box_of, carried_over, computed_outside
from timetile.frontend.cells import Cell, FloatType, located
from timetile.frontend.errors import SourcePlace
from timetile.frontend.functions import STEP
from timetile.frontend.operations import Access, Argument, Time
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment, Held, StepStatement
from timetile.passes.raising.cells import BOUNDARY
from timetile.passes.raising.recurrences import SNAPSHOT

Buffer = tuple[str, Time]
"""A field, and the time level of one of its buffers."""

Read = tuple[str, Time, int]
"""A field or a temporary, the time level, and the number of assignments before the read."""


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
    name, level = spelled(buffer[0]).replace(" ", ""), buffer[1]
    return name if level in (Time.NOW, Time.INSIDE) else f"{name}_{level}"


def shape_of(step: Step, name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a field's array. The array may have fewer axes than the step."""
    return tuple(shape[axis] for axis in step.fields[name])


def reads_of(made: Sequence[StepStatement]) -> list[Read]:
    """What statements read, each once, in the order of the source."""
    found: dict[Read, None] = {}
    for value in walk([item.value for item in made]):
        if isinstance(value.operation, Access):
            read = value.operation
            found[read.field, read.time, read.version] = None
    return list(found)


Group = tuple[Box | None, list[Assignment | Held]]
"""Statements with one apply, and the cells assigned; None for a temporary."""


def groups_of(step: Step, shape: Sequence[int]) -> list[Group]:
    """
    Groups of consecutive assignments to equal cells of several fields, none reading a field written
    by another. A temporary is a group of its own.
    """
    groups: list[Group] = []
    for made in step.statements:
        if isinstance(made, Held):
            groups.append((None, [made]))
            continue
        box = box_of(step, made, shape)
        if groups and groups[-1][0] == box:
            fields = {item.field for item in groups[-1][1] if isinstance(item, Assignment)}
            read = {name for name, level, _ in reads_of([made]) if level is Time.NEXT}
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
        loaded: dict[Read, SSAValue] = {}
        first = self.step.assignments[0].place
        for read in reads_of(self.step.statements):
            if read[1] in (Time.NOW, Time.PREV):
                loaded[read] = self.load(body, inner, read, first)
        for name in self.step.written:
            self.carry_over(body, inner, name)
        groups = groups_of(self.step, self.shape)
        for number, (box, made) in enumerate(groups):
            later = reads_of([item for _, group in groups[number:] for item in group])
            for read in later:
                if read not in loaded and self.is_due(read, made):
                    loaded[read] = self.load(body, inner, read, made[0].place)
            apply = self.apply(made, loaded)
            body.add_op(located(apply, made[0].place))
            for item, result in zip(made, apply.res):
                if isinstance(item, Held):
                    result.name_hint = item.name.replace(" ", "")
                    loaded[item.name, Time.INSIDE, 0] = result
                elif box is not None:
                    bounds = stencil.StencilBoundsAttr.from_bounds(box)
                    store = stencil.StoreOp(result, inner[item.field, Time.NEXT], bounds)
                    body.add_op(located(store, item.place))
        body.add_op(scf.YieldOp(*(inner[self.following(buffer)] for buffer in self.carried)))

    def following(self, buffer: Buffer) -> Buffer:
        """The buffer in the place of another after a step."""
        name, level = buffer
        last = Time.PREV if name in self.step.second else Time.NOW
        return name, {Time.NOW: Time.NEXT, Time.NEXT: last, Time.PREV: Time.NOW}[level]

    def is_due(self, read: Read, made: Sequence[Assignment | Held]) -> bool:
        """Whether new values are loaded before a group, as the group reads or changes the field."""
        name, time, version = read
        if time is not Time.NEXT:
            return False
        changed = {item.field: item.version for item in made if isinstance(item, Assignment)}
        return read in reads_of(made) or changed.get(name) == version + 1

    def carry_over(self, body: Block, inner: dict[Buffer, SSAValue], name: str) -> None:
        """Copy the cells that a step reads between assignments, before their first assignment."""
        box = carried_over(self.step, name, self.shape)
        if box is None:
            return
        load = stencil.LoadOp(inner[name, Time.NOW])
        bounds = stencil.StencilBoundsAttr.from_bounds(box)
        store = stencil.StoreOp(load.res, inner[name, Time.NEXT], bounds)
        place = next(made.place for made in self.step.assignments if made.field == name)
        body.add_ops([located(load, place), located(store, place)])

    def load(
        self, body: Block, inner: dict[Buffer, SSAValue], read: Read, place: SourcePlace
    ) -> SSAValue:
        """A load of a buffer."""
        load = stencil.LoadOp(inner[read[:2]])
        if read[0] in self.step.edges:
            load.attributes[BOUNDARY] = boundary_attribute(self.step.edges[read[0]])
        if read[1] is Time.NEXT:
            load.attributes[SNAPSHOT] = UnitAttr()
        body.add_op(located(load, place))
        return load.res

    def apply(
        self, made: Sequence[Assignment | Held], loaded: dict[Read, SSAValue]
    ) -> stencil.ApplyOp:
        """The apply of a group of statements."""
        reads = reads_of(made)
        values = [item.value for item in made]
        used = {value.operation for value in walk(values)}
        edges = self.step.edges
        beyond = {side for name, *_ in reads for sides in edges.get(name, ()) for side in sides}
        names = (*self.step.scalars, *self.step.series)
        scalars = [name for name in names if Argument(name) in used or name in beyond]
        operands = [loaded[buffer] for buffer in reads] + [self.scalars[name] for name in scalars]
        block = Block(arg_types=[operand.type for operand in operands])
        fields = dict(zip(reads, block.args))
        numbers = dict(zip(scalars, block.args[len(reads) :]))
        cell = Cell(
            block,
            self.element,
            self.shape,
            fields,
            numbers,
            edges,
            computed_outside(self.step, made),
        )
        hints = [
            *(hint(read[:2]) for read in reads),
            *(spelled(name).replace(" ", "_") for name in scalars),
        ]
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
