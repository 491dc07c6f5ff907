"""The target `-t ptx{arch=sm_90}`: the PTX of all kernels of a module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.target import target_named, target_of


@dataclass(frozen=True)
class PtxTarget(Target):
    """
    Print PTX for `arch`, by default the module's architecture (`target-arch`), else sm_90.
    `version` overrides the oldest PTX version for the architecture.
    """

    name = "ptx"

    arch: str | None = None
    version: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the kernels of a module."""
        kernels = kernels_of(module)
        if not kernels:
            raise CompileError(
                "there is no kernel to print; run the pipeline up to convert-gpu-to-nvvm first"
            )
        arch = target_of(module) if self.arch is None else target_named(self.arch)
        if self.version is not None and not re.fullmatch(r"\d+\.\d+", self.version):
            raise CompileError(f"ptx: a version is two numbers, like 8.1, got {self.version}")
        output.write(print_module(kernels, self.version or arch.isa.ptx_version, arch.name))
