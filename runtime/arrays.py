"""The arrays that a caller hands in: what they are, where they are, and whether they fit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute

from timetile.passes.analysis.plane_geometry import VECTOR_BYTES
from timetile.runtime.arithmetic import DTYPES, dtype_of
from timetile.runtime.cuda import cuda_module


@dataclass(frozen=True)
class DeviceArray:
    """An array in device memory, and the caller's object that keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int | None
    owner: Any
    stream: int | None = None
    """The stream on which it is being made, where the caller said so."""

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize


def is_numpy_array(value: object) -> TypeGuard[NDArray[Any]]:
    """The value is a NumPy array: a field in host memory."""
    return isinstance(value, np.ndarray)


def check_shape(
    position: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    bounds: StencilBoundsAttr,
    element: Attribute,
) -> None:
    """Raise ValueError or TypeError unless an array is as large as its field and of its type."""
    expected = tuple(high - low for low, high in zip(bounds.lb, bounds.ub))
    if tuple(shape) != expected:
        spans = " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lb, bounds.ub))
        raise ValueError(
            f"argument {position} has shape {tuple(shape)}, and its field {spans}, halos included, "
            f"has shape {expected}; pass an array of that shape"
        )
    if dtype != dtype_of(element):
        raise TypeError(
            f"argument {position} has elements of {dtype}, and its field of {dtype_of(element)}; "
            f"pass it as {dtype_of(element)}"
        )


def checked_scalar(position: int, value: Any, kind: Attribute) -> Any:
    """
    A scalar argument, of the program's type; TypeError where it is no number or no integer, ValueError where it is
    not between those that the type has.
    """
    if kind not in DTYPES:
        raise TypeError(
            f"argument {position} is of type {kind}, which is neither a number nor a field of static bounds; remove it "
            "from the function, or cast it to such a field"
        )
    number, dtype = np.asarray(value), dtype_of(kind)
    if number.ndim:
        raise TypeError(
            f"argument {position} is a scalar, and got an array of shape {number.shape}; "
            "pass a number"
        )
    if dtype.kind == "i" and number.dtype.kind not in "biu":
        raise TypeError(f"argument {position} is an integer, and got {value!r}; pass an int")
    if number.dtype.kind not in "biuf":
        raise TypeError(f"argument {position} is a number, and got {value!r}; pass a float")
    if dtype.kind == "i":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if not least <= int(value) <= most:
            raise ValueError(
                f"argument {position} is of type {kind}, and {value} is not between {least} and {most}"
            )
    return number.astype(dtype)[()]


def check_numpy(position: int, array: np.ndarray[Any, Any]) -> None:
    """Raise ValueError unless a NumPy array can be updated in place."""
    if not array.flags.c_contiguous:
        raise ValueError(f"argument {position} is not C-contiguous; pass np.ascontiguousarray(a)")
    if not array.flags.writeable:
        raise ValueError(f"argument {position} is read-only; pass a copy")


def check_alignment(position: int, array: DeviceArray) -> None:
    """Raise ValueError unless an array begins where vectors may: kernels read rows 16 bytes at a time."""
    if array.pointer % VECTOR_BYTES:
        raise ValueError(
            f"argument {position} begins at an address that is no multiple of {VECTOR_BYTES} bytes; pass a copy"
        )


def from_cuda_array_interface(position: int, array: Any) -> DeviceArray:
    """An array with `__cuda_array_interface__`; ValueError where it is strided, masked or read-only."""
    interface = array.__cuda_array_interface__
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    pointer, read_only = interface["data"]
    if interface.get("mask") is not None:
        raise ValueError(f"argument {position} is masked; pass a plain array")
    if read_only:
        raise ValueError(f"argument {position} is read-only; pass a copy")
    strides = interface.get("strides")
    if strides is not None and tuple(strides) != contiguous_strides(shape, dtype):
        raise ValueError(f"argument {position} is not C-contiguous; pass a contiguous copy")
    device = getattr(array, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    return DeviceArray(int(pointer), shape, dtype, number, array, interface.get("stream"))


CUDA_DEVICE = 2
"""DLPack's number for memory of an NVIDIA GPU."""


def is_on_device(array: Any) -> bool:
    """The array says, by either protocol, that it lives on an NVIDIA GPU."""
    if hasattr(array, "__cuda_array_interface__"):
        return True
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == CUDA_DEVICE


def from_device(position: int, array: Any, stream: int) -> DeviceArray:
    """An array on the device, by `__cuda_array_interface__` where it has it, else by DLPack."""
    if hasattr(array, "__cuda_array_interface__"):
        return from_cuda_array_interface(position, array)
    return from_dlpack(position, array, stream)


def from_dlpack(position: int, array: Any, stream: int) -> DeviceArray:
    """
    An array that DLPack exports, ordered before the work of a stream; ValueError where it is strided
    or read-only.
    """
    view = cuda_module("core.utils").StridedMemoryView.from_dlpack(array, stream_ptr=stream or 1)
    shape, dtype = tuple(view.shape), np.dtype(view.dtype)
    if view.readonly:
        raise ValueError(f"argument {position} is read-only; pass a copy")
    if view.strides is not None:
        strides = tuple(step * dtype.itemsize for step in view.strides)
        if strides != contiguous_strides(shape, dtype):
            raise ValueError(f"argument {position} is not C-contiguous; pass a contiguous copy")
    # The view keeps the exported memory alive.
    return DeviceArray(int(view.ptr), shape, dtype, int(view.device_id), (array, view))


def contiguous_strides(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The byte strides of a C-contiguous array."""
    strides: list[int] = []
    step = dtype.itemsize
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def spans_overlap(spans: list[tuple[int, int, int]]) -> tuple[int, int] | None:
    """The positions of two arguments whose memory overlaps; spans are (start, end, position)."""
    ordered = sorted(spans)
    for (_, end, first), (start, _, second) in pairwise(ordered):
        if start < end:
            return min(first, second), max(first, second)
    return None


def check_aliasing(spans: list[tuple[int, int, int]]) -> None:
    """Raise ValueError where two arguments share memory."""
    pair = spans_overlap(spans)
    if pair is not None:
        raise ValueError(
            f"arguments {pair[0]} and {pair[1]} share memory; every field needs its own"
        )
