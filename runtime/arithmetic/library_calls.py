"""
Functions of C's mathematical library on NumPy arrays: the functions of compiled code, and so with
equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation

from timetile.lowering.cpu.elementwise import ELEMENTWISE, argument_kinds, library_module
from timetile.passes.analysis.cells.library import library_name
from timetile.runtime.machine.llvm import Code, object_code


@cache
def code_of(name: str, operands: int, kind: np.dtype[Any]) -> Code:
    """Machine code of a loop over arrays, with a call of a library function."""
    element = f32 if kind == np.float32 else f64
    return Code(object_code(library_module(name, operands, element)))


def call_library(op: Operation, operands: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The library function of an operation, applied to each element."""
    return call_named(library_name(op), operands)


def call_named(name: str, operands: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """A function of the library, element by element."""
    arrays = [np.ascontiguousarray(array) for array in np.broadcast_arrays(*operands)]
    result = np.empty_like(arrays[0])
    code = code_of(name, len(arrays), result.dtype)
    function = code.function(ELEMENTWISE, argument_kinds(len(arrays)))
    function(*(array.ctypes.data for array in (*arrays, result)), result.size)
    return result.reshape(np.broadcast_shapes(*map(np.shape, operands)))
