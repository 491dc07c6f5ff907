"""C's mathematical library in this process: both CPU executors call its functions."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache

from timetile.passes.analysis.cells.library import PREFIX, library_names

INSTRUCTIONS = tuple(
    name + suffix
    for name in ("fma", "floor", "ceil", "trunc", "round", "rint")
    for suffix in ("", "f")
)
"""Functions called by LLVM under these names if the processor has no instruction."""


@cache
def libraries() -> list[ctypes.CDLL]:
    """The places of the functions: this process, or a library of their own."""
    found = ctypes.util.find_library("m")
    return [ctypes.CDLL(None), *([ctypes.CDLL(found)] if found else [])]


def address_of(name: str) -> int:
    """The address of a function of the library."""
    for library in libraries():
        if hasattr(library, name):
            # A function of ctypes holds the function's address.
            return ctypes.c_size_t.from_buffer(getattr(library, name)).value
    raise RuntimeError(f"the C library has no function {name}; use a libm of C99 or newer")


@cache
def bound_symbols() -> dict[str, int]:
    """The names of library functions in compiled code, and their addresses."""
    ours = {PREFIX + name: address_of(name) for name in library_names()}
    return ours | {name: address_of(name) for name in INSTRUCTIONS}
