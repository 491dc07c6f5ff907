"""What a program's function takes: fields, memory that only the host reads, scalars, and what nobody reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.syntax import element_type, field_type
from timetile.passes.raising.memory import is_alias

ON_HOST = (memref.LoadOp, memref.StoreOp, memref.AtomicRMWOp, memref.DimOp)
"""Operations by which the host itself reads and writes memory."""


@dataclass(frozen=True)
class Parameter:
    """
    One argument of the program. `bounds` are those of an array (halos included), None of a scalar.
    `is_field` is False for memory that only the host reads and writes, cell by cell. An argument with
    `is_read` False takes any value, None too.
    """

    position: int
    name: str | None
    kind: Attribute
    bounds: StencilBoundsAttr | None
    is_field: bool = True
    is_read: bool = True


def names_of(value: SSAValue) -> Iterator[SSAValue]:
    """The value and the other names that the function gives its memory."""
    yield value
    for use in value.uses:
        op = use.operation
        if is_alias(op) or isinstance(op, llvm.InsertValueOp):
            yield from names_of(op.results[0])


def readers_of(value: SSAValue) -> list[Operation]:
    """The operations that use a value by any of its names for more than a name."""
    return [
        use.operation
        for name in names_of(value)
        for use in name.uses
        if not is_alias(use.operation) and not isinstance(use.operation, llvm.InsertValueOp)
    ]


def parameters_of(function: FuncOp) -> tuple[Parameter, ...]:
    """The arguments of a host function; a field cast to static bounds has those."""
    parameters: list[Parameter] = []
    for position, argument in enumerate(function.body.block.args):
        kind: Attribute = argument.type
        bounds: StencilBoundsAttr | None = None
        is_field = False
        for name in names_of(argument):
            if isinstance(name.type, FieldType):
                kind, is_field = element_type(name), True
                found = field_type(name).bounds
                bounds = found if isinstance(found, StencilBoundsAttr) else bounds
            elif isa(memory := name.type, MemRefType[Attribute]) and not is_field:
                shape, kind = memory.get_shape(), memory.element_type
                if DYNAMIC_INDEX not in shape and shape:
                    bounds = StencilBoundsAttr.from_bounds([(0, n) for n in shape])
        readers = readers_of(argument)
        is_field = is_field and not (readers and all(isinstance(op, ON_HOST) for op in readers))
        parameters.append(
            Parameter(position, argument.name_hint, kind, bounds, is_field, bool(readers))
        )
    return tuple(parameters)
