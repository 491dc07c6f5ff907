"""target-arch: write on the module the GPU for which kernels are compiled.

Before:
```
builtin.module {...}
```
After, with `arch=sm_80`:
```
builtin.module attributes {timetile.arch = "sm_80"} {...}
```

`lower-tile-to-gpu` refuses kernels too large for the GPU, and `-t ptx` prints for the GPU; sm_90
without the attribute.
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
