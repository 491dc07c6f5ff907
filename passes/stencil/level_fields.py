"""Memrefs whose levels, views of one place along the first axis, are fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.syntax import field_bounds
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.memory import is_alias
from timetile.passes.raising.names import names_of
from timetile.passes.stencil.fold_subviews import offsets_of

COMPUTED = arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.IndexCastOp
"""Operations that compute a level."""


@dataclass
class LevelFields:
    """A memref of levels: the views of levels, and the fields of each view."""

    memory: SSAValue
    views: list[memref.SubviewOp] = field(default_factory=list[memref.SubviewOp])
    fields: dict[SSAValue, memref.SubviewOp] = field(
        default_factory=dict[SSAValue, memref.SubviewOp]
    )

    @property
    def loops(self) -> list[scf.ForOp]:
        """The loops whose numbers pick levels."""
        found = (loops_behind(offsets_of(view)[0]) or [] for view in self.views)
        return list(dict.fromkeys(loop for loops in found for loop in loops))


def loops_behind(number: SSAValue | int) -> list[scf.ForOp] | None:
    """The loops from whose numbers and constants alone a number is computed; None for another."""
    if isinstance(number, int) or integer_constant(number) is not None:
        return []
    owner = number.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        return [loop] if isinstance(loop, scf.ForOp) and number is owner.args[0] else None
    if not isinstance(owner, COMPUTED):
        return None
    parts = [loops_behind(operand) for operand in owner.operands]
    known = [part for part in parts if part is not None]
    return [loop for part in known for loop in part] if len(known) == len(parts) else None


def level_fields(memory: SSAValue) -> LevelFields | None:
    """The levels of a memref as fields; None for a memref with other uses."""
    kind = memory.type
    if not isa(kind, MemRefType[Attribute]) or not isinstance(kind.layout, NoneAttr):
        return None
    shape, found = kind.get_shape(), LevelFields(memory)
    if not 2 <= len(shape) <= 3 or DYNAMIC_INDEX in shape:
        return None
    for use in memory.uses:
        view = use.operation
        if not isinstance(view, memref.SubviewOp) or not is_whole_level(view, shape):
            return None
        if loops_behind(offsets_of(view)[0]) is None:
            return None
        found.views.append(view)
        for name in fields_of_view(view.result):
            if name is None:
                return None
            found.fields[name] = view
    bounds = {field_bounds(name) for name in found.fields}
    ranks = {len(each.lb) for each in bounds}
    return found if len(bounds) == 1 and ranks == {len(shape) - 1} else None


def is_whole_level(view: memref.SubviewOp, shape: Sequence[int]) -> bool:
    """Whether a view shows all cells of one level."""
    seen = view.result.type
    assert isa(seen, MemRefType[Attribute])
    strides = set(view.static_strides.get_values())
    sizes = view.static_sizes.get_values()
    is_level = sizes == (1, *shape[1:]) and seen.get_shape() == tuple(shape[1:])
    return is_level and strides == {1} and not any(offsets_of(view)[1:])


def fields_of_view(view: SSAValue) -> list[SSAValue | None]:
    """The fields that loads and stores of the dialect use for a view; None for another use."""
    uses = [(name, use.operation) for name in names_of(view) for use in name.uses]
    return [
        name
        if isinstance(op, stencil.LoadOp | stencil.StoreOp) and isa(name.type, FieldType[Attribute])
        else None
        for name, op in uses
        if not is_alias(op)
    ]


def known_number(number: SSAValue | int) -> int:
    """A number computed from constants."""
    if isinstance(number, int):
        return number
    if (known := integer_constant(number)) is not None:
        return known
    owner = number.owner
    assert isinstance(owner, COMPUTED)
    first, *rest = map(known_number, owner.operands)
    for other in rest:
        match owner:
            case arith.AddiOp():
                first += other
            case arith.SubiOp():
                first -= other
            case _:
                first *= other
    return first
