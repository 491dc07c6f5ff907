"""The arrays of a state, of NumPy, CuPy, PyTorch and their like: what they are, and copies of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timetile.runtime.arrays import is_numpy_array, is_on_device

TYPES = ("float32", "float64")


def check_array(name: str, array: object) -> None:
    """TypeError unless something is an array of f32 or f64 numbers that a program can take."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is masked, and its mask would be ignored; pass a plain array, as a.filled(0)"
        )
    known = is_numpy_array(array) or is_on_device(array) or hasattr(array, "__dlpack__")
    if not known:
        raise TypeError(
            f"{name} is a {type(array).__name__}; pass an array of NumPy, CuPy or PyTorch, as np.asarray(a)"
        )
    if type_of(array) not in TYPES:
        raise TypeError(
            f"{name} has elements of {type_of(array)}, and fields are of float32 or float64; pass "
            "a.astype(np.float64)"
        )


def type_of(array: Any) -> str:
    """The name of the type of an array's elements: `float64`."""
    return str(array.dtype).removeprefix("torch.")


def shape_of(array: Any) -> tuple[int, ...]:
    """The sizes of an array."""
    return tuple(int(size) for size in array.shape)


def copy_of(array: Any) -> Any:
    """A copy in C order, of the same library and on the same device."""
    if is_numpy_array(array):
        return np.array(array, order="C", copy=True)
    if hasattr(array, "clone"):
        return array.detach().clone().contiguous()
    return array.copy()


def readable(array: Any, taken: Sequence[Any]) -> Any:
    """An array that is only read, or a copy where a program cannot take it as it is, or has taken it already."""
    if any(array is other for other in taken):
        return copy_of(array)
    if not is_numpy_array(array):
        return array
    return array if array.flags.c_contiguous and array.flags.writeable else copy_of(array)


def seen_by_program(array: Any) -> Any:
    """The array as a program takes it: tensors in host memory as NumPy's view of them."""
    if is_numpy_array(array) or is_on_device(array):
        return array
    return np.asarray(array)
