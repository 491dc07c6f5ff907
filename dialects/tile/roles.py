"""Roles: the arguments of a kernel, by their part in the time loop."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from timetile.dialects.tile.kinds import RoleKind, RoleKindAttr


@irdl_attr_definition
class RoleAttr(ParametrizedAttribute):
    """
    The role of a kernel's argument in the time loop: the buffer of loop argument `index` before
    (`source`) or after (`target`) the kernel's steps, the program's buffer of cells outside the
    bounds (`halo`), a field (`capture`) or a `scalar` of the enclosing function, by position among
    the fields or scalars used. A `series` is the number, at a step of the launch, of a scalar that
    changes from step to step: `index` counts the scalars of all steps, step by step.

    Example: `#tile.role<source 0>`
    """

    name = "tile.role"
    kind: RoleKindAttr
    index: IntAttr

    def __init__(self, kind: RoleKind, index: int):
        super().__init__(RoleKindAttr(kind), IntAttr(index))

    @property
    def role(self) -> tuple[RoleKind, int]:
        """The kind and the position."""
        return self.kind.data, self.index.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_str_enum(RoleKind)
            return [RoleKindAttr(kind), IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.kind.data} {self.index.data}>")


@lru_cache(maxsize=1 << 12)
def made_role(kind: RoleKind, index: int) -> RoleAttr:
    """The role, made once: a kernel under construction asks for the same roles many times."""
    return RoleAttr(kind, index)
