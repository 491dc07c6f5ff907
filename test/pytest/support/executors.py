"""The available executors."""

from __future__ import annotations

from support.sizes import is_nightly
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor


def executors() -> tuple[Executor, ...]:
    """Executors of time loops on a CPU, and executors of kernels."""
    return ("cpu", "numpy", *kernel_executors())


def thread_executors() -> tuple[Executor, ...]:
    """The interpreters of the code of threads; in `make nightly`, of planes as well."""
    return ("simt", "ptx", "planes") if is_nightly() else ("simt", "ptx")


def kernel_executors() -> tuple[Executor, ...]:
    """Executors of kernels: two interpreters, and the GPU if a driver answers."""
    interpreters: tuple[Executor, ...] = ("planes", "simt")
    return (*interpreters, "gpu") if gpu_is_available() else interpreters
