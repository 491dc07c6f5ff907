"""The launches of a run, as data: see `docs/bundle.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.func import ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import BlockArgument, Operation, SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.series import is_series
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp, ScratchOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.launch_shape import LaunchShape
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import is_alias
from timetile.passes.raising.narrow_fields import is_read_in_place, read_field
from timetile.runtime.bundle.c_names import distinct_names
from timetile.runtime.bundle.host_numbers import ComputedNumber, NumberSource, is_number_of_c
from timetile.runtime.bundle.loop_plans import LoopEntry, LoopTable
from timetile.runtime.host.loop_facts import is_trip_count
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.results import argument_of

VERSION = 3
"""The version of the plan's form; a reader refuses other versions."""


@dataclass(frozen=True)
class Argument:
    """One argument of the program: `kind` is field, scalar, steps or unused."""

    name: str
    kind: str
    type: str
    shape: tuple[int, ...] = ()
    bytes: int = 0


@dataclass(frozen=True)
class KernelEntry(LaunchShape):
    """A kernel: its files, the shape of its launches, and the types of its parameters."""

    name: str
    ptx: str
    cubin: str | None
    parameters: tuple[str, ...]


@dataclass
class BundlePlan:
    """
    A program as launches. Values are the field arguments, then the scratch buffers of the program,
    then the results of each loop.
    """

    name: str
    arch: str
    steps: int | None
    """The steps of the program's own time loops; None if known only at run time."""
    arguments: list[Argument]
    version: int = VERSION
    scratch: list[int] = field(default_factory=list[int])
    """The bytes of each scratch buffer of the program."""
    computed: list[ComputedNumber] = field(default_factory=list[ComputedNumber])
    """Numbers computed by the host before the launches, in order."""
    kernels: list[KernelEntry] = field(default_factory=list[KernelEntry])
    loops: list[LoopEntry] = field(default_factory=list[LoopEntry])
    latest: list[int] = field(default_factory=list[int])
    """The values written last by the last time loop."""
    next: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """`(field, value)`: a following call has the value in the place of the field."""

    @property
    def fields(self) -> list[Argument]:
        """The fields among the arguments, in order."""
        return [argument for argument in self.arguments if argument.kind == "field"]

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON's types."""
        return asdict(self)


