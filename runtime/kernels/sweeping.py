"""Kernels of sweeps, at the level of threads, as PTX, and as machine code kept in the cache."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.division.expand_division import ExpandDivisionPass
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.staged_sweeps import sweep_kernel
from timetile.lowering.sweep_frames import SweepFrame, sweeps_of
from timetile.passes.targets.target import ARCH_ATTRIBUTE, target_named
from timetile.runtime.arithmetic.sweeps import function_of_sweep
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.assembler import assemble, assembler_key, assembles
from timetile.runtime.machine.floating_point import standard_modes

IMAGE = "image"
"""The part of a cache entry with a kernel's machine code, or its PTX."""


def sweep_module(frame: SweepFrame, arch: str) -> ModuleOp:
    """A module with the kernel of a sweep at the level of threads, for an instruction set."""
    with standard_modes():
        module = sweep_kernel(frame, function_of_sweep(frame.op))
        module.attributes[ARCH_ATTRIBUTE] = StringAttr(target_named(arch).name)
        ExpandDivisionPass().apply(Context(), module)
    module.verify()
    return module


def sweep_code(frame: SweepFrame, arch: str) -> gpu.FuncOp:
    """The kernel of a sweep at the level of threads."""
    return next(each for each in sweep_module(frame, arch).walk() if isinstance(each, gpu.FuncOp))


def hardware_module(frame: SweepFrame, arch: str) -> ModuleOp:
    """A module with the kernel of a sweep at hardware level."""
    module = sweep_module(frame, arch)
    ConvertGpuToNvvmPass().apply(Context(), module)
    return module


def sweep_text(frame: SweepFrame, arch: str) -> str:
    """The kernel of a sweep as PTX."""
    target = target_named(arch)
    kernels = kernels_of(hardware_module(frame, arch))
    return print_module(kernels, target.isa.ptx_version, target.name)


def sweep_image(frame: SweepFrame, arch: str, cache: Cache | None) -> bytes:
    """
    The kernel of a sweep for the driver: machine code where an assembler is there, else PTX. An
    image made before comes from the cache.
    """
    if cache is None:
        return made_image(frame, arch)
    op, function = frame.op, function_of_sweep(frame.op)
    types = [str(operand.type) for operand in op.operands]
    key = key_of("sweep", op, *types, function, frame.name, arch, sources_key(), assembler_key())
    kept = cache.decoded(key, lambda parts: parts[IMAGE])
    if kept is None:
        kept = made_image(frame, arch)
        cache.write(key, {IMAGE: kept})
    return kept


def made_image(frame: SweepFrame, arch: str) -> bytes:
    """The kernel of a sweep for the driver, made now."""
    text, target = sweep_text(frame, arch), target_named(arch)
    if assembles(target.name):
        return assemble(text, target.name, frame.name).cubin
    return text.encode() + b"\0"


def modules_of_sweeps(root: Operation, arch: str, *, to_hardware: bool) -> list[gpu.ModuleOp]:
    """The kernels of the sweeps inside an operation, of threads or in the form of the hardware."""
    lower = hardware_module if to_hardware else sweep_module
    made = [lower(SweepFrame.of(op), arch) for op in sweeps_of(root)]
    return [op.clone() for module in made for op in module.ops if isinstance(op, gpu.ModuleOp)]
