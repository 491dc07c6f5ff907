"""The executors that can run here."""

from __future__ import annotations

from timetile.runtime.gpu import gpu_is_available
from timetile.runtime.program import Executor


def executors() -> tuple[Executor, ...]:
    """The CPU executor, the two that interpret kernels, and the GPU where a driver answers."""
    interpreters: tuple[Executor, ...] = ("cpu", "planes", "simt")
    return (*interpreters, "gpu") if gpu_is_available() else interpreters


def kernel_executors() -> tuple[Executor, ...]:
    """The executors that run kernels rather than the time loop itself."""
    return executors()[1:]
