"""Functions of the mathematical library in PTX: CUDA's own, compiled by NVRTC, without a GPU.

A module holds the functions called by its kernels: the PTX is complete. Kernels call the functions:
inlined, each would take some 60 to 300 instructions for every cell of a thread's patch and every
level.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from xdsl.ir import Operation

from timetile.dialects.cell_types import CELL_TYPES
from timetile.lowering.ptx.symbols import FUNCTION_PREFIX
from timetile.lowering.ptx.writer import Writer
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.passes.analysis.cells.library import library_name
from timetile.passes.diagnostics import CompileError, refuse

WAY_OUT = (
    "install nvidia-cuda-nvrtc (pip install 'timetile[functions]'), or run it with executor cpu"
)
"""The way out without NVRTC."""


@cache
def nvrtc() -> Any:
    """NVRTC's binding, without types; None without NVRTC."""
    try:
        found: Any = importlib.import_module("cuda.bindings.nvrtc")
        found.nvrtcVersion()
    except (ImportError, RuntimeError, FileNotFoundError):
        return None
    return found


def nvrtc_version() -> str | None:
    """NVRTC's version; None without NVRTC. Functions depend on the version."""
    binding = nvrtc()
    return None if binding is None else ".".join(map(str, binding.nvrtcVersion()[1:]))


def calls_functions(module: Operation) -> bool:
    """Whether some operation of a program is a call of a library function in PTX."""
    return any(type(op) in CALLS for op in module.walk())


def source_of(name: str, kind: str, operands: int) -> str:
    """A function of CUDA's library under a name of ours, in CUDA C++."""
    letters = [chr(ord("a") + k) for k in range(operands)]
    arguments = ", ".join(f"{kind} {letter}" for letter in letters)
    return (
        f'extern "C" __device__ {kind} {FUNCTION_PREFIX}{name}({arguments}) '
        f"{{ return {name}({', '.join(letters)}); }}\n"
    )


def said(binding: Any, program: Any, what: str) -> str:
    """An output of NVRTC about a program: its `PTX`, or its `ProgramLog`."""
    _, size = getattr(binding, f"nvrtcGet{what}Size")(program)
    text = b" " * size
    getattr(binding, f"nvrtcGet{what}")(program, text)
    return text.decode(errors="replace").rstrip("\0")


@lru_cache(maxsize=64)
def compiled(source: str, target: str) -> str:
    """
    PTX of functions in CUDA C++ for an architecture. Raises CompileError if NVRTC refuses the
    source.
    """
    binding = nvrtc()
    _, program = binding.nvrtcCreateProgram(source.encode(), b"functions.cu", 0, [], [])
    architecture = target.replace("sm_", "compute_")
    options = [f"--gpu-architecture={architecture}".encode(), b"--relocatable-device-code=true"]
    (status,) = binding.nvrtcCompileProgram(program, len(options), options)
    if status != binding.nvrtcResult.NVRTC_SUCCESS:
        log = " ".join(said(binding, program, "ProgramLog").split())
        raise CompileError(f"NVRTC does not compile CUDA's functions for {target}: {log}")
    ptx = said(binding, program, "PTX")
    binding.nvrtcDestroyProgram(program)
    return ptx


def device_functions(called: Mapping[str, tuple[str, int]], target: str) -> str:
    """
    The PTX of functions, to go into a module with a head: by name, type and number of operands;
    empty without functions.
    """
    if not called:
        return ""
    source = "".join(source_of(name, *kinds) for name, kinds in sorted(called.items()))
    _, _, body = compiled(source, target).partition(".address_size 64")
    # Functions stay local to the module: linking modules with equal functions would clash.
    return body.replace(".visible .func", ".func").strip() + "\n\n"


def print_function(w: Writer, op: Operation) -> None:
    """Print a call of a function."""
    if nvrtc() is None:
        refuse(
            op,
            "PTX has no instruction for the function, and NVRTC, which compiles such functions, "
            f"is absent; {WAY_OUT}",
        )
    result = op.results[0]
    kind = CELL_TYPES[result.type].llvm
    name = library_name(op)
    w.functions[name] = (CELL_TYPES[result.type].c, len(op.operands))
    values = [w.use(operand) for operand in op.operands]
    arguments = [f"argument{k}" for k in range(len(values))]
    w.lines.append("\t{")
    for argument, value in zip(arguments, values):
        w.line(f".param .{kind} {argument}")
        w.line(f"st.param.{kind} [{argument}], {value}")
    w.line(f".param .{kind} result")
    w.line(f"call (result), {FUNCTION_PREFIX}{name}, ({', '.join(arguments)})")
    w.line(f"ld.param.{kind} {w.define(result)}, [result]")
    w.lines.append("\t}")


CALLS: dict[type[Operation], Callable[[Writer, Operation], None]] = dict.fromkeys(
    FUNCTIONS, print_function
)
