"""target-arch: say on the module which GPU its kernels are compiled for.

After: `builtin.module attributes {timetile.arch = "sm_80"}`

`lower-tile-to-gpu` refuses kernels that the GPU has no room for, and `-t ptx` prints for it, sm_90 where nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from timetile.passes.targets.target import ARCH_ATTRIBUTE, DEFAULT_ARCH, target_named


@dataclass(frozen=True)
class TargetArchPass(ModulePass):
    """Write the architecture on the module; see the module's documentation."""

    name = "target-arch"

    arch: str = DEFAULT_ARCH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes[ARCH_ATTRIBUTE] = StringAttr(target_named(self.arch).name)
