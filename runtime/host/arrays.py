"""Arrays of a caller: kind, place and fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import bf16
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute

from timetile.dialects.boxes import sizes_of
from timetile.passes.targets.hardware import VECTOR_BYTES
from timetile.runtime.arithmetic.cells import DTYPES, dtype_of
from timetile.runtime.machine.cuda import cuda_module

Argument = int | str
"""The name of an argument in messages: by position, or by position and name, as `0 (%u)`."""


@dataclass(frozen=True)
class DeviceArray:
    """An array in device memory, with the caller's object behind the memory."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int | None
    owner: Any
    stream: int | None = None
    """The stream computing the array, if the caller named a stream."""

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


def is_numpy_array(value: object) -> TypeGuard[NDArray[Any]]:
    """The value is a NumPy array: a field in host memory."""
    return isinstance(value, np.ndarray)


def check_shape(
    argument: Argument,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    bounds: StencilBoundsAttr,
    element: Attribute,
) -> None:
    """
    Raise ValueError or TypeError unless an array has its field's shape and type. A field of
    integers takes integers without a sign, too, and truth values: programs name operations, not
    types, with or without a sign.
    """
    expected = sizes_of(bounds)
    if tuple(shape) != expected:
        spans = " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lb, bounds.ub))
        raise ValueError(
            f"argument {argument} has shape {tuple(shape)}, and its field {spans}, halos "
            f"included, has shape {expected}; pass an array of the field's shape"
        )
    if not has_bits_of(dtype, dtype_of(element)):
        raise TypeError(
            f"argument {argument} has elements of {dtype}, and its field of {dtype_of(element)}; "
            f"pass it as {dtype_of(element)}"
        )


def has_bits_of(dtype: np.dtype[Any], field: np.dtype[Any]) -> bool:
    """Whether a field's memory may hold the elements of an array."""
    as_bits = field.kind == "i" and dtype.kind in "ub" and dtype.itemsize == field.itemsize
    return dtype == field or as_bits


def checked_scalar(argument: Argument, value: Any, kind: Attribute) -> Any:
    """
    A scalar argument of the program's type. Raises TypeError for no number or no integer,
    ValueError for a number outside the type's range.
    """
    if kind not in DTYPES:
        raise TypeError(
            f"argument {argument} is of type {kind}, neither a number nor a field of static "
            "bounds; remove the argument from the function, or cast the argument to a field of "
            "static bounds"
        )
    if is_masked(value) or is_on_device(value):
        where = "masked" if is_masked(value) else "in GPU memory"
        raise TypeError(
            f"argument {argument} is a scalar, and got a number that is {where}; pass a number"
        )
    number, dtype = np.asarray(value), dtype_of(kind)
    if number.ndim:
        raise TypeError(
            f"argument {argument} is a scalar, and got an array of shape {number.shape}; "
            "pass a number"
        )
    # NumPy's integers have at most 64 bits; Python's integers are unbounded.
    whole = isinstance(value, int) or number.dtype.kind in "biu"
    if dtype.kind == "i" and not whole:
        raise TypeError(f"argument {argument} is an integer, and got {value!r}; pass an int")
    if dtype.kind == "b" and not whole:
        raise TypeError(f"argument {argument} is of type {kind}, and got {value!r}; pass a bool")
    if not whole and number.dtype.kind != "f":
        raise TypeError(f"argument {argument} is a number, and got {value!r}; pass a float")
    result = converted(number if number.dtype.kind != "O" else int(value), dtype)
    if result is None:
        least, most = limits(dtype)
        raise ValueError(
            f"argument {argument} is of type {kind}, and {value} is not between {least} and {most}"
        )
    return result


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest number of a type."""
    if dtype.kind == "b":
        return 0, 1
    facts = np.iinfo(dtype) if dtype.kind == "i" else np.finfo(dtype)
    return facts.min, facts.max


def converted(number: NDArray[Any] | int, dtype: np.dtype[Any]) -> Any:
    """A number in another type, rounded; None if outside the type's range."""
    if dtype.kind in "ib":
        least, most = limits(dtype)
        return dtype.type(int(number)) if least <= int(number) <= most else None
    try:
        given = np.asarray(float(number) if isinstance(number, int) else number)
    except OverflowError:
        return None
    with np.errstate(over="ignore"):
        result = given.astype(dtype)
    # An infinity or a NaN keeps its value.
    return None if np.isinf(result) and np.isfinite(given) else result[()]


