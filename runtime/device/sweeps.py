"""Kernels of sweeps on a GPU: loaded once, and launched on a stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES, CELL_TYPES
from timetile.dialects.series import number_type
from timetile.lowering.sweep_frames import SweepFrame
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.sweeping import sweep_image
from timetile.runtime.machine.driver import checked

MOST_KNOWN = 16
"""Most launches whose arguments are kept: buffers take turns, and come back."""


def c_type(kind: Attribute) -> Any:
    """The C type of a kernel's number."""
    row = CELL_TYPES[kind]
    if row.is_float:
        return ctypes.c_float if kind == f32 else ctypes.c_double
    return {1: ctypes.c_uint8, 64: ctypes.c_int64}.get(row.bits, ctypes.c_int32)


class DeviceSweep:
    """The kernel of a sweep on a device, and the arguments of its launches."""

    def __init__(self, frame: SweepFrame, on: Device, arch: str, cache: Cache | None = None):
        self.frame, self.device = frame, on
        with Device.one_load:
            image = sweep_image(frame, arch, cache)
            self.function = on.loaded_now(image, frame.name, frame.shared_bytes)
        self.types = [ctypes.c_void_p for _ in self.frame.fields]
        self.types += [c_type(number_type(scalar)) for scalar in self.frame.scalars]
        self.words = on.allocate(self.word_bytes) if frame.words else 0
        """Words for messages between blocks: a launch has a number, from 1 on."""
        if frame.words:
            self.types.append(ctypes.c_void_p)
            self.clear_words()
        self.known: dict[tuple[Any, ...], LaunchArguments] = {}
        """The arguments of the latest launches, by pointers and the bits of numbers."""

    @property
    def word_bytes(self) -> int:
        """Bytes of the words for messages."""
        return self.frame.words * CELL_BYTES[i64]

    def clear_words(self) -> None:
        """Clear the words: no launch has ended, and no message has come."""
        on = self.device
        stream = on.new_stream()
        checked(on.cuda.cuMemsetD8Async(self.words, 0, self.word_bytes, stream))
        on.synchronize(stream)
        on.destroy_stream(stream)

    def close(self) -> None:
        """Give back the kernel and its words, after all launches are done."""
        if self.words:
            self.device.free(self.words)
        self.device.unload_function(self.function)

    def launch(
        self, pointers: Mapping[SSAValue, int], numbers: Mapping[SSAValue, Any], stream: int
    ) -> None:
        """Launch on fields at pointers, with the scalars as `numbers`."""
        scalars = [np.asarray(numbers[scalar]) for scalar in self.frame.scalars]
        places = [pointers[field] for field in self.frame.fields]
        key = (*places, *(number.tobytes() for number in scalars))
        arguments = self.known.get(key)
        if arguments is None:
            if len(self.known) == MOST_KNOWN:
                self.known.clear()
            values = [*places, *(number.item() for number in scalars)]
            if self.words:
                values.append(self.words)
            arguments = self.known[key] = LaunchArguments(values, self.types)
        cuda = self.device.cuda
        checked(
            cuda.cuLaunchKernel(
                self.function, self.frame.grid, 1, 1, self.frame.threads, 1, 1,
                self.frame.shared_bytes, stream, arguments.address, 0,
            )
        )  # fmt: skip
