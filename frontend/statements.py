"""Emits the statements of a step: applies and stores, and inner loops of repeated bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.frontend.boundaries import boundary_attribute, stored_boundary
from timetile.frontend.boxes import Box, box_of, carried_over, far_outside, needed_boxes
from timetile.frontend.cells import Cell, located
from timetile.frontend.errors import SourcePlace
from timetile.frontend.field_types import ARRAY_DTYPES, elements_of
from timetile.frontend.operations import Access, Argument, Time
from timetile.frontend.steps import Step, walk
from timetile.frontend.sweep_operations import SweepOperations
from timetile.frontend.symbols import Assignment, Held, RepeatedBody, StepStatement, flat
from timetile.frontend.typed_values import TypedStep
from timetile.passes.raising.cells import BOUNDARY
from timetile.passes.raising.recurrences import SNAPSHOT

Buffer = tuple[str, Time]
"""A field or a temporary, and the time level of one of its buffers."""

Read = tuple[str, Time, int]
"""A field or a temporary, the time level, and the number of the new values."""


def spelled(name: str) -> str:
    """A name of a step as an MLIR name, in ASCII letters: `λ` becomes `x3bb`."""
    letters = (letter if letter.isascii() else f"x{ord(letter):x}" for letter in name)
    return "".join(letters).replace(".", "_")


def hint(buffer: Buffer) -> str:
    """The name of a buffer: the field's name, with the time level unless present."""
    name, level = spelled(buffer[0]).replace(" ", ""), buffer[1]
    return name if level in (Time.NOW, Time.INSIDE) else f"{name}_{level}"


def reads_of(made: Sequence[StepStatement]) -> list[Read]:
    """What statements read, each once, in the order of the source."""
    found: dict[Read, None] = {}
    for value in walk([item.value for item in made]):
        if isinstance(value.operation, Access):
            read = value.operation
            found[read.field, read.time, read.version] = None
    return list(found)


def crossing(body: Sequence[StepStatement | RepeatedBody]) -> list[str]:
    """
    The temporaries read in a repeated body inside the body that makes them, and those read in a
    sweep.
    """
    found: dict[str, None] = {}
    own = {made.name for made in body if isinstance(made, Held)}
    for made in body:
        if isinstance(made, RepeatedBody):
            inner = (name for name, *_ in reads_of(flat(made.body)) if name in own)
            found.update(dict.fromkeys([*inner, *crossing(made.body)]))
        elif isinstance(made, Assignment) and made.sweep is not None:
            reads = reads_of([made])
            found.update(dict.fromkeys(name for name, time, _ in reads if time is Time.INSIDE))
    return list(found)


@dataclass
class Group:
    """Statements with one apply, over the cells of a box, of a sweep, or one repeated body."""

    made: list[StepStatement]
    box: Box | None = None
    repeated: RepeatedBody | None = None

    @property
    def swept(self) -> list[Assignment]:
        """The assignments of a sweep; empty for other groups."""
        return [m for m in self.made if isinstance(m, Assignment) and m.sweep and not self.repeated]

    def takes(self, made: Assignment, box: Box) -> bool:
        """
        Whether an assignment may join: its cells are those of the box, and it reads no new values
        of the group. New values from before the group are read by all of the group. A sweep has all
        of its assignments.
        """
        last = self.made[-1]
        if made.sweep is not None or (isinstance(last, Assignment) and last.sweep is not None):
            return isinstance(last, Assignment) and last.sweep is made.sweep
        versions = {item.field: item.version for item in self.made if isinstance(item, Assignment)}
        reads_new = any(
            level is Time.NEXT and name in versions and version >= versions[name]
            for name, level, version in reads_of([made])
        )
        return box == self.box and made.field not in versions and not reads_new


