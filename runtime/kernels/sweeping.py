"""Kernels of sweeps, at the level of threads and as PTX."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.division.expand_division import ExpandDivisionPass
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_kernels import sweep_kernel
from timetile.passes.targets.target import ARCH_ATTRIBUTE, target_named
from timetile.runtime.arithmetic.sweeps import function_of_sweep
from timetile.runtime.machine.floating_point import standard_modes


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


def sweep_text(frame: SweepFrame, arch: str) -> str:
    """The kernel of a sweep as PTX."""
    module = sweep_module(frame, arch)
    ConvertGpuToNvvmPass().apply(Context(), module)
    target = target_named(arch)
    return print_module(kernels_of(module), target.isa.ptx_version, target.name)
