"""A program on a GPU with the counting driver, and fields in the memory of the GPU."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import timetile
from support.catalogue import entry
from support.driver import BookKeeper
from support.fake_core import driver_in_place
from support.programs import program_text
from timetile.runtime.cli import doctor
from timetile.runtime.device import gpu
from timetile.runtime.program import compile as compiling

SHAPE = (31, 133)


TEXT = program_text(entry("heat-2d").make((29, 131)))


@dataclass
class GpuArray:
    """A field in GPU memory."""

    pointer: int
    device: Any = None
    shape: tuple[int, ...] = SHAPE

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f8", "data": (self.pointer, False), "version": 3}


@contextmanager
def book_keeper() -> Generator[BookKeeper]:
    """The counting driver in place of the machine's driver."""
    books = BookKeeper()
    with driver_in_place(books) as patch:
        patch.setattr(doctor, "driver", lambda: books)
        patch.setattr(compiling, "gpu_is_available", lambda: True)
        gpu.opened.cache_clear()
        yield books
        gpu.opened.cache_clear()


@contextmanager
def cache_in(folder: Path) -> Generator[None]:
    """A disk cache for a file of tests: kernels are compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIMETILE_CACHE_DIR", str(folder))
        yield


def program(**options: Any) -> timetile.CompiledProgram:
    return timetile.compile(TEXT, executor="gpu", depth=4, **options)


def fields(driver: BookKeeper, first: int = 1, home: int = 0) -> list[GpuArray]:
    pointers = [(first + k) << 16 for k in range(2)]
    driver.homes |= dict.fromkeys(pointers, home)
    return [GpuArray(pointer) for pointer in pointers]


def run_a_lot(compiled: timetile.CompiledProgram, driver: BookKeeper, stream: int = 0) -> None:
    """Runs with scratch buffers, kernels and graphs, by both kinds of kernels."""
    for steps in (7, 300, 7, 7, 300):
        compiled(*fields(driver), steps=steps, stream=stream)
        driver.differ = not driver.differ
