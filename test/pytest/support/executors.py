"""The executors that can run here."""

from __future__ import annotations

from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor


def executors() -> tuple[Executor, ...]:
    """The executors that run time loops on a CPU, and those that run kernels."""
    return ("cpu", "numpy", *kernel_executors())


def kernel_executors() -> tuple[Executor, ...]:
    """
    The executors that run kernels: the two that interpret them, and the GPU where a driver answers.
    """
    interpreters: tuple[Executor, ...] = ("planes", "simt")
    return (*interpreters, "gpu") if gpu_is_available() else interpreters
