"""Assembles PTX to machine code with nvJitLink, without a GPU or a driver."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError
from typing import Any

from timetile.passes.diagnostics import LOGGER
from timetile.runtime.cache.keys import installed_version
from timetile.runtime.machine.cuda import cuda_module

WHEELS = ("nvidia-nvjitlink", "nvidia-nvjitlink-cu13", "nvidia-nvjitlink-cu12")
"""The packages of nvJitLink: cuda-bindings loads the library of an installed one."""


class AssemblerError(Exception):
    """The assembler refused the PTX. The message has the assembler's log."""


@dataclass(frozen=True)
class Assembled:
    """Machine code of a kernel, with registers and spilled bytes by the assembler."""

    cubin: bytes
    registers: int
    spill_bytes: int


@cache
def assembler_version() -> str | None:
    """nvJitLink's version; None if not installed."""
    try:
        major, minor = cuda_module("bindings.nvjitlink").version()
    except (ImportError, RuntimeError, SystemError, FileNotFoundError):
        return None
    return f"{major}.{minor}"


@cache
def assembler_key() -> str | None:
    """
    What names the assembler in keys of the cache: the version of its wheel, found without loading
    the library, or the library's own; None if not installed.
    """
    for wheel in WHEELS:
        with suppress(PackageNotFoundError):
            bindings = installed_version("cuda-bindings")
            return f"{wheel} {installed_version(wheel)} by cuda-bindings {bindings}"
    return assembler_version()


@cache
def assembles(arch: str) -> bool:
    """
    Whether an assembler knows an architecture: an installed nvJitLink may be older than the GPU.
    The user is told once; the driver then assembles PTX.
    """
    found = assembler_version()
    if found is None:
        return False
    link = cuda_module("bindings.nvjitlink")
    try:
        link.destroy(link.create(1, [f"-arch={arch}"]))
    except link.nvJitLinkError as error:
        LOGGER.warning(
            "nvJitLink %s assembles nothing for %s (%s), and the driver assembles kernels at their "
            "first launch; install a newer nvidia-nvjitlink",
            found, arch, error,
        )  # fmt: skip
        return False
    return True


FEW_REGISTERS = "-Xptxas=--register-usage-level=0"
"""The assembler's option for no optimisation that costs registers."""


def assemble(ptx: str, arch: str, name: str = "kernel", *, spares: bool = False) -> Assembled:
    """
    Assemble one kernel for an architecture (`sm_90`); with `spares` without optimisations that cost
    registers. Raises AssemblerError on failure.
    """
    link = cuda_module("bindings.nvjitlink")
    options = [f"-arch={arch}", "-O3", "-verbose", "-Xptxas=-v", "-no-cache"]
    if spares:
        options.append(FEW_REGISTERS)
    handle = link.create(len(options), options)
    try:
        data = ptx.encode()
        try:
            link.add_data(handle, link.InputType.PTX, data, len(data), name)
            link.complete(handle)
        except link.nvJitLinkError as error:
            raise AssemblerError(f"{error}: {log(link, handle, 'error')}") from error
        cubin = bytearray(link.get_linked_cubin_size(handle))
        link.get_linked_cubin(handle, cubin)
        info = log(link, handle, "info")
    finally:
        link.destroy(handle)
    return Assembled(bytes(cubin), *figures(info))


def figures(info: str) -> tuple[int, int]:
    """
    The registers and spilled bytes of the kernel in the assembler's log. Lines about called
    functions may stand before.
    """
    own = info.partition("Compiling entry function")[2]
    registers = re.search(r"Used (\d+) registers", own)
    spills = re.search(r"(\d+) bytes spill stores", own)
    return (
        int(registers.group(1)) if registers else 0,
        int(spills.group(1)) if spills else 0,
    )


def log(link: Any, handle: Any, kind: str) -> str:
    """The assembler's information or error log."""
    size = getattr(link, f"get_{kind}_log_size")(handle)
    text = bytearray(size)
    getattr(link, f"get_{kind}_log")(handle, text)
    return text.decode(errors="replace").rstrip("\x00")