class Planner:
    """Gathers the launches of a program."""

    def __init__(self, program: CompiledProgram, steps: int | None):
        self.program, self.function = program, program.function
        self.values: dict[SSAValue, int] = {}
        self.operands: dict[SSAValue, NumberSource] = {}
        kernels = program.kernels
        arguments = [self.argument(k) for k in range(len(program.parameters))]
        self.plan = BundlePlan(self.function.sym_name.data, kernels.options.arch, steps, arguments)
        for k, value in enumerate(self.function.body.block.args):
            if arguments[k].kind == "field":
                self.values[value] = len(self.values)
            elif arguments[k].kind == "scalar":
                self.operands[value] = {"scalar": k}
        self.made = self.fields = len(self.values)

    def argument(self, k: int) -> Argument:
        """The description of a program's argument."""
        parameter = self.program.parameters[k]
        value = self.function.body.block.args[k]
        name = parameter.name or f"arg{k}"
        kind = str(parameter.kind)
        if not parameter.is_read:
            return Argument(name, "unused", kind)
        if parameter.bounds is not None:
            if not parameter.is_field:
                refuse(
                    self.function,
                    f"the host reads %{name} cell by cell; run the program from Python",
                )
            shape = sizes_of(parameter.bounds)
            return Argument(name, "field", kind, shape, prod(shape) * CELL_BYTES[parameter.kind])
        return Argument(name, "steps" if is_trip_count(value) else "scalar", kind)

    # The operations of the function.

    def gather(self) -> BundlePlan:
        """The plan. Raises CompileError for a program with more work for the host."""
        ops = list(self.function.body.block.ops)
        for op in ops:
            if isinstance(op, ScratchOp):
                self.add_scratch(op.field)
        for op in ops:
            match op:
                case LoopOp():
                    self.add_loop(op)
                case ScratchOp() | ReturnOp():
                    continue
                case BroadcastOp() if is_read_in_place(op) and op.source in self.values:
                    self.values[op.field] = self.values[op.source]
                case _ if is_alias(op):
                    operand = op.operands[0]
                    if operand in self.values:
                        self.values[op.results[0]] = self.values[operand]
                case _ if op.name.startswith("arith.") or is_number_of_c(op):
                    continue
                case _:
                    refuse(
                        op,
                        "a bundle holds launches only, and the host must run the operation; run "
                        "the program from Python",
                    )
        self.add_steps([op for op in ops if isinstance(op, LoopOp)])
        self.add_kernels()
        return self.plan

    def add_scratch(self, value: SSAValue) -> None:
        """Add a buffer without an argument."""
        self.values[value] = self.made
        self.made += 1
        self.plan.scratch.append(bytes_of_field(value))

    def add_loop(self, loop: LoopOp) -> None:
        """Add the launches of one loop."""
        if any(map(is_series, loop.scalars)):
            refuse(
                loop,
                "a series has another number at each step, and the launches of a bundle take the "
                "same numbers again and again; run the program in Python",
            )
        fixed = None if loop.sweep is None else constant_steps(loop)
        if loop.sweep is not None and fixed is None:
            refuse(loop, "the host decides about a sweep; run the program from Python")
        table = LoopTable(loop, self.program.kernels.facts_of(loop), fixed)
        rows = table.rows()
        entry = LoopEntry(
            fixed,
            [self.values[value] for value in loop.buffers],
            [self.values[read_field(value).field] for value in loop.captures],
            self.made,
            [max(bytes_of_field(loop.buffers[k]) for k in some) for some in table.scratch_like],
            [self.operand(value, loop) for value in loop.scalars],
            table.period,
            list(table.launches),
            rows,
        )
        self.plan.loops.append(entry)
        for value in loop.res:
            self.values[value] = self.made
            self.made += 1
        if loop.sweep is None or not self.plan.latest:
            latest = self.program.loops.of(loop).latest
            self.plan.latest = [entry.results + role for role in latest]
        for role, begin in enumerate(loop.buffers):
            position = argument_of(begin, self.function)
            if position is not None:
                at = self.values[self.function.body.block.args[position]]
                self.plan.next.append((at, entry.results + role))

    def add_steps(self, loops: Sequence[LoopOp]) -> None:
        """Add the number of steps that the program itself states."""
        if self.plan.steps is None:
            found = {constant_steps(loop) for loop in loops if loop.sweep is None}
            self.plan.steps = found.pop() if len(found) == 1 else None

    def operand(self, value: SSAValue, loop: LoopOp) -> NumberSource:
        """How a launch finds a number."""
        if value in self.operands:
            return self.operands[value]
        op = value.owner
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr | IntegerAttr):
            return {"constant": op.value.value.data}
        if isinstance(op, Operation) and is_number_of_c(op):
            operands = tuple(self.operand(operand, loop) for operand in op.operands)
            name = op.name.partition(".")[2]
            self.operands[value] = {"computed": len(self.plan.computed)}
            self.plan.computed.append(ComputedNumber(name, str(value.type), operands))
            return self.operands[value]
        name = f"%{value.name_hint}" if value.name_hint else "a scalar"
        refuse(loop, f"the host computes {name}; pass it as an argument")

    def add_kernels(self) -> None:
        """Compile and add the kernels of the launches."""
        kinds: dict[str, tuple[str, ...]] = {}
        for op in self.program.kernels.tiled.ops:
            if isinstance(op, KernelOp):
                kinds[op.sym_name.data] = tuple(map(parameter_kind, op.body.block.args))
        rows = [row.kernel for loop in self.plan.loops for row in loop.launches]
        launched = list(dict.fromkeys(rows))
        self.program.kernels.begin(launched)
        for name, file in zip(launched, distinct_names(launched), strict=True):
            made = self.program.kernels.kernel(name)
            cubin = None if made.cubin is None else f"{file}.cubin"
            self.plan.kernels.append(
                KernelEntry(name, f"{file}.ptx", cubin, kinds[name], **made.numbers)
            )


def bytes_of_field(value: SSAValue) -> int:
    """The bytes of a field."""
    bounds = field_bounds(value)
    cells = prod(sizes_of(bounds))
    return cells * CELL_BYTES[element_type(value)]


def parameter_kind(argument: BlockArgument) -> str:
    """The type of a kernel's parameter: buffer, or the type of a number."""
    return "buffer" if isinstance(argument.type, FieldType) else str(argument.type)


def bundle_plan(program: CompiledProgram, steps: int | None = None) -> BundlePlan:
    """The plan of a program for any number of steps; hosts find the number `steps` named."""
    return Planner(program, steps).gather()
