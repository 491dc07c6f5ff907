"""timetile: a compiler for iterated stencil programs on NVIDIA GPUs.

    program = timetile.compile(Path("heat2d.mlir"))  # on the GPU, or on the CPU where there is none
    result = program(u, v, steps=100)                # NumPy arrays, or arrays in GPU memory, in place
    result = program(*result.buffers, steps=100)     # goes on: 200 steps in all

`compile` makes a `CompiledProgram`, whose calls return a `RunResult`; what cannot be compiled is a `CompileError` with
the reason. `pipeline` has the passes for another xDSL frontend.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timetile.lowering.pipelines import pipeline as pipeline
    from timetile.passes.diagnostics import CompileError as CompileError
    from timetile.runtime.compile import compile as compile
    from timetile.runtime.program import CompiledProgram as CompiledProgram
    from timetile.runtime.program import RunResult as RunResult

__version__ = "0.1.0"
__all__ = ["CompileError", "CompiledProgram", "RunResult", "__version__", "compile", "pipeline"]

# Loaded on first use, so that `import timetile`, which every run of xdsl-opt does, takes milliseconds.
_HOME = {
    "CompileError": "timetile.passes.diagnostics",
    "CompiledProgram": "timetile.runtime.program",
    "RunResult": "timetile.runtime.program",
    "compile": "timetile.runtime.compile",
    "pipeline": "timetile.lowering.pipelines",
}


def __dir__() -> list[str]:
    """What the package has, loaded or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'timetile' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
