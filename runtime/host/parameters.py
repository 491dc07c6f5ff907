"""The parameters of a program's function: fields, memory read by the host only, scalars, and unused
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import gpu, llvm, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.boxes import sizes_of
from timetile.dialects.series import is_series
from timetile.dialects.syntax import element_type, field_type
from timetile.dialects.temporal import LoopOp, PointRunOp, UpdateOp
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import is_alias, number_behind
from timetile.passes.raising.names import all_names_of
from timetile.passes.raising.raise_time_loop import TIME_LOOP
from timetile.runtime.loading.names import argument_names

ON_HOST = (
    gpu.MemcpyOp,
    memref.CopyOp,
    memref.LoadOp,
    memref.StoreOp,
    memref.AtomicRMWOp,
    memref.DimOp,
)
"""Operations by which the host itself reads and writes memory."""


@dataclass(frozen=True)
class Parameter:
    """
    One argument of the program. `bounds`: the bounds of an array, halos included; None for a
    scalar. `is_field`: False for memory read and written by the host only, cell by cell. `is_read`:
    False if any value will do, None too. `is_steps`: the argument is the number of steps of time
    loops. `is_series`: the argument is memory with a number for each step, read by the host.
    """

    position: int
    name: str | None
    kind: Attribute
    bounds: StencilBoundsAttr | None
    is_field: bool = True
    is_read: bool = True
    is_steps: bool = False
    is_series: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array, halos included; empty for a scalar."""
        if self.bounds is None:
            return ()
        return sizes_of(self.bounds)

    @property
    def label(self) -> str:
        """`0 (%u)`, or `0` without a name in the program."""
        return f"{self.position}" + (f" (%{self.name})" if self.name else "")

    def __str__(self) -> str:
        """`%u: f64 [-1, 17) x [-1, 17)`."""
        spans = ""
        if self.bounds is not None:
            pairs = zip(self.bounds.lb, self.bounds.ub)
            spans = " " + " x ".join(f"[{low}, {high})" for low, high in pairs)
        return f"%{self.name or self.position}: {self.kind}{spans}"


def readers_of(value: SSAValue) -> list[Operation]:
    """The operations that use a value, by any name, for more than a name."""
    return [
        use.operation
        for name in all_names_of(value)
        for use in name.uses
        if not is_alias(use.operation)
        and not isinstance(use.operation, llvm.InsertValueOp | PointRunOp)
    ]


def counts_steps(op: Operation, value: SSAValue) -> bool:
    """
    Whether the operation is a time loop, of kernels or of the host, and the value nothing but the
    number of steps or the upper bound.
    """
    if isinstance(op, LoopOp):
        return op.steps is value
    if not isinstance(op, scf.ForOp) or TIME_LOOP not in op.attributes:
        return False
    return op.ub is value and list(op.operands).count(value) == 1


def reads_series(op: Operation, value: SSAValue) -> bool:
    """
    Whether the operation takes a number of a value at each step: an update, or the host, in a loop
    with further loops inside.
    """
    if isinstance(op, memref.LoadOp):
        kind = value.type
        return isa(kind, MemRefType[Attribute]) and kind.get_shape() == (DYNAMIC_INDEX,)
    if not isinstance(op, UpdateOp) or not is_series(value):
        return False
    return value in op.scalars or value in op.points[:1]


def parameters_of(function: FuncOp) -> tuple[Parameter, ...]:
    """The arguments of a host function. A field cast to static bounds has these bounds."""
    parameters: list[Parameter] = []
    names = argument_names(function)
    for position, argument in enumerate(function.body.block.args):
        kind: Attribute = argument.type
        bounds: StencilBoundsAttr | None = None
        is_field = False
        for alias in all_names_of(argument):
            if isinstance(alias.type, FieldType):
                kind, is_field = element_type(alias), True
                found = field_type(alias).bounds
                bounds = found if isinstance(found, StencilBoundsAttr) else bounds
            elif isa(memory := alias.type, MemRefType[Attribute]) and not is_field:
                shape, kind = memory.get_shape(), memory.element_type
                if DYNAMIC_INDEX not in shape and shape:
                    bounds = StencilBoundsAttr.from_bounds([(0, n) for n in shape])
        kind = number_behind(argument) or kind
        readers = readers_of(argument)
        if bounds is None:
            check_extents(argument, readers)
        is_field = is_field and not (readers and all(isinstance(op, ON_HOST) for op in readers))
        is_steps = bool(readers) and all(counts_steps(op, argument) for op in readers)
        as_series = bool(readers) and all(reads_series(op, argument) for op in readers)
        found_out = Parameter(
            position, names[position], kind, bounds, is_field, bool(readers), is_steps, as_series
        )
        parameters.append(found_out)
    return tuple(parameters)


def check_extents(argument: SSAValue, readers: Sequence[Operation]) -> None:
    """Raise CompileError for a memref whose extents nothing tells, and that the host reads."""
    kind = argument.type
    if not isa(kind, MemRefType[Attribute]) or DYNAMIC_INDEX not in kind.get_shape():
        return
    if kind.get_num_dims() > 1 and any(isinstance(op, ON_HOST) for op in readers):
        refuse(
            next(op for op in readers if isinstance(op, ON_HOST)),
            f"the extents of a memref are open ({kind}), and no loop of constant bounds over its "
            "cells tells them; give the memref's type all extents",
        )


def bound(
    program: str,
    parameters: Sequence[Parameter],
    given: Sequence[Any],
    named: Mapping[str, Any],
    steps: int | None,
) -> list[Any]:
    """
    The values of a call in the order of the program's arguments: values by position, then values by
    name, and `steps` for missing numbers of steps. Raises TypeError for too few or too many values,
    and for a name of no argument.
    """
    values = dict(enumerate(given))
    for name, value in named.items():
        found = [p for p in parameters if p.name == name]
        if not found:
            known = ", ".join(p.name for p in parameters if p.name) or "without names"
            raise TypeError(
                f"{name}= names no argument of {program}, which are {known}; give other arguments "
                "by position"
            )
        if found[0].position in values:
            raise TypeError(
                f"argument {found[0].label} of {program} is given twice; give the argument once"
            )
        values[found[0].position] = value
    if steps is not None:
        values = {p.position: steps for p in parameters if p.is_steps} | values
    if len(values) != len(parameters) or len(given) > len(parameters):
        missing = ", ".join(p.label for p in parameters if p.position not in values)
        text = f"{program} takes {len(parameters)} arguments, and got {len(values)}"
        raise TypeError(text + (f"; there is none for {missing}" if named and missing else ""))
    return [values[p.position] for p in parameters]
