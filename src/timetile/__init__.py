"""timetile: a compiler for iterated stencil programs on NVIDIA GPUs."""

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


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'timetile' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
