"""Arrays of a state (NumPy, CuPy, JAX, PyTorch and the like): checks and copies."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16

from timetile.frontend.field_types import ARRAY_DTYPES
from timetile.passes.targets.hardware import VECTOR_BYTES
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.host.arrays import is_contiguous, is_masked, is_numpy_array, is_on_device
from timetile.runtime.machine.side_by_side import copy_in_rows


def check_array(name: str, array: object) -> None:
    """Raise TypeError unless `array` is an array of numbers accepted by programs."""
    if is_masked(array):
        raise TypeError(
            f"{name} is masked, and the mask would be ignored; pass a plain array, as a.filled(0)"
        )
    known = is_numpy_array(array) or is_on_device(array) or hasattr(array, "__dlpack__")
    if not known:
        kind = type(array).__name__
        article = "an" if kind[0] in "AEIOUaeiou" else "a"
        raise TypeError(
            f"{name} is {article} {kind}; pass an array of NumPy, CuPy, JAX or PyTorch, as "
            "np.asarray(a)"
        )
    if type_of(array).startswith("complex"):
        raise TypeError(
            f"{name} has complex elements, and a timetile.Field is of real numbers; declare {name} "
            "as timetile.Complex"
        )
    if type_of(array) not in ARRAY_DTYPES:
        raise TypeError(
            f"{name} has elements of {type_of(array)}, and fields are of "
            f"{', '.join(ARRAY_DTYPES)}; pass a.astype(np.float64)"
        )


def type_of(array: Any) -> str:
    """The name of the type of an array's elements: `float64`."""
    return str(array.dtype).removeprefix("torch.")


def shape_of(array: Any) -> tuple[int, ...]:
    """The sizes of an array."""
    return tuple(int(size) for size in array.shape)


def copy_of(array: Any) -> Any:
    """
    A copy in C order, of the same library and on the same device; of an immutable array an array of
    NumPy.
    """
    if is_numpy_array(array):
        return copy_in_rows(array)
    if is_immutable(array):
        return np.array(array, order="C", copy=True)
    if hasattr(array, "detach"):
        return array.detach().clone().contiguous()
    return array.copy()


def is_immutable(array: Any) -> bool:
    """Whether no program can write the arrays of a library, as those of JAX."""
    if is_numpy_array(array) or not hasattr(array, "__array_namespace__"):
        return False
    if is_on_device(array):
        interface = getattr(array, "__cuda_array_interface__", None)
        return interface is None or bool(interface["data"][1])
    return not on_host(array).flags.writeable


def as_given(array: Any, given: Any) -> Any:
    """An array, or a copy of the library and on the device of an immutable array given for it."""
    if not is_numpy_array(array) or not is_immutable(given):
        return array
    return given.__array_namespace__().asarray(array, device=given.device, copy=True)


def readable(array: Any, taken: Sequence[Any]) -> Any:
    """
    The array itself for reading only, or a copy if a program cannot use the array directly, or
    already has the array.
    """
    if any(array is other for other in taken) or not is_taken_as_it_is(array):
        return copy_of(array)
    return array


def is_taken_as_it_is(array: Any) -> bool:
    """
    Whether a program can use the array without a copy: C order, writable, aligned for vectors.
    """
    if not is_on_device(array):
        flags = on_host(array).flags
        return bool(flags.c_contiguous and flags.writeable)
    if not hasattr(array, "__cuda_array_interface__"):
        return False
    interface = array.__cuda_array_interface__
    strides, (pointer, read_only) = interface.get("strides"), interface["data"]
    in_order = strides is None or is_contiguous(
        shape_of(array), tuple(strides), np.dtype(interface["typestr"]).itemsize
    )
    return in_order and not read_only and pointer % VECTOR_BYTES == 0


def seen_by_program(array: Any) -> Any:
    """The array as given to a program: tensors in host memory as NumPy views."""
    if is_numpy_array(array) or is_on_device(array):
        return array
    return on_host(array)


def on_host(array: Any) -> np.ndarray[Any, Any]:
    """An array in host memory as a view of NumPy."""
    if not hasattr(array, "detach"):
        return np.asarray(array)
    tensor = array.detach()
    if type_of(tensor) != "bfloat16":
        return np.asarray(tensor)
    # PyTorch shows NumPy no bfloat16, and NumPy has none of its own.
    words = np.asarray(tensor.view(importlib.import_module("torch").int16))
    return words.view(dtype_of(bf16))


def in_memory(array: Any) -> Any:
    """A copy of an array, in NumPy."""
    if is_numpy_array(array):
        return copy_of(array)
    if hasattr(array, "cpu"):
        return on_host(array.cpu()).copy()
    return np.array(array.get() if hasattr(array, "get") else array)


def in_memory_of(array: Any, numbers: np.ndarray[Any, Any]) -> Any:
    """Numbers in the memory of an array of a state."""
    if is_numpy_array(array) or is_immutable(array) or not is_on_device(array):
        return numbers
    if hasattr(array, "new_tensor"):
        return array.new_tensor(numbers)
    return array.__array_namespace__().asarray(numbers)
