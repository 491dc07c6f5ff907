"""Checks of a call's arguments, before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.host.arrays import (
    DeviceArray,
    check_alignment,
    check_numpy,
    check_shape,
    checked_scalar,
    from_device,
    is_numpy_array,
    is_on_device,
    shared_pairs,
)
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.machine.whole_numbers import whole_number


def checked_argument(parameter: Parameter, value: Any, stream: int = 0) -> Any:
    """
    An argument in the form for executors. Raises TypeError or ValueError for a wrong argument.
    """
    label = parameter.label
    if not parameter.is_read and (value is None or parameter.bounds is None):
        return None
    if parameter.is_series:
        return checked_numbers(label, value, parameter.kind)
    if parameter.bounds is None:
        if parameter.is_steps and isinstance(value, bool | np.bool_):
            raise TypeError(f"argument {label} is the number of steps, an int, got {value!r}")
        number = checked_scalar(label, value, parameter.kind)
        if parameter.is_steps and number < 0:
            raise ValueError(
                f"argument {label} is the number of steps, which is not negative, got {number}"
            )
        return number
    if is_on_device(value):
        array = from_device(label, value, stream)
        check_alignment(label, array)
        check_shape(label, array.shape, array.dtype, parameter.bounds, parameter.kind)
        return replace(array, dtype=dtype_of(parameter.kind))
    if not is_numpy_array(value):
        raise TypeError(
            f"argument {label} is a {type(value).__name__}; pass a NumPy array or a device array"
        )
    check_numpy(label, value)
    check_shape(label, value.shape, value.dtype, parameter.bounds, parameter.kind)
    kind = dtype_of(parameter.kind)
    return value if value.dtype == kind else value.view(kind)


def checked_numbers(label: str, value: Any, kind: Attribute) -> np.ndarray[Any, Any]:
    """
    A series, with a number for each step. Raises TypeError for no NumPy array of the program's
    type, ValueError for several axes.
    """
    if not is_numpy_array(value):
        raise TypeError(
            f"argument {label} is a {type(value).__name__}, with a number for each step; pass a "
            "NumPy array"
        )
    if value.ndim != 1:
        raise ValueError(
            f"argument {label} has a number for each step, and its shape is {value.shape}; pass an "
            "array of one axis"
        )
    if value.dtype != dtype_of(kind):
        raise TypeError(
            f"argument {label} has elements of {value.dtype}, and its numbers are of "
            f"{dtype_of(kind)}; pass it as {dtype_of(kind)}"
        )
    # A run takes the numbers of the call, whatever becomes of the array meanwhile.
    return value.copy()


def check_memory(
    parameters: Sequence[Parameter], values: Sequence[Any], constant: Collection[int]
) -> None:
    """
    Raise TypeError for fields on different sides, host and device, and ValueError for two fields
    that share memory, unless the program writes neither: `constant` are the positions of fields
    that are only read.
    """
    spans: list[tuple[int, int, int]] = []
    kinds: set[type] = set()
    for position, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        if parameter.is_series:
            continue
        if is_numpy_array(value):
            start = value.__array_interface__["data"][0]
            spans.append((start, start + value.nbytes, position))
            kinds.add(np.ndarray)
        elif isinstance(value, DeviceArray):
            spans.append((value.pointer, value.pointer + value.bytes, position))
            kinds.add(DeviceArray)
    if len(kinds) > 1:
        raise TypeError(
            "some fields are NumPy arrays and some are on the device; pass all of one kind"
        )
    for first, second in shared_pairs(spans):
        if first not in constant or second not in constant:
            raise ValueError(
                f"arguments {parameters[first].label} and {parameters[second].label} share memory; "
                "give every field separate memory"
            )


def stream_handle(stream: Any) -> int:
    """
    The handle of a stream: an integer, or an object with `__cuda_stream__`; 0 for the default.
    Raises TypeError for other objects, truth values too.
    """
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    handle = whole_number(stream)
    if handle is None:
        raise TypeError(f"a stream is a handle or an object with __cuda_stream__, got {stream!r}")
    return handle
