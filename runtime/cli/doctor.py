"""`timetile doctor`: presence of driver, GPU, assembler and cache, or reasons for absence."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import timetile
from timetile.lowering.ptx.functions import nvrtc_version
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.isa import ISAS
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.store import Cache
from timetile.runtime.device import card_facts
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.machine.driver import Unavailable, checked, driver
from timetile.runtime.machine.teams import thread_count
from timetile.runtime.program.targets import arch_for, device_text, target_of_gpu

PACKAGES = ("xdsl", "numpy", "cuda-bindings", "cuda-core", "matplotlib", "devito")

WANTED_BY = {
    "cuda-bindings": ("programs run on the CPU", "cuda-python"),
    "cuda-core": ("programs run on the CPU", "cuda-core"),
    "matplotlib": ("timetile run --plot draws nothing", "timetile[plot]"),
    "devito": ("timetile.devito runs no operators", "timetile[devito]"),
}
"""The loss without a package, and the package's name for pip."""


@dataclass(frozen=True)
class Finding:
    """One item of the examination: its name, whether present, and details or a reason."""

    what: str
    found: bool
    text: str


def package(name: str) -> Finding:
    """An installed package, with version."""
    try:
        return Finding(name, True, version(name))
    except PackageNotFoundError:
        without, wanted = WANTED_BY.get(name, ("timetile does not run", name))
        return Finding(name, False, f'not installed, so {without}; pip install "{wanted}"')


def threads() -> Finding:
    """The threads for programs on a machine without a GPU."""
    try:
        return Finding("CPU", True, f"programs run on {thread_count(None)} threads")
    except ValueError as error:
        return Finding("CPU", False, str(error))


def gpu_memory(device: Device) -> int:
    """The bytes of a device's memory."""
    return int(checked(device.cuda.cuDeviceTotalMem(device.handle)))


def part_text(number: int) -> str:
    """The numbers of a GPU behind the choice of schedules."""
    target = target_of_gpu(None, number, Cache.default())
    known = target_named(target.part or target.arch, target.multiprocessors)
    part = known.part
    measured = card_facts.MEASURED.get(device_text(number))
    copy = f"{part.copy_tb_per_s:.3g} TB/s"
    copy += " assumed" if measured is None else f" ({measured:g} measured)"
    return (
        f"{known.title}: {part.multiprocessors} multiprocessors, {part.clock_ghz:g} GHz, "
        f"{part.l2_bytes / 2**20:.0f} MiB of L2, memory of {part.memory_tb_per_s:.3g} TB/s, copies "
        f"of {copy}"
    )


def gpus() -> Iterator[Finding]:
    """The driver, and every GPU known to the driver."""
    cuda = driver()
    if isinstance(cuda, Unavailable):
        yield Finding("driver", False, cuda.reason)
        yield Finding("GPU", False, "without a driver, programs run on the CPU")
        return
    number = int(checked(cuda.cuDriverGetVersion()))
    yield Finding("driver", True, f"for CUDA {number // 1000}.{number % 1000 // 10}")
    count = int(checked(cuda.cuDeviceGetCount()))
    for k in range(count):
        device = Device(k)
        text = f"{device.name}, {device.arch}, {gpu_memory(device) / 2**30:.0f} GiB"
        try:
            made_for = arch_for(device.arch)
        except CompileError as error:
            yield Finding(f"GPU {k}", False, f"{text}; {error}")
            continue
        older = "" if device.arch in ISAS else f"; kernels are made for {made_for}"
        yield Finding(f"GPU {k}", True, text + older)
        yield Finding(f"part {k}", True, part_text(k))
    if count == 0:
        yield Finding("GPU", False, "the driver knows none; programs run on the CPU")


def component(subject: str, title: str, version: str | None, without: str) -> Finding:
    """A part of CUDA from an extra package named like the subject, and what is so without it."""
    if version is None:
        text = f'{title} is not installed, so {without}; pip install "timetile[{subject}]"'
        return Finding(subject, False, text)
    return Finding(subject, True, f"{title} {version}")


def assembler() -> Finding:
    """The assembler, for PTX to machine code ahead of time."""
    without = "the driver assembles PTX at the first launch"
    return component("assembler", "nvJitLink", assembler_version(), without)


def functions() -> Finding:
    """The compiler of CUDA's exp, sin and the like, for kernels with calls of them."""
    without = "there are no kernels with exp, sin and the like"
    return component("functions", "NVRTC", nvrtc_version(), without)


def cache() -> Finding:
    """The disk cache of kernels, tried with an entry written and read."""
    store = Cache.default()
    if (why := store.why_unusable()) is not None:
        text = f"{store.directory} {why}; set TIMETILE_CACHE_DIR to a folder that can be written"
        return Finding("cache", False, text)
    damaged = len(store.damaged())
    size = (
        f"{len(store.keys())} entries, {store.size() / 2**20:.1f} of {store.limit / 2**20:.0f} MiB"
    )
    text = f"{store.directory}, {size}"
    return Finding("cache", not damaged, text + (f", {damaged} of them damaged" if damaged else ""))


def examine() -> list[Finding]:
    """All findings, in the order of display."""
    return [
        Finding("timetile", True, timetile.__version__),
        Finding("python", True, f"{platform.python_version()} on {platform.platform()}"),
        *map(package, PACKAGES),
        threads(),
        *gpus(),
        assembler(),
        functions(),
        cache(),
    ]
