"""The launches of a run, as data: see `docs/bundle.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import BlockArgument, Operation, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.series import is_series
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp, ScratchOp
from timetile.dialects.tile import CopyOp, KernelOp, LaunchOp
from timetile.dialects.tile import ScratchOp as LikeOp
from timetile.dialects.verified import terminator_of
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import is_alias
from timetile.passes.raising.narrow_fields import is_read_in_place
from timetile.runtime.bundle.c_names import distinct_names
from timetile.runtime.host.loop_facts import is_trip_count
from timetile.runtime.kernels.planning import planned_function
from timetile.runtime.program.compiled_program import CompiledProgram

VERSION = 1
"""Of the plan's form; a reader refuses others."""

BundleAction = dict[str, Any]
"""
`{"launch": kernel, "operands": [...]}`, `{"copy": [from, to]}` or `{"repeat": n, "actions":
[...]}`.
"""


@dataclass(frozen=True)
class Argument:
    """One argument of the program: `kind` is field, scalar, steps or unused."""

    name: str
    kind: str
    type: str
    shape: tuple[int, ...] = ()
    bytes: int = 0


@dataclass(frozen=True)
class KernelEntry:
    """A kernel: its file, its launch, and the types of its parameters."""

    name: str
    file: str
    grid: int
    block: int
    cluster: int
    shared_bytes: int
    blocks_per_tile: int
    message_words: int
    parameters: tuple[str, ...]


@dataclass
class BundlePlan:
    """A run of `steps` steps: buffers are the field arguments, then the scratch buffers."""

    name: str
    arch: str
    steps: int
    arguments: list[Argument]
    version: int = VERSION
    scratch: list[int] = field(default_factory=list[int])
    """The bytes of each scratch buffer."""
    kernels: list[KernelEntry] = field(default_factory=list[KernelEntry])
    actions: list[BundleAction] = field(default_factory=list[BundleAction])
    latest: list[int] = field(default_factory=list[int])
    """The buffers written last by the last time loop."""

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON's types."""
        return asdict(self)


