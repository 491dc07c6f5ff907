"""
timetile: a compiler for iterated stencil programs on NVIDIA GPUs.

    program = timetile.compile(Path("heat2d.mlir"))  # on the GPU, or on the CPU where there is none
    result = program(u, v, steps=100)                # arrays of NumPy or in GPU memory, in place
    result = program(*result.buffers, steps=100)     # goes on: 200 steps in all

`stencil` makes a model of a Python function of one time step; the model advances plain arrays:

    @timetile.stencil
    def heat(u: timetile.Field, k: timetile.Scalar):
        u.next = u[0] + k * (u[-1] - 2 * u[0] + u[1])

    state = heat.advance({"u": np.random.rand(100)}, steps=1000, k=0.2)

`compile` makes a `CompiledProgram`, with calls that return a `RunResult`; a program that cannot be
compiled is a `CompileError` with the reason. `pipeline` has the passes for another xDSL frontend;
`devito` runs operators of Devito.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timetile import devito as devito
    from timetile.frontend.boundaries import value as value
    from timetile.frontend.complex_fields import Complex as Complex
    from timetile.frontend.complex_fields import ComplexValue as ComplexValue
    from timetile.frontend.errors import StencilError as StencilError
    from timetile.frontend.functions import coordinate as coordinate
    from timetile.frontend.functions import extent as extent
    from timetile.frontend.functions import step as step
    from timetile.frontend.functions import where as where
    from timetile.frontend.model import Model as Model
    from timetile.frontend.points import Points as Points
    from timetile.frontend.repeats import repeat as repeat
    from timetile.frontend.runs import State as State
    from timetile.frontend.sequences import sequence as sequence
    from timetile.frontend.stencil import stencil as stencil
    from timetile.frontend.stopping import maximum as maximum
    from timetile.frontend.stopping import minimum as minimum
    from timetile.frontend.stopping import total as total
    from timetile.frontend.sweeps import sweep as sweep
    from timetile.frontend.symbols import Field as Field
    from timetile.frontend.symbols import Scalar as Scalar
    from timetile.frontend.symbols import Series as Series
    from timetile.frontend.temporaries import temporary as temporary
    from timetile.frontend.torch_calls import torch_operator as torch_operator
    from timetile.frontend.values import Value as Value
    from timetile.lowering.pipelines import pipeline as pipeline
    from timetile.passes.diagnostics import CompileError as CompileError
    from timetile.runtime.kernels.choosing_process import wait_for_schedules as wait_for_schedules
    from timetile.runtime.program.compile import compile as compile
    from timetile.runtime.program.compiled_program import CompiledProgram as CompiledProgram
    from timetile.runtime.program.compiled_program import RunResult as RunResult

__version__ = "0.1.0"
__all__ = [
    "CompileError",
    "CompiledProgram",
    "Complex",
    "ComplexValue",
    "Field",
    "Model",
    "Points",
    "RunResult",
    "Scalar",
    "Series",
    "State",
    "StencilError",
    "Value",
    "__version__",
    "compile",
    "coordinate",
    "extent",
    "maximum",
    "minimum",
    "pipeline",
    "repeat",
    "sequence",
    "stencil",
    "step",
    "sweep",
    "temporary",
    "torch_operator",
    "total",
    "value",
    "wait_for_schedules",
    "where",
]

# Loaded on first use: every run of xdsl-opt imports timetile, and takes milliseconds for the
# import.
_HOME = {
    "CompileError": "timetile.passes.diagnostics",
    "CompiledProgram": "timetile.runtime.program.compiled_program",
    "Complex": "timetile.frontend.complex_fields",
    "ComplexValue": "timetile.frontend.complex_fields",
    "Field": "timetile.frontend.symbols",
    "Model": "timetile.frontend.model",
    "Points": "timetile.frontend.points",
    "RunResult": "timetile.runtime.program.compiled_program",
    "Scalar": "timetile.frontend.symbols",
    "Series": "timetile.frontend.symbols",
    "State": "timetile.frontend.runs",
    "StencilError": "timetile.frontend.errors",
    "Value": "timetile.frontend.values",
    "compile": "timetile.runtime.program.compile",
    "coordinate": "timetile.frontend.functions",
    "extent": "timetile.frontend.functions",
    "maximum": "timetile.frontend.stopping",
    "minimum": "timetile.frontend.stopping",
    "pipeline": "timetile.lowering.pipelines",
    "repeat": "timetile.frontend.repeats",
    "sequence": "timetile.frontend.sequences",
    "stencil": "timetile.frontend.stencil",
    "step": "timetile.frontend.functions",
    "sweep": "timetile.frontend.sweeps",
    "temporary": "timetile.frontend.temporaries",
    "total": "timetile.frontend.stopping",
    "torch_operator": "timetile.frontend.torch_calls",
    "value": "timetile.frontend.boundaries",
    "wait_for_schedules": "timetile.runtime.kernels.choosing_process",
    "where": "timetile.frontend.functions",
}


def __dir__() -> list[str]:
    """The names of the package, loaded or not."""
    own = {name for name in globals() if name.startswith("__")}
    # Not devito: help() loads all listed names, and Devito may not be installed.
    return sorted({*own, *__all__})


def __getattr__(name: str) -> object:
    if name == "devito":
        # Needs the optional package Devito: no other name loads the package.
        return importlib.import_module("timetile.devito")
    if name not in _HOME:
        raise AttributeError(f"module 'timetile' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
