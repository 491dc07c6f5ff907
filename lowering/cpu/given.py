"""What the functions of a time loop work on, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.builder import llvm_type
from timetile.lowering.cpu.updates import POINTER


def update_name(loop: int, update: int) -> str:
    """The function of an update, by the numbers of its loop and of itself."""
    return f"loop{loop}.update{update}"


def part_name(loop: int, update: int | None = None) -> str:
    """The function that runs steps on a part of a loop's places, with all updates or with one."""
    return f"loop{loop}.part" if update is None else f"{update_name(loop, update)}.part"


def steps_name(loop: int) -> str:
    """The function that runs the steps of a loop."""
    return f"loop{loop}.steps"


@dataclass(frozen=True)
class Given:
    """What the steps of a loop work on, in the order in which its functions take it."""

    buffers: tuple[SSAValue, ...]
    """The arguments of the loop's body: they rotate."""
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
        """How functions take them: fields as pointers to their first cells."""
        return [type_of(value) for value in self.values]


def type_of(value: SSAValue) -> Attribute:
    """How compiled code takes a field or a scalar."""
    return POINTER if isinstance(value.type, FieldType) else llvm_type(value.type)