@dataclass
class Statements:
    """
    Emits the statements of a step over arrays of a shape. `typed` has the types of values and
    fields, `fields` are the fields by name and time level, and `scalars` the numbers by name.
    """

    typed: TypedStep
    shape: tuple[int, ...]
    fields: Mapping[Buffer, SSAValue]
    scalars: Mapping[str, SSAValue]
    asked: Mapping[str, Box] = field(default_factory=dict[str, Box])
    """The cells needed of temporaries by others than the statements."""
    sweeps: SweepOperations | None = None
    """The sweeps of the function; None where the statements have none."""
    needed: dict[str, Box] = field(init=False)
    step: Step = field(init=False)
    elements: Mapping[str, Attribute] = field(init=False)

    def __post_init__(self) -> None:
        self.step = self.typed.step
        self.elements = elements_of(self.typed.types)
        self.needed = needed_boxes(self.step, self.shape, self.asked)

    def known_as(self, read: Read) -> Read:
        """A read by the least number of its new values."""
        name, time, version = read
        return name, time, self.step.known_version(name, version)

    def groups(self, body: Sequence[StepStatement | RepeatedBody]) -> list[Group]:
        """
        Groups of consecutive assignments to equal cells of several fields, none reading a field
        written by another. A temporary is a group of its own, and left out without a reader.
        """
        groups: list[Group] = []
        for made in body:
            if isinstance(made, RepeatedBody):
                groups.append(Group(flat(made.body), repeated=made))
            elif isinstance(made, Held):
                if made.name in self.needed:
                    groups.append(Group([made]))
            else:
                box = box_of(self.step, made, self.shape)
                if groups and groups[-1].takes(made, box):
                    groups[-1].made.append(made)
                else:
                    groups.append(Group([made], box))
        return groups

    def carry_over(self, block: Block) -> None:
        """Copy the cells that a step reads between assignments, before their first assignment."""
        for name in self.step.written:
            box = carried_over(self.step, name, self.shape)
            if box is None:
                continue
            load = stencil.LoadOp(self.fields[name, Time.NOW])
            bounds = stencil.StencilBoundsAttr.from_bounds(box)
            store = stencil.StoreOp(load.res, self.fields[name, Time.NEXT], bounds)
            place = next(made.place for made in self.step.assignments if made.field == name)
            block.add_ops([located(load, place), located(store, place)])

    def fill(self, block: Block, body: Sequence[StepStatement | RepeatedBody]) -> None:
        """Emit the statements of a body."""
        groups = self.groups(body)
        loaded: dict[Read, SSAValue] = {}
        for read in self.reads(groups):
            if read[1] in (Time.NOW, Time.PREV):
                loaded[read] = self.load(block, read, groups[0].made[0].place)
        for number, group in enumerate(groups):
            own = self.reads([group])
            for read in self.reads(groups[number:]):
                if read not in loaded and (read in own or is_overwritten(read, group)):
                    loaded[read] = self.load(block, read, group.made[0].place)
            if group.repeated is not None:
                self.repeat(block, group.repeated)
            elif swept := group.swept:
                assert group.box is not None and self.sweeps is not None
                self.sweeps.emit(
                    block, swept, group.box, self.typed, self.shape, self.fields, self.scalars
                )
            else:
                self.assign(block, group, loaded)

    def reads(self, groups: Sequence[Group]) -> list[Read]:
        """What groups read outside of repeated bodies and sweeps, each once."""
        plain = [m for group in groups if not (group.repeated or group.swept) for m in group.made]
        return list(dict.fromkeys(map(self.known_as, reads_of(plain))))

    def load(self, block: Block, read: Read, place: SourcePlace) -> SSAValue:
        """A load of a buffer."""
        load = stencil.LoadOp(self.fields[read[:2]])
        if read[0] in self.step.edges:
            boundary = boundary_attribute(self.step.edges[read[0]])
            load.attributes[BOUNDARY] = stored_boundary(boundary, self.typed.types[read[0]])
        if read[1] is Time.NEXT:
            load.attributes[SNAPSHOT] = UnitAttr()
        block.add_op(located(load, place))
        return load.res

    def repeat(self, block: Block, made: RepeatedBody) -> None:
        """Emit an inner loop around a repeated body."""
        low, high, one = (arith.ConstantOp(IntegerAttr(k, IndexType())) for k in (0, made.count, 1))
        inner = Block(arg_types=[IndexType()])
        self.fill(inner, made.body)
        inner.add_op(scf.YieldOp())
        loop = scf.ForOp(low, high, one, [], Region(inner))
        block.add_ops([low, high, one, located(loop, made.place)])

    def assign(self, block: Block, group: Group, loaded: dict[Read, SSAValue]) -> None:
        """Emit a group's apply, and the stores of its results."""
        apply = self.apply(group.made, loaded)
        block.add_op(located(apply, group.made[0].place))
        for item, result in zip(group.made, apply.res):
            if isinstance(item, Held):
                buffer, box = (item.name, Time.INSIDE), self.needed[item.name]
                result.name_hint = hint(buffer)
                loaded[*buffer, 0] = result
            else:
                assert group.box is not None
                buffer, box = (item.field, Time.NEXT), group.box
            if buffer in self.fields:
                bounds = stencil.StencilBoundsAttr.from_bounds(box)
                block.add_op(
                    located(stencil.StoreOp(result, self.fields[buffer], bounds), item.place)
                )

    def apply(
        self, made: Sequence[StepStatement], loaded: Mapping[Read, SSAValue]
    ) -> stencil.ApplyOp:
        """The apply of a group of statements."""
        found = reads_of(made)
        reads = list(dict.fromkeys(map(self.known_as, found)))
        values = [self.typed.stored(item) for item in made]
        used = {value.operation for value in walk(values)}
        edges = self.step.edges
        beyond = {side for name, *_ in reads for sides in edges.get(name, ()) for side in sides}
        names = (*self.step.scalars, *self.step.series)
        scalars = [name for name in names if Argument(name) in used or name in beyond]
        operands = [loaded[read] for read in reads] + [self.scalars[name] for name in scalars]
        block = Block(arg_types=[operand.type for operand in operands])
        given = dict(zip(reads, block.args))
        fields = {read: given[self.known_as(read)] for read in found}
        numbers = dict(zip(scalars, block.args[len(reads) :]))
        outside = [
            far_outside(self.needed[item.name], self.shape)
            for item in made
            if isinstance(item, Held)
        ] or [((0, 0),) * self.step.rank]
        cell = Cell(block, self.shape, fields, numbers, edges, outside[0])
        hints = [hint(read[:2]) for read in reads]
        hints += [spelled(name).replace(" ", "_") for name in scalars]
        for text, argument in zip(hints, block.args):
            argument.name_hint = text
        kinds = [
            self.elements[item.field]
            if isinstance(item, Assignment)
            else ARRAY_DTYPES[self.typed.temporary(item.name)]
            for item in made
        ]
        computed = zip(cell.results(values), kinds, made)
        results = [cell.stored(result, kind, item.place) for result, kind, item in computed]
        last: Operation = stencil.ReturnOp(results)
        block.add_op(located(last, made[-1].place))
        temps = [stencil.TempType(IntAttr(self.step.rank), kind) for kind in kinds]
        return stencil.ApplyOp(operands, block, temps)


def is_overwritten(read: Read, group: Group) -> bool:
    """Whether a group assigns the new values of a read."""
    name, time, version = read
    made = [i.version for i in group.made if isinstance(i, Assignment) and i.field == name]
    return time is Time.NEXT and bool(made) and version < min(made)
