"""A program cut into parts: the cut fields, and the loops of a rank."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp, PartAttr, SweepOp
from timetile.lowering.cpu.nest_rules import host_operations
from timetile.passes.analysis.ghosts import exchanged_roles
from timetile.passes.diagnostics import refuse
from timetile.passes.loops.cut_domain import Domain, arguments_of, cut
from timetile.passes.loops.part_sweeps import (
    arguments_of_sweep,
    name_of_rank_sweep,
    sweeps_of_module,
    values_of_sweep,
)
from timetile.passes.raising.memory import memory_of
from timetile.passes.raising.names import names_of
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.written_fields import turned_roles
from timetile.runtime.ranks.exchange import CutField
from timetile.runtime.ranks.point_tables import fields_of_points, noted_tables


@dataclass(frozen=True)
class RankLoop:
    """
    A loop of the program as run by a rank. `values` maps fields and scalars used by the loop to
    values of the program's loop. A loop without a part is run as a whole by each rank.
    """

    loop: LoopOp
    part: PartAttr | None
    values: dict[SSAValue, SSAValue]
    exchanged: tuple[int, ...]
    """The roles with ghosts read by a step."""
    written: tuple[int, ...]
    """The roles with buffers changed by a run."""

    @property
    def is_idle(self) -> bool:
        """The rank updates no cell."""
        return not self.loop.updates


@dataclass(frozen=True)
class RankSweep:
    """
    A sweep of the program as run by a rank; None where the rank has no line. `values` maps fields
    and scalars used by the sweep to values of the program's sweep.
    """

    op: SweepOp | None
    values: dict[SSAValue, SSAValue]
    read: tuple[SSAValue, ...]
    """The fields of the program's sweep that are read beside the lines, with ghosts."""
    is_whole: bool
    """Each rank runs the whole sweep: the sweep has fewer axes than the domain."""


def rank_sweep(op: SweepOp, function: FuncOp, domain: Domain) -> RankSweep:
    """A sweep of the program, and the function of a rank with the own lines."""
    given = list(dict.fromkeys(arguments_of_sweep(op)))
    values: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, given))
    spread = [value for value in values_of_sweep(op) if isinstance(value.owner, BroadcastOp)]
    copies = [each.field for each in function.body.block.ops if isinstance(each, BroadcastOp)]
    values |= dict(zip(copies, spread, strict=True))
    own = next((each for each in function.body.block.ops if isinstance(each, SweepOp)), None)
    beside = [
        op.sources[tap.operand]
        for tap in op.tap_list
        if any(shift for axis, shift in enumerate(tap.offset) if axis != op.axis.data)
    ]
    return RankSweep(own, values, tuple(dict.fromkeys(beside)), op not in domain.sweeps)


def captured_values(loop: LoopOp, function: FuncOp) -> dict[SSAValue, SSAValue]:
    """The fields and scalars of a loop's own function, for the values of the program's loop."""
    given = list(dict.fromkeys(arguments_of(loop)))
    values: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, given))
    spread = [field for field in loop.captures if isinstance(field.owner, BroadcastOp)]
    copies = [op.field for op in function.body.block.ops if isinstance(op, BroadcastOp)]
    return {**values, **dict(zip(copies, spread, strict=True))}


class CutProgram:
    """The loops of a rank, and the cut fields of the program's function."""

    def __init__(
        self, module: ModuleOp, domain: Domain, decomposition: Decomposition, rank: int, steps: int
    ):
        self.domain, self.decomposition, self.rank = domain, decomposition, rank
        self.module = cut(module, decomposition, rank, steps)
        self.loops: dict[LoopOp, RankLoop] = {}
        for loop, own in zip(loops_of(module), loops_of(self.module), strict=True):
            function = own.parent_op()
            assert isinstance(function, FuncOp)
            self.loops[loop] = RankLoop(
                own,
                own.part,
                captured_values(loop, function),
                tuple(exchanged_roles(loop)),
                tuple(turned_roles(loop)),
            )
        functions = {op.sym_name.data: op for op in self.module.ops if isinstance(op, FuncOp)}
        self.sweeps = {
            op: rank_sweep(op, functions[name_of_rank_sweep(number)], domain)
            for number, op in enumerate(sweeps_of_module(module))
        }
        zone = domain.ghosts(steps, decomposition.periodic)
        self.part = PartAttr(rank, decomposition, zone, steps)
        """The part of the rank, with a ghost zone."""
        self.fields: dict[SSAValue, CutField] = {}
        self.tables = noted_tables(module)
        self.lists = {memory_of(field) for field in fields_of_points(module)}
        """The lists, weights and tables of points, whole on each rank."""

    def field(self, value: SSAValue) -> CutField | None:
        """The field behind a value, if cut; None for a number, or a field of fewer axes."""
        if value not in self.fields:
            root = memory_of(value)
            bounds = next(filter(None, map(cells_of_field, names_of(root))), None)
            if bounds is None or len(bounds.lower) != len(self.domain.box.lower):
                return None
            if root in self.lists:
                return None
            self.fields[value] = CutField(bounds, self.part)
        return self.fields[value]

    def field_of(self, value: SSAValue) -> CutField:
        """A field used by a cut loop."""
        if value not in self.fields:
            self.fields[value] = CutField(CellBox.of(field_bounds(value)), self.part)
        return self.fields[value]


def cells_of_field(value: SSAValue) -> CellBox | None:
    """The bounds of a field; None for another value."""
    kind = value.type
    if not isinstance(kind, FieldType) or not isinstance(kind.bounds, StencilBoundsAttr):
        return None
    return CellBox.of(kind.bounds)


def check_cut_operations(function: FuncOp, program: CutProgram) -> None:
    """
    CompileError for an operation of the host that needs whole fields where ranks have parts. Other
    memory is whole on each rank.
    """
    for op in host_operations(function):
        fields = [program.field(value) for value in op.operands]
        cut = [field for field in fields if field is not None]
        if not cut:
            continue
        if isinstance(op, CallOp):
            refuse(
                op,
                "the call passes a field that is cut into parts; inline the function, or run the "
                "program without comm",
            )
        if isinstance(op, BroadcastOp):
            refuse(op, "a field of all axes is spread; run the program without comm")
        is_copy = isinstance(op, memref.CopyOp | gpu.MemcpyOp)
        if is_copy and (len(cut) < 2 or cut[0].whole != cut[1].whole):
            refuse(
                op,
                "the copy is of a field that is cut into parts, to or from memory of other bounds; "
                "give both the bounds of the field, or run the program without comm",
            )
