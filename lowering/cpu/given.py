"""Names and arguments of a time loop's functions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32, f64, i32, i64
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.series import is_series, number_type
from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.builder import llvm_type
from timetile.lowering.cpu.updates import POINTER


def update_name(loop: int, update: int) -> str:
    """The name of the function of an update, by the numbers of loop and update."""
    return f"loop{loop}.update{update}"


def part_name(loop: int, update: int | None = None) -> str:
    """The name of the function for a part of the places, with all updates or with `update` only."""
    return f"loop{loop}.part" if update is None else f"{update_name(loop, update)}.part"


def steps_name(loop: int) -> str:
    """The name of the function running all steps of a loop."""
    return f"loop{loop}.steps"


@dataclass(frozen=True)
class Given:
    """The values used by the steps of a loop, in the order of arguments."""

    buffers: tuple[SSAValue, ...]
    """The arguments of the loop's body, which rotate."""
    captures: tuple[SSAValue, ...]
    scalars: tuple[SSAValue, ...]

    @staticmethod
    def of(loop: LoopOp) -> Given:
        return Given(tuple(loop.body.block.args), loop.captures, loop.scalars)

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """The buffers, the captured fields, and the scalars."""
        return (*self.buffers, *self.captures, *self.scalars)

    @property
    def kinds(self) -> list[Attribute]:
        """The types of arguments: a field is a pointer to the first cell."""
        return [type_of(value) for value in self.values]


def type_of(value: SSAValue) -> Attribute:
    """How compiled code takes a field, a scalar or a series."""
    is_memory = isinstance(value.type, FieldType) or is_read(value)
    return POINTER if is_memory else llvm_type(number_type(value))


def is_read(value: SSAValue) -> bool:
    """A series with numbers that compiled code reads. Of other series code takes one number."""
    return is_series(value) and number_type(value) in (f32, f64, i32, i64, IndexType())