def is_masked(value: object) -> bool:
    """Whether a value is a masked array. NumPy imports masked arrays at first use, for long."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def check_numpy(argument: Argument, array: np.ndarray[Any, Any]) -> None:
    """Raise ValueError or TypeError unless a NumPy array can be updated in place."""
    if is_masked(array):
        raise TypeError(
            f"argument {argument} is masked, and the mask would be ignored; pass a plain array, "
            "as a.filled(0)"
        )
    if not array.flags.c_contiguous:
        raise ValueError(f"argument {argument} is not C-contiguous; pass np.ascontiguousarray(a)")
    if not array.flags.writeable:
        raise ValueError(f"argument {argument} is read-only; pass a copy")


def check_alignment(argument: Argument, array: DeviceArray) -> None:
    """
    Raise ValueError unless an array begins where vectors may: kernels read rows 16 bytes at a time.
    """
    if array.pointer % VECTOR_BYTES:
        raise ValueError(
            f"argument {argument} begins at an address other than a multiple of {VECTOR_BYTES} "
            "bytes; pass a copy"
        )


def from_cuda_array_interface(argument: Argument, array: Any) -> DeviceArray:
    """
    An array from `__cuda_array_interface__`. Raises ValueError for a strided, masked or read-only
    array.
    """
    interface = array.__cuda_array_interface__
    shape, dtype = tuple(interface["shape"]), interface_dtype(array)
    pointer, read_only = interface["data"]
    if interface.get("mask") is not None:
        raise ValueError(f"argument {argument} is masked; pass a plain array")
    if read_only:
        raise ValueError(f"argument {argument} is read-only; pass a copy")
    strides = interface.get("strides")
    if strides is not None and not is_contiguous(shape, tuple(strides), dtype.itemsize):
        raise ValueError(f"argument {argument} is not C-contiguous; pass a contiguous copy")
    device = getattr(array, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    # A list has a method named `index`, and no device.
    known = number if isinstance(number, int) else None
    return DeviceArray(int(pointer), shape, dtype, known, array, interface.get("stream"))


def interface_dtype(array: Any) -> np.dtype[Any]:
    """
    The type of the elements by `__cuda_array_interface__`, where bfloat16 is two bytes of no type.
    """
    if str(getattr(array, "dtype", "")).endswith("bfloat16"):
        return dtype_of(bf16)
    return np.dtype(array.__cuda_array_interface__["typestr"])


class ArrayHome(Protocol):
    """A GPU, as far as arrays on the GPU are concerned."""

    number: int

    def number_of(self, pointer: int) -> int | None:
        """The number of the GPU with this address in its memory; None if no GPU has."""
        ...


def check_home(argument: Argument, array: DeviceArray, home: ArrayHome) -> None:
    """
    Raise ValueError unless an array lies on the program's GPU. The driver is asked if the array
    does not say.
    """
    there = array.device if array.device is not None else home.number_of(array.pointer)
    if there is None:
        raise ValueError(
            f"argument {argument} begins at an address outside the memory of a GPU; pass a device "
            "array"
        )
    if there != home.number:
        raise ValueError(
            f"argument {argument} is on GPU {there}, and the program runs on GPU {home.number}; "
            f"copy the array there, or compile with gpu={there}"
        )


CUDA_DEVICE = 2
"""DLPack's number for memory of an NVIDIA GPU."""


def is_on_device(array: Any) -> bool:
    """Whether the array lives on an NVIDIA GPU, by either protocol."""
    if hasattr(array, "__cuda_array_interface__"):
        return True
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == CUDA_DEVICE


def from_device(argument: Argument, array: Any, stream: int) -> DeviceArray:
    """An array on the device, by `__cuda_array_interface__` if present, otherwise by DLPack."""
    if hasattr(array, "__cuda_array_interface__"):
        return from_cuda_array_interface(argument, array)
    return from_dlpack(argument, array, stream)


def from_dlpack(argument: Argument, array: Any, stream: int) -> DeviceArray:
    """
    An array exported by DLPack, ordered before the work of a stream. Raises ValueError for a
    strided or read-only array.
    """
    view = cuda_module("core.utils").StridedMemoryView.from_dlpack(array, stream_ptr=stream or 1)
    shape, dtype = tuple(view.shape), np.dtype(view.dtype)
    if view.readonly:
        raise ValueError(f"argument {argument} is read-only; pass a copy")
    if view.strides is not None and not is_contiguous(shape, tuple(view.strides), 1):
        raise ValueError(f"argument {argument} is not C-contiguous; pass a contiguous copy")
    # The view keeps the exported memory alive.
    return DeviceArray(int(view.ptr), shape, dtype, int(view.device_id), (array, view))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> bool:
    """
    An array is C-contiguous, whose neighbours along the last axis are `step` apart. Along an axis
    of one cell nobody steps, and an array without cells has no neighbours: any stride will do.
    """
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def shared_pairs(spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """
    The positions of every two arguments with overlapping memory. Spans are (start, end, position).
    """
    ordered = sorted(spans)
    for k, (_, end, first) in enumerate(ordered):
        for start, _, second in ordered[k + 1 :]:
            if start >= end:
                break
            yield min(first, second), max(first, second)
