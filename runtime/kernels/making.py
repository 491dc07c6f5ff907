"""Makes a kernel: lowers its stages to the code of a thread, prints PTX, and assembles it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.analysis.launches.accesses import kernel_accesses
from timetile.passes.targets.target import ARCH_ATTRIBUTE, Target
from timetile.runtime.kernels.assembler import assemble, assembles
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.lowered import launch_facts, lowered_kernel
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.machine.ranges import profiled


def kernel_module(tiled: ModuleOp, name: str, target: Target) -> ModuleOp:
    """A module with the named kernel at tile level, and its cell functions."""
    kept: list[Operation] = []
    cells: set[str] = set()
    for op in tiled.ops:
        if isinstance(op, KernelOp) and op.sym_name.data == name:
            kept.append(op)
            cells = {s.cell.string_value() for s in op.stages if isinstance(s, ApplyOp)}
    for op in tiled.ops:
        if isinstance(op, FuncOp) and op.sym_name.data in cells:
            kept.insert(0, op)
    said: dict[str, Attribute] = {ARCH_ATTRIBUTE: StringAttr(target.name)}
    return ModuleOp([op.clone() for op in kept], said)


def made_kernel(tiled: ModuleOp, name: str, options: Options) -> Kernel:
    """A kernel of a module at tile level: lowered, printed, and assembled with an assembler."""
    target, bound = options.target, options.bound_waits
    with profiled(f"compile @{name}"):
        module = kernel_module(tiled, name, target)
        accesses = tuple(
            a for op in module.ops if isinstance(op, KernelOp) for a in kernel_accesses(op)
        )
        run_passes((*options.thread_passes(), *options.hardware_passes()), module, verify=False)
        facts = launch_facts(lowered_kernel(module))
        version = target.isa.ptx_version
        ptx = print_module(kernels_of(module), version, target.name, bound_waits=bound)
        assembled = assemble(ptx, target.name, name) if assembles(target.name) else None
    return Kernel(
        name,
        ptx,
        None if assembled is None else assembled.cubin,
        arch=target.name,
        bound_waits=bound,
        registers=0 if assembled is None else assembled.registers,
        spill_bytes=0 if assembled is None else assembled.spill_bytes,
        accesses=accesses,
        **facts.shape.numbers,
    )
