"""
Calls of a model on buffers of a GPU that another library owns, as those of XLA: on the library's
stream, from addresses to addresses, without a copy to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

import numpy as np

from timetile.runtime.device.gpu import Device, device

CALLS: dict[int, DeviceCall] = {}
"""The calls in functions that JAX has traced, as long as the process lives."""

NUMBERS = count()


@dataclass(frozen=True)
class CalledValue:
    """An array, or a number if without axes, by name."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_number: bool

    @property
    def bytes(self) -> int:
        """Bytes of all cells."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Home:
    """The GPU of an array, by CuPy's name of its number."""

    id: int


class StreamArray:
    """
    Cells at an address of a GPU, ordered by a stream: an array for models. A copy is allocated, and
    kept in `made`, for the call to free.
    """

    def __init__(self, gpu: Device, stream: int, like: CalledValue, pointer: int, made: list[int]):
        self.gpu, self.stream, self.like, self.pointer, self.made = gpu, stream, like, pointer, made
        self.shape, self.dtype, self.device = like.shape, like.dtype, Home(gpu.number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }

    def copy(self) -> StreamArray:
        """A copy, made on the stream."""
        pointer = self.gpu.allocate(self.like.bytes)
        self.made.append(pointer)
        self.gpu.copy(self.pointer, pointer, self.like.bytes, self.stream)
        return StreamArray(self.gpu, self.stream, self.like, pointer, self.made)


@dataclass(frozen=True)
class DeviceCall:
    """A call of `Model.advance` with operands of known shapes; results by name."""

    advance: Callable[..., Mapping[str, Any]]
    operands: Sequence[CalledValue]
    results: Sequence[str]
    fixed: Mapping[str, Any]

    def numbered(self) -> int:
        """The number by which `run_numbered` finds the call."""
        number = next(NUMBERS)
        CALLS[number] = self
        return number

    def run(self, given: Sequence[int], wanted: Sequence[int], stream: int) -> None:
        """Advance the cells at given addresses, and write the results to the wanted addresses."""
        first = device()
        gpu = device(first.number_of(given[0]) or 0)
        made: list[int] = []
        with gpu.current():
            try:
                state: dict[str, StreamArray] = {}
                numbers: dict[str, Any] = {}
                for operand, pointer in zip(self.operands, given, strict=True):
                    if operand.is_number:
                        numbers[operand.name] = downloaded(gpu, operand, pointer, stream)
                    else:
                        state[operand.name] = StreamArray(gpu, stream, operand, pointer, made)
                ended = self.advance(state, **numbers, **self.fixed, stream=stream)
                for name, pointer in zip(self.results, wanted, strict=True):
                    gpu.copy(ended[name].pointer, pointer, ended[name].like.bytes, stream)
            finally:
                gpu.synchronize(stream)
                for pointer in made:
                    gpu.free(pointer)


def downloaded(gpu: Device, operand: CalledValue, pointer: int, stream: int) -> Any:
    """A number in GPU memory as Python's; an array of numbers as NumPy's."""
    array = np.zeros(operand.shape, operand.dtype)
    gpu.synchronize(stream)
    gpu.download(array, pointer)
    return array if array.ndim else array.item()


def run_numbered(number: int, given: Sequence[int], wanted: Sequence[int], stream: int) -> None:
    """Run the call of a number on the cells at given addresses."""
    CALLS[number].run(given, wanted, stream)
