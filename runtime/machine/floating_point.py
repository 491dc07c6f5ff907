"""
The standard modes of floating point: rounding to nearest even, and subnormal numbers as numbers.

A library linked with `-ffast-math` makes subnormal numbers zero in each thread that loads it.
Programs are compiled and run in standard modes: results and kernels in the cache never depend on
modes of the caller.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from timetile.runtime.machine.libm import libraries

P = ParamSpec("P")
R = TypeVar("R")

ENVIRONMENT_BYTES = 256
"""More than any C library's `fenv_t` takes."""


@cache
def library_of_modes() -> ctypes.CDLL:
    """The library with the functions of `fenv.h`."""
    for library in libraries():
        if hasattr(library, "fesetenv"):
            return library
    raise RuntimeError("the C library has no function fesetenv; use a libm of C99 or newer")


@cache
def standard_environment() -> ctypes.c_void_p:
    """`FE_DFL_ENV` of `fenv.h`: the address of a variable on macOS, and -1 elsewhere."""
    library = library_of_modes()
    if hasattr(library, "_FE_DFL_ENV"):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
    return ctypes.c_void_p(-1)


@contextmanager
def standard_modes() -> Generator[None]:
    """Compute in standard modes, and return to the modes before."""
    library, found = library_of_modes(), ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    library.fegetenv(found)
    library.fesetenv(standard_environment())
    try:
        yield
    finally:
        library.fesetenv(found)


def in_standard_modes(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function compute in standard modes."""

    @wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        with standard_modes():
            return function(*arguments, **named)

    return run