class Planner:
    """Gathers the launches of a program."""

    def __init__(self, program: CompiledProgram, steps: int | None):
        self.program, self.function = program, program.function
        self.steps = steps
        self.buffers: dict[SSAValue, int] = {}
        self.operands: dict[SSAValue, BundleAction] = {}
        kernels = program.kernels
        arguments = [self.argument(k) for k in range(len(program.parameters))]
        self.plan = BundlePlan(
            self.function.sym_name.data, kernels.options.arch, steps or 0, arguments
        )
        for k, value in enumerate(self.function.body.block.args):
            if arguments[k].kind == "field":
                self.buffers[value] = len(self.buffers)
            elif arguments[k].kind == "scalar":
                self.operands[value] = {"scalar": k}
        self.fields = len(self.buffers)

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
            shape = tuple(h - low for low, h in zip(parameter.bounds.lb, parameter.bounds.ub))
            return Argument(name, "field", kind, shape, prod(shape) * CELL_BYTES[parameter.kind])
        return Argument(name, "steps" if is_trip_count(value) else "scalar", kind)

    # The operations of the function.

    def gather(self) -> BundlePlan:
        """The plan. Raises CompileError for a program with more work for the host."""
        for op in self.function.body.block.ops:
            match op:
                case LoopOp():
                    self.add_loop(op)
                case ScratchOp():
                    self.add_scratch(op.field)
                case BroadcastOp() if is_read_in_place(op) and op.source in self.buffers:
                    self.buffers[op.field] = self.buffers[op.source]
                case ReturnOp():
                    continue
                case _ if is_alias(op):
                    operand = op.operands[0]
                    if operand in self.buffers:
                        self.buffers[op.results[0]] = self.buffers[operand]
                case _ if op.name.startswith("arith."):
                    continue
                case _:
                    refuse(
                        op,
                        "a bundle holds launches only, and the host must run the operation; run "
                        "the program from Python",
                    )
        self.add_kernels()
        return self.plan

    def add_scratch(self, value: SSAValue) -> None:
        """Add a buffer without an argument."""
        bounds = field_bounds(value)
        cells = prod(high - low for low, high in zip(bounds.lb, bounds.ub))
        self.buffers[value] = self.fields + len(self.plan.scratch)
        self.plan.scratch.append(cells * CELL_BYTES[element_type(value)])

    def count(self, loop: LoopOp) -> int:
        """The steps of a loop."""
        if loop.sweep is None and self.steps is not None:
            return self.steps
        known = integer_constant(loop.steps)
        if known is None:
            refuse(
                loop,
                "the number of steps is known only at run time; give the number with --steps N",
            )
        return max(known, 0)

    def add_loop(self, loop: LoopOp) -> None:
        """The launches of one loop."""
        if any(map(is_series, loop.scalars)):
            refuse(
                loop,
                "a series has another number at each step, and the launches of a bundle take the "
                "same numbers again and again; run the program in Python",
            )
        steps = self.count(loop)
        facts = self.program.kernels.facts_of(loop)
        planned = planned_function(loop, facts, steps)
        outside = [loop.steps, *loop.buffers, *loop.captures, *loop.scalars]
        known: dict[SSAValue, BundleAction] = {}
        for value, inner in zip(outside, planned.body.block.args):
            if value is not loop.steps:
                known[inner] = self.operand(value, loop)
        self.plan.actions += self.actions(planned, list(planned.body.block.ops), known)
        end = terminator_of(planned.body.block, ReturnOp)
        places = [known[value]["buffer"] for value in end.arguments]
        self.buffers.update(zip(loop.res, places))
        if loop.sweep is None or not self.plan.latest:
            latest = self.program.loops.of(loop).latest
            self.plan.latest = [places[role] for role in latest]
            self.plan.steps = steps

    def operand(self, value: SSAValue, loop: LoopOp) -> BundleAction:
        """How a launch finds a buffer or a number."""
        if value in self.buffers:
            return {"buffer": self.buffers[value]}
        if value in self.operands:
            return self.operands[value]
        constant = value.owner
        if isinstance(constant, arith.ConstantOp) and isinstance(
            constant.value, FloatAttr | IntegerAttr
        ):
            return {"constant": constant.value.value.data}
        name = f"%{value.name_hint}" if value.name_hint else "a scalar"
        refuse(loop, f"the host computes {name}; pass it as an argument")

    def actions(
        self, planned: FuncOp, ops: Sequence[Operation], known: dict[SSAValue, BundleAction]
    ) -> list[BundleAction]:
        """Launches and copies, with repeated ones as a group."""
        found: list[BundleAction] = []
        for op in ops:
            match op:
                case LikeOp():
                    like = known[op.operands[0]]["buffer"]
                    known[op.results[0]] = {"buffer": self.fields + len(self.plan.scratch)}
                    self.plan.scratch.append(self.bytes_of(like))
                case CopyOp():
                    found.append({"copy": [known[v]["buffer"] for v in op.operands]})
                case LaunchOp():
                    name = op.kernel.string_value()
                    found.append({"launch": name, "operands": [known[v] for v in op.operands]})
                case scf.ForOp():
                    times = integer_constant(op.ub)
                    assert times is not None, "launches repeat a fixed number of times"
                    inner = self.actions(planned, list(op.body.block.ops), known)
                    found.append({"repeat": times, "actions": inner})
                case _:
                    continue
        return found

    def bytes_of(self, buffer: int) -> int:
        """The size of a buffer."""
        if buffer >= self.fields:
            return self.plan.scratch[buffer - self.fields]
        fields = [a for a in self.plan.arguments if a.kind == "field"]
        return fields[buffer].bytes

    def add_kernels(self) -> None:
        """Compile and add the kernels of the launches."""
        kinds: dict[str, tuple[str, ...]] = {}
        for op in self.program.kernels.tiled.ops:
            if isinstance(op, KernelOp):
                kinds[op.sym_name.data] = tuple(map(parameter_kind, op.body.block.args))
        launched = names_in(self.plan.actions)
        for name, file in zip(launched, distinct_names(launched), strict=True):
            made = self.program.kernels.kernel(name)
            kind = "cubin" if made.cubin is not None else "ptx"
            self.plan.kernels.append(
                KernelEntry(
                    name, f"{file}.{kind}", made.grid, made.block, made.cluster,
                    made.shared_bytes, made.blocks_per_tile, made.message_words, kinds[name],
                )
            )  # fmt: skip


def parameter_kind(argument: BlockArgument) -> str:
    """The type of a kernel's parameter: buffer, or the type of a number."""
    return "buffer" if isinstance(argument.type, FieldType) else str(argument.type)


def names_in(actions: Sequence[BundleAction]) -> list[str]:
    """The kernels launched by actions, in the order of first launches."""
    found: dict[str, None] = {}
    for action in actions:
        if "launch" in action:
            found[action["launch"]] = None
        found.update(dict.fromkeys(names_in(action.get("actions", []))))
    return list(found)


def bundle_plan(program: CompiledProgram, steps: int | None) -> BundlePlan:
    """The plan of a run of `steps` steps; of constant trip counts for None."""
    return Planner(program, steps).gather()
