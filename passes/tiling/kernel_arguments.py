"""The arguments of a kernel under construction, each with a role."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from timetile.dialects.series import is_series, number_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import RoleAttr, RoleKind
from timetile.dialects.tile.roles import made_role

HINTS = {RoleKind.SOURCE: "src", RoleKind.TARGET: "dst"}
"""The names of arguments with a role; other arguments have the name of the loop's value."""


class KernelArguments:
    """The arguments of a kernel's block, by role, in the order of the first mention."""

    def __init__(self, block: Block, loop: LoopOp):
        self.block = block
        self.scalars = loop.scalars
        """The scalars of the loop, gathered once from all updates."""
        self.known: dict[RoleAttr, SSAValue] = {}

    @property
    def roles(self) -> list[RoleAttr]:
        """The roles, in the order of the arguments."""
        return list(self.known)

    def of(self, kind: RoleKind, index: int, like: SSAValue) -> SSAValue:
        """
        The argument of a role, added at the first mention, of the type of `like`; for a series, of
        the type of its numbers.
        """
        role = made_role(kind, index)
        if role not in self.known:
            argument = self.block.insert_arg(number_type(like), len(self.block.args))
            argument.name_hint = HINTS.get(kind, like.name_hint)
            self.known[role] = argument
        return self.known[role]

    def number(self, scalar: SSAValue, step: int) -> SSAValue:
        """The argument for a scalar of the loop, in a step of a launch."""
        index = self.scalars.index(scalar)
        if is_series(scalar):
            return self.of(RoleKind.SERIES, step * len(self.scalars) + index, scalar)
        return self.of(RoleKind.SCALAR, index, scalar)

    def get(self, kind: RoleKind, index: int) -> SSAValue | None:
        """The argument of a role; None if the kernel has no such argument."""
        return self.known.get(made_role(kind, index))
