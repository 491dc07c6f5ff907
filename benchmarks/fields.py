"""Random fields on the device, with copies on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timetile.runtime.device.gpu import Device

ELEMENTS = {"f64": np.float64, "f32": np.float32}


def with_common_halos(
    fields: Sequence[np.ndarray[Any, Any]], halo: int
) -> list[np.ndarray[Any, Any]]:
    """Copies of fields, with the first field's cells outside the bounds in all copies."""
    inside = tuple(slice(halo, -halo) for _ in fields[0].shape)
    alike = [fields[0].copy() for _ in fields]
    for copied, field_of in zip(alike, fields):
        copied[inside] = field_of[inside]
    return alike


class Cells:
    """Random numbers, drawn once for the fields of all rows of an element type."""

    def __init__(self):
        self.drawn: dict[str, np.ndarray[Any, Any]] = {}

    def fields(
        self, shape: tuple[int, ...], element: str, count: int, halo: int = 0
    ) -> list[np.ndarray[Any, Any]]:
        """
        Different fields: each begins a prime number of cells further in the numbers. Fields with a
        `halo` have the first field's halo.
        """
        size, apart = int(np.prod(shape)), 7919
        needed = size + count * apart
        if element not in self.drawn or self.drawn[element].size < needed:
            generator = np.random.default_rng(7)
            self.drawn[element] = generator.random(needed, dtype=ELEMENTS[element])
        starts = [apart * k for k in range(count)]
        drawn = [self.drawn[element][n : n + size].reshape(shape) for n in starts]
        return with_common_halos(drawn, halo) if halo else drawn


class Fields:
    """Random fields on the device, and copies on the host."""

    def __init__(self, gpu: Device, host: list[np.ndarray[Any, Any]]):
        self.gpu, self.host = gpu, host
        self.pointers = [gpu.allocate(a.nbytes) for a in self.host]
        self.reset()

    def pointer(self, place: int) -> int:
        """A field of the program, or a further field."""
        while place >= len(self.pointers):
            self.pointers.append(self.gpu.allocate(self.host[-1].nbytes))
            self.gpu.upload(self.pointers[-1], self.host[-1])
        return self.pointers[place]

    def reset(self) -> None:
        for pointer, array in zip(self.pointers, self.host):
            self.gpu.upload(pointer, array)

    def read(self) -> list[np.ndarray[Any, Any]]:
        results = [np.empty_like(a) for a in self.host]
        for result, pointer in zip(results, self.pointers):
            self.gpu.download(result, pointer)
        return results

    def free(self) -> None:
        for pointer in self.pointers:
            self.gpu.free(pointer)


class View:
    """A field on the device, in the notation of other libraries."""

    def __init__(self, pointer: int, array: np.ndarray[Any, Any]):
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }
