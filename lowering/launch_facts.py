"""The launch facts of a lowered kernel, as an attribute of the kernel's gpu.module."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.ir import Operation

from timetile.dialects.tile import LaunchAttr

LAUNCH = "tile.launch"
"""The attribute of a gpu.module with the launch facts of the module's kernel."""


def set_launch_facts(module: gpu.ModuleOp, facts: LaunchAttr) -> None:
    """Say how the kernel of a module is launched."""
    module.attributes[LAUNCH] = facts


def known_launch_facts(module: Operation | None) -> LaunchAttr | None:
    """How the kernel of a module is launched; None for kernels that no tile.kernel became."""
    facts = None if module is None else module.attributes.get(LAUNCH)
    return facts if isinstance(facts, LaunchAttr) else None
