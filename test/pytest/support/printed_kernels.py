"""The PTX of a compiled program's kernels."""

from __future__ import annotations

import timetile


def ptx_of(program: timetile.CompiledProgram) -> list[str]:
    """The PTX of all kernels: of the loop, and of fields computed once before the loop."""
    names = [kernel.name for loop in program.kernels.facts for kernel in loop]
    return [program.kernels.kernel(name).ptx for name in names]
