"""The available executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import timetile
from support.sizes import is_nightly
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


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


def compiled_on(
    executors: Iterable[Executor], program: ModuleOp | str | Path, **options: Any
) -> Iterator[CompiledProgram]:
    """
    A program on each executor in turn, compiled once for all executors but the GPU, which has an
    architecture of its own.
    """
    shared: CompiledProgram | None = None
    for executor in executors:
        if executor == "gpu":
            yield timetile.compile(program, executor=executor, **options)
            continue
        shared = shared or timetile.compile(program, executor=executor, **options)
        shared.executor = executor
        yield shared
