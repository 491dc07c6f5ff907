"""
Programs and launches of the steps between two checks, with the numbers of the check made by the
last launch.

A check of the greatest change asks for the newest values and for values a step earlier. Other runs
store both, by a last launch of one step, and a pass over both follows. Between two checks the last
launch has several steps: the kernel stores the newest values, and for each warp the greatest
change (`lowering/tile_to_gpu/numbers.py`). A maximum or a minimum has equal bits in any
order; a sum has a fixed order, and is left to a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Block, Region, SSAValue

from timetile.dialects.temporal import LoopOp, ReduceOp, Reduction
from timetile.dialects.temporal.reduce import ReductionAttr
from timetile.dialects.tile import LANES
from timetile.frontend.boxes import Box, box_of
from timetile.frontend.field_types import ARRAY_DTYPES, DType
from timetile.frontend.module import module_of
from timetile.frontend.numbers import NumberProgram, number_of_boxes, types_of_fields
from timetile.frontend.operations import Access, Time
from timetile.frontend.options import Options
from timetile.frontend.runs import StateRun
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment
from timetile.frontend.values import Value
from timetile.passes.analysis.kernel_numbers import NUMBERS
from timetile.passes.diagnostics import CompileError
from timetile.runtime.kernels.alternating import (
    alternating_function,
    depths_of,
    leaves_all,
    partners,
    stores_numbers,
)
from timetile.runtime.kernels.even_launches import even_launches
from timetile.runtime.kernels.planning import launched_by
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compiled_program import CompiledProgram

MOST_LAUNCHES = 4096
"""Most launches between two checks that a graph repeats."""


class NotTogetherError(Exception):
    """The last launch cannot make the numbers of a check."""


@dataclass(frozen=True)
class Launches:
    """Some launches of a program, as a host function."""

    program: CompiledProgram
    function: FuncOp
    steps: int

    @staticmethod
    def of(program: CompiledProgram, launches: Sequence[int]) -> Launches:
        """Launches with some steps each."""
        kernels = program.kernels
        (loop,) = kernels.loops
        function = alternating_function(loop, kernels.facts_of(loop), launches)
        return Launches(program, function, sum(launches))


@dataclass(frozen=True)
class CheckedPrograms:
    """The programs of the work between two checks."""

    step: Step
    """The step of the last launch, with assignments of the values behind the numbers."""
    first: Launches
    """The first launch, which writes no buffer that it or the check before reads."""
    middle: Launches | None
    last: Launches
    launches: int
    """Launches between two checks."""
    size: int
    """The numbers of all warps, and behind them those of boxes of staying cells."""
    rooms: tuple[CompiledProgram, ...]
    """For each number, the program that makes it of the numbers of all warps."""
    staying: tuple[NumberProgram | None, ...]
    """For each number, the program of the numbers of cells without an update, if there are any."""


def warps_launched(launches: Launches) -> int:
    """The warps of a launch."""
    kernels = launches.program.kernels
    (kernel,) = map(kernels.kernel, launched_by(launches.function))
    return kernel.grid * kernel.block // LANES


def names_of_numbers(numbers: Sequence[NumberProgram]) -> list[str]:
    """The names of fields for the values behind numbers: no names of arguments."""
    return [f"number.{place}" for place in range(len(numbers))]


def checked_programs(
    run: StateRun, every: int, numbers: Sequence[NumberProgram], options: Options
) -> CheckedPrograms:
    """
    The programs of the work between two checks, compiled once. Raises NotTogetherError where a pass
    makes the numbers.
    """
    if not numbers:
        raise NotTogetherError("the condition compares no numbers")
    # Numbers are kept beside the programs: an identity stands for one number.
    known, key = numbers[0].past.programs, (every, *map(id, numbers))
    if key not in known:
        try:
            known[key] = CheckedCompiler(run, numbers, options).programs(every), numbers
        except (NotTogetherError, CompileError) as error:
            known[key] = str(error), numbers
    made, _ = known[key]
    if isinstance(made, str):
        raise NotTogetherError(made)
    return made


class CheckedCompiler:
    """Compiles the programs of the work between two checks of some numbers."""

    def __init__(self, run: StateRun, numbers: Sequence[NumberProgram], options: Options):
        if type(run) is not StateRun or run.points or run.series or run.step.second:
            raise NotTogetherError("the step reads older values, series or points")
        if any(each.kind is Reduction.TOTAL for each in numbers):
            raise NotTogetherError("sums have a fixed order")
        self.run, self.numbers, self.options = run, numbers, options
        self.box = box_of_step(run.step, run.shape)
        self.step = numbered_step(run.step, numbers, self.box)

    def programs(self, every: int) -> CheckedPrograms:
        """The programs, and the launches of steps between two checks."""
        program, numbers = self.run.program, self.numbers
        kernels = program.kernels
        if len(kernels.loops) != 1:
            raise NotTogetherError("a step is no single loop")
        (loop,) = kernels.loops
        if partners(loop) is None or kernels.edges.of(loop, every) is not None:
            raise NotTogetherError("values do not alternate between two buffers")
        if not leaves_all(loop):
            raise NotTogetherError("launches of several steps leave a field that steps write")
        chosen = even_launches(every, depths_of(kernels.facts_of(loop)))
        if chosen is None or len(chosen[0]) >= MOST_LAUNCHES:
            raise NotTogetherError(f"no launches for {every} steps between two checks")
        launches, depth = chosen
        last = Launches.of(self.program_with_numbers(depth), [depth])
        size = warps_launched(last) + 2 * len(self.run.shape)
        return CheckedPrograms(
            self.step,
            Launches.of(program, launches[:1]),
            Launches.of(program, launches[1:]) if len(launches) > 1 else None,
            last,
            len(launches) + 1,
            size,
            tuple(self.program_of_room(each, size) for each in numbers),
            tuple(self.staying(each) for each in numbers),
        )

    def program_with_numbers(self, depth: int) -> CompiledProgram:
        """The program of the last launch, with kernels that store the numbers."""
        run = self.run
        types = types_of_fields(run)
        for name, each in zip(names_of_numbers(self.numbers), self.numbers):
            types[name] = cast(DType, str(each.dtype))
        raised = self.compiled(module_of(self.step, run.shape, types), depth).module.clone()
        places = mark_numbers(raised, [each.kind for each in self.numbers])
        made = self.compiled(raised, depth)
        (loop,) = made.kernels.loops
        facts = made.kernels.facts_of(loop)
        kernel = next((each for each in facts if each.steps == depth), None)
        if partners(loop) is None or kernel is None or not stores_numbers(kernel, places):
            raise NotTogetherError("the kernel stores no numbers")
        made.kernels.kernel(kernel.name)
        return made

    def program_of_room(self, number: NumberProgram, size: int) -> CompiledProgram:
        """The program that makes one number of the numbers of all warps."""
        element = ARRAY_DTYPES[cast(DType, str(number.dtype))]
        bounds = StencilBoundsAttr.from_bounds([(0, size)])
        entry = Block(arg_types=[FieldType(bounds, element)])
        made = ReduceOp(number.kind, entry.args[0], bounds)
        entry.add_ops([made, ReturnOp(made.result)])
        function = FuncOp("numbers", (entry.arg_types, [element]), Region(entry))
        return self.compiled(ModuleOp([function]), None)

    def staying(self, number: NumberProgram) -> NumberProgram | None:
        """The program of the numbers of cells without an update, if any: their values stay."""
        boxes = staying_boxes(number, self.box)
        if not boxes:
            return None
        return number_of_boxes(self.run, number.kind, number.body, self.options, boxes)

    def compiled(self, module: ModuleOp, depth: int | None) -> CompiledProgram:
        """The program of a module with the options of a step, and a depth."""
        given = self.options.copy()
        given["depth"] = depth
        return compile_program(module, halos="common", **given)


def numbered_step(step: Step, numbers: Sequence[NumberProgram], box: Box) -> Step:
    """
    A step with more assignments: the values behind the numbers of a check, at the cells of a box,
    go to own fields.
    """
    versions = {made.field: made.version for made in step.assignments}
    region = tuple(slice(*ends) for ends in box)
    made: list[Assignment] = []
    for name, number in zip(names_of_numbers(numbers), numbers):
        *temporaries, last = number.body
        if temporaries:
            raise NotTogetherError("the condition has temporaries")
        value = in_step(last.value, versions)
        made.append(Assignment(name, region, value, step.place))
    fields = {each.field: tuple(range(step.rank)) for each in made}
    return replace(step, fields={**step.fields, **fields}, body=(*step.body, *made))


def box_of_step(step: Step, shape: Sequence[int]) -> Box:
    """The cells that all assignments of a step update. NotTogetherError for several boxes."""
    boxes = {box_of(step, made, shape) for made in step.assignments}
    if len(boxes) > 1:
        raise NotTogetherError("assignments update several boxes")
    return boxes.pop()


def staying_boxes(number: NumberProgram, box: Box) -> list[Box]:
    """
    Boxes with the cells of a number without an update in a step: the values stay. Raises
    NotTogetherError for values with reads of other cells, and if the step updates more.
    """
    (checked,) = number.boxes
    if checked == box:
        return []
    if any(a > low or b < high for (a, b), (low, high) in zip(checked, box)):
        raise NotTogetherError("the step updates cells that the check leaves out")
    reads = [item.operation for item in walk([made.value for made in number.body])]
    if any(isinstance(read, Access) and any(read.offsets) for read in reads):
        raise NotTogetherError("the check reads neighbours of cells that stay")
    found: list[Box] = []
    for axis, ((a, b), (low, high)) in enumerate(zip(checked, box)):
        for ends in ((a, low), (high, b)):
            if ends[0] < ends[1]:
                found.append((*checked[:axis], ends, *checked[axis + 1 :]))
    return found


def in_step(value: Value, versions: dict[str, int]) -> Value:
    """A value of a check as a value of the step's end: new values are those of all assignments."""
    made: dict[int, Value] = {}
    for item in walk([value]):
        operation: Any = item.operation
        if isinstance(operation, Access) and operation.time is Time.NEXT:
            operation = replace(operation, version=versions[operation.field])
        operands = [made[id(each)] for each in item.operands]
        made[id(item)] = Value.at(item.place, operation, operands)
    return made[id(value)]


def mark_numbers(module: ModuleOp, kinds: Sequence[Reduction]) -> list[int]:
    """
    Mark the updates of the last fields of a loop, for kernels to store numbers: the roles of the
    fields after a step.
    """
    (loop,) = (op for op in module.walk() if isinstance(op, LoopOp))
    count = len(loop.rotation)
    roles = [count - 2 * (len(kinds) - place) for place in range(len(kinds))]
    args: list[SSAValue] = [*loop.body.block.args]
    asked = {args[loop.rotation[role]]: ReductionAttr(kind) for role, kind in zip(roles, kinds)}
    for update in loop.updates:
        found = [asked.get(target) for target in update.targets]
        marks = [each for each in found if each is not None]
        if marks and len(marks) < len(found):
            raise NotTogetherError("an update writes values of the check, and others")
        if marks:
            update.attributes[NUMBERS] = ArrayAttr(marks)
    return roles
