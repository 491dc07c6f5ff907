"""The target of a compilation: the named target, or the target of the GPU."""

from __future__ import annotations

from typing import NamedTuple

from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.isa import ISAS, version_of
from timetile.passes.targets.parts import PARTS, default_part, part_for
from timetile.passes.targets.target import DEFAULT_ARCH, target_named
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.machine.driver import checked


class ChosenTarget(NamedTuple):
    """The parts of a target given to a compilation."""

    arch: str
    """The instruction set."""
    part: str | None = None
    """The part, unless the default part of the instruction set."""
    multiprocessors: int | None = None
    """Multiprocessors of the GPU, unless equal to the part's number."""


def arch_for(gpu: str) -> str:
    """
    The newest known architecture not newer than a GPU's: its kernels run on the GPU. Raises
    CompileError if there is none.
    """
    fitting = [name for name in ISAS if version_of(name) <= version_of(gpu)]
    if not fitting:
        oldest = min(ISAS, key=version_of)
        raise CompileError(
            f"the GPU is of architecture {gpu}, and kernels need {oldest} or newer; run on the CPU "
            "with executor cpu"
        )
    return max(fitting, key=version_of)


def memory_tb_per_s(there: Device) -> float | None:
    """
    Bandwidth of a GPU's memory by clock and bus, in 10^12 bytes a second; None if the driver knows
    neither.
    """
    kilohertz, bits = (
        there.attribute(name) for name in ("MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH")
    )
    # Each cycle makes two transfers, each as wide as the bus.
    return 2 * kilohertz * 1e3 * bits / 8 / 1e12 or None


def device_text(gpu: int) -> str:
    """A GPU and its driver, as a part of the key of what was measured there."""
    there = device(gpu)
    version = checked(there.cuda.cuDriverGetVersion())
    count = there.attribute("MULTIPROCESSOR_COUNT")
    cuda = f"CUDA {version // 1000}.{version % 100 // 10}"
    return f"{there.name}, {count} multiprocessors, driver of {cuda}"


def without_usual(isa: str, part: str, multiprocessors: int | None) -> ChosenTarget:
    """A target without the usual parts of its instruction set."""
    usual = multiprocessors in (None, PARTS[part].multiprocessors)
    named = None if part == default_part(isa).name else part
    return ChosenTarget(isa, named, None if usual else multiprocessors)


def target_without_gpu(name: str | None) -> ChosenTarget:
    """The named target, or the default target."""
    target = target_named(name or DEFAULT_ARCH)
    return without_usual(target.isa.name, target.part.name, None)


def target_of_gpu(name: str | None, gpu: int) -> ChosenTarget:
    """
    The target for a GPU by number: of the named instruction set or part, or the GPU's own. Raises
    CompileError if kernels would not run on the GPU.
    """
    there = device(gpu)
    newest = arch_for(there.arch)
    chosen = newest if name is None else target_named(name).isa.name
    if version_of(chosen) > version_of(newest):
        raise CompileError(
            f"kernels for {chosen} do not run on GPU {gpu}, which is of architecture "
            f"{there.arch}; leave out arch, or give {newest}"
        )
    own = part_for(chosen, there.name, memory_tb_per_s(there))
    part = PARTS.get(name or "", own)
    return without_usual(chosen, part.name, there.attribute("MULTIPROCESSOR_COUNT"))
