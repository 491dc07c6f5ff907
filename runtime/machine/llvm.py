"""LLVM: functions of the llvm dialect become machine code of the processor, and are loaded.

llvmlite comes with xDSL's JIT compiler, and has no types: its modules have the type Any.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from threading import Lock
from typing import Any

from numpy.ctypeslib import as_ctypes_type
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.llvm import FuncOp, LLVMPointerType
from xdsl.ir import Attribute

from timetile.dialects.cell_types import CELL_TYPES
from timetile.passes.analysis.cells.library import BARRIER
from timetile.runtime.machine.libm import bound_symbols
from timetile.runtime.machine.teams import barrier_function
from timetile.runtime.machine.vector_functions import VectorFunction, vector_functions

LLVM_LOCK = Lock()
"""LLVM compiles and loads for one thread at a time."""

C_TYPES: dict[Attribute, Any] = {
    LLVMPointerType(): ctypes.c_void_p,
    **{kind: as_ctypes_type(row.dtype) for kind, row in CELL_TYPES.items()},
}
"""C types of arguments, by MLIR type."""

SPEED = 3
"""The optimisation level: loops are vectorised."""


@cache
def binding() -> Any:
    """llvmlite's binding of LLVM, ready to make machine code."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in bound_symbols().items():
        llvm.add_symbol(name, address)
    llvm.add_symbol(BARRIER, barrier_function())
    return llvm


@dataclass(frozen=True)
class Processor:
    """The processor of machine code: other processors must not run the code."""

    triple: str
    name: str
    features: str

    def key(self) -> str:
        """The processor and the compiler as text."""
        versions = f"llvmlite {version('llvmlite')}, xdsl {version('xdsl')}"
        called = ",".join(each.of_vectors for each in functions_on_vectors().values())
        return f"{self.triple};{self.name};{self.features};{versions};{SPEED};{called}"


@cache
def processor() -> Processor:
    """The present processor."""
    llvm = binding()
    features: str = llvm.get_host_cpu_features().flatten()
    return Processor(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


@cache
def functions_on_vectors() -> dict[str, VectorFunction]:
    """Mathematical functions on vectors for the processor, bound for code to be loaded."""
    found = vector_functions(processor().features.split(","))
    for each in found.values():
        binding().add_symbol(each.symbol, each.address)
    return found


def target_machine() -> Any:
    """The code generator for the processor."""
    found = processor()
    target = binding().Target.from_triple(found.triple)
    return target.create_target_machine(
        cpu=found.name, features=found.features, opt=SPEED, jit=True
    )


def llvm_text(module: ModuleOp, machine: Any) -> str:
    """The module in LLVM's own language, converted by xDSL."""
    convert: Any = importlib.import_module("xdsl.backend.llvm.convert")
    layout = str(machine.target_data)
    made = convert.convert_module(module, fallback_target_triple=machine.triple, data_layout=layout)
    for op in module.ops:
        if isinstance(op, FuncOp):
            # xDSL leaves these out.
            own = made.get_global(op.sym_name.data).attributes
            if op.no_inline is not None:
                own.add("noinline")
            for each in op.passthrough or ():
                if isinstance(each, StringAttr):
                    own.add(each.data)
    return str(made)


def optimised(
    module: ModuleOp, machine: Any, on_vectors: Mapping[str, VectorFunction] | None = None
) -> Any:
    """
    A module of llvm functions as an LLVM module, optimised for a processor; loops call the
    functions `on_vectors` in place of functions of one number, by name.
    """
    llvm = binding()
    parsed = llvm.parse_assembly(llvm_text(module, machine))
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    for name in [each.name for each in parsed.functions if each.is_declaration]:
        if on_vectors is not None and name in on_vectors:
            parsed.link_in(llvm.parse_assembly(head + on_vectors[name].definition))
    options = llvm.PipelineTuningOptions(speed_level=SPEED)
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed


def object_code(module: ModuleOp) -> bytes:
    """The machine code of a module of llvm functions, for the processor."""
    with LLVM_LOCK:
        machine = target_machine()
        return machine.emit_object(optimised(module, machine, functions_on_vectors()))


class Code:
    """Loaded machine code. Functions live as long as the object."""

    def __init__(self, data: bytes):
        self.functions: dict[str, Any] = {}
        llvm, _ = binding(), functions_on_vectors()
        with LLVM_LOCK:
            machine = target_machine()
            empty = llvm.parse_assembly(f'target triple = "{machine.triple}"')
            self.engine = llvm.create_mcjit_compiler(empty, machine)
            self.engine.add_object_file(llvm.ObjectFileRef.from_data(data))
            self.engine.finalize_object()

    def function(self, name: str, kinds: Sequence[Attribute]) -> Any:
        """
        A function without a result, with arguments of the given types. Calls release Python's lock.
        """
        if name not in self.functions:
            address = self.engine.get_function_address(name)
            assert address, f"the machine code has no function {name}"
            kind = ctypes.CFUNCTYPE(None, *(C_TYPES[kind] for kind in kinds))
            self.functions[name] = kind(address)
        return self.functions[name]
