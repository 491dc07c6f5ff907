"""
Makes a kernel: lowers its stages to the code of a thread, prints PTX, and assembles it.

Where the assembler spills few words in the loop over stream steps, the kernel is made again with
`spare-registers`, and the code with the fewest spilled words stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.lowering.lower_tile_to_gpu import LowerTileToGpuPass
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.threads.spare_registers import SpareRegistersPass
from timetile.passes.analysis.launches.accesses import kernel_accesses
from timetile.passes.targets.target import ARCH_ATTRIBUTE, Target
from timetile.runtime.kernels.assembler import assemble, assembles
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.lowered import launch_facts, lowered_kernel
from timetile.runtime.kernels.machine_code import steady_loop
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


FEW_WORDS = 32
"""Spilled words in a turn of the loop up to which a kernel is made again with spared registers."""


@dataclass(frozen=True)
class Sparing:
    """A way to spare registers."""

    spare: SpareRegistersPass
    """Follows the passes on the code of threads."""
    assembler: tuple[bool, ...]
    """Whether the assembler leaves out optimisations that cost registers: the tries in turn."""


SPARING = (
    Sparing(SpareRegistersPass(), assembler=(False, True)),
    Sparing(SpareRegistersPass(stores=False), assembler=(True,)),
    Sparing(SpareRegistersPass(copies=False), assembler=(False,)),
)
"""The ways, tried one after the other: only the assembler knows the best for a kernel."""


def made_kernel(tiled: ModuleOp, name: str, options: Options) -> Kernel:
    """
    A kernel of a module at tile level: lowered, printed, and assembled with an assembler. Of a
    kernel that spills in its steady loop, the code that spills least there.
    """
    best = assembled(kernel_as_text(tiled, name, options))
    if options.given.threads or steady_words(best) not in range(1, FEW_WORDS + 1):
        return best
    for sparing in SPARING:
        other = kernel_as_text(tiled, name, options, sparing.spare)
        for spares in sparing.assembler:
            made = assembled(other, spares=spares)
            if steady_words(made) < steady_words(best):
                best = made
            if not steady_words(best):
                return best
    return best


def steady_words(kernel: Kernel) -> int:
    """The 32-bit words spilled in a turn of the loop over stream steps, by the machine code."""
    loop = None if kernel.cubin is None else steady_loop(kernel.cubin, kernel.arch)
    return 0 if loop is None else loop.spill_words


def kernel_as_text(
    tiled: ModuleOp, name: str, options: Options, spare: SpareRegistersPass | None = None
) -> Kernel:
    """
    A kernel as PTX by the usual passes. With `spare` behind the passes on the code of threads, the
    parts of a warp's shared memory are adjacent.
    """
    target, threads = options.target, options.thread_passes()
    if spare is not None:
        threads = (LowerTileToGpuPass(adjacent=True), *threads[1:], spare)
    with profiled(f"compile @{name}"):
        module = kernel_module(tiled, name, target)
        accesses = tuple(
            a for op in module.ops if isinstance(op, KernelOp) for a in kernel_accesses(op)
        )
        run_passes((*threads, *options.hardware_passes()), module, verify=False)
        facts, bound = launch_facts(lowered_kernel(module)), options.bound_waits
        version = target.isa.ptx_version
        ptx = print_module(kernels_of(module), version, target.name, bound_waits=bound)
    return Kernel(
        name, ptx, None, target.name, bound_waits=bound, registers=0, spill_bytes=0,
        accesses=accesses, **facts.shape.numbers,
    )  # fmt: skip


def assembled(kernel: Kernel, *, spares: bool = False) -> Kernel:
    """
    A kernel with machine code, where an assembler is there. With `spares` the assembler leaves out
    optimisations that cost registers.
    """
    if not assembles(kernel.arch):
        return kernel
    with profiled(f"assemble @{kernel.name}"):
        made = assemble(kernel.ptx, kernel.arch, kernel.name, spares=spares)
    return replace(kernel, cubin=made.cubin, registers=made.registers, spill_bytes=made.spill_bytes)
