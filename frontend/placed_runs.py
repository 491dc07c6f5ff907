"""Runs whose arrays lie on a GPU until the end, on a stream that can be recorded."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Any, Self

import numpy as np

from timetile.frontend.runs import StateRun
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.host.arrays import check_home, from_device, is_numpy_array
from timetile.runtime.program.arguments import stream_handle
from timetile.runtime.program.compiled_program import CompiledProgram


class ShownArray:
    """Memory of a GPU as an array for programs. Work on the array waits for no other stream."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], owner: Any):
        self.pointer, self.shape, self.dtype, self.owner = pointer, shape, dtype, owner

    @property
    def bytes(self) -> int:
        """The bytes of all cells."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }


class PlacedRun:
    """
    A run on a GPU, as a context: arrays of NumPy are copied to the GPU at the beginning and back at
    the end, and all work is work of one stream.
    """

    def __init__(self, run: StateRun, gpu: Device):
        self.run, self.gpu = run, gpu
        self.given = run.stream
        self.outer = stream_handle(run.stream)
        self.stream = self.outer or gpu.own_stream
        self.shown: dict[int, ShownArray] = {}
        """The run's arrays on the GPU, by the identity of the caller's array."""
        self.stack = ExitStack()

    @staticmethod
    def of(run: StateRun) -> PlacedRun | None:
        """
        The run on its GPU; None without a GPU, for runs in parts, whose arrays are NumPy's, and for
        runs with points, whose lists lie beside the arrays.
        """
        program: Any = run.program if type(run) is StateRun else None
        if type(program) is not CompiledProgram or program.executor != "gpu":
            return None
        if run.points:
            return None
        gpu = device(program.gpu)
        handle = stream_handle(run.stream)
        with gpu.current():
            if handle and gpu.is_capturing(handle):
                return None
            return PlacedRun(run, gpu)

    def __enter__(self) -> Self:
        run, gpu = self.run, self.gpu
        self.stack.enter_context(gpu.one_loop)
        self.stack.enter_context(gpu.current())
        try:
            gpu.wait_for_stream(self.stream, self.outer)
            for (name, _), array in run.arrays.items():
                self.shown[id(array)] = self.placed(name, array)
            gpu.synchronize(0)
        except BaseException:
            self.free()
            self.stack.close()
            raise
        self.arrays = {id(shown): (shown, array) for shown, array in self.pairs()}
        run.arrays = {key: self.shown[id(array)] for key, array in run.arrays.items()}
        run.stream = self.stream
        return self

    def pairs(self) -> list[tuple[ShownArray, Any]]:
        """The shown arrays beside the arrays of the run."""
        return [(self.shown[id(array)], array) for array in self.run.arrays.values()]

    def placed(self, name: str, array: Any) -> ShownArray:
        """An array on the GPU."""
        if is_numpy_array(array):
            made = ShownArray(self.gpu.allocate(array.nbytes), array.shape, array.dtype, None)
            self.gpu.upload(made.pointer, array)
            return made
        found = from_device(name, array, self.stream)
        check_home(name, found, self.gpu)
        if found.stream is not None:
            self.gpu.wait_for_stream(self.stream, found.stream)
        return ShownArray(found.pointer, found.shape, np.dtype(found.dtype), (found, array))

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        run, gpu = self.run, self.gpu
        try:
            run.arrays = {key: self.arrays[id(shown)][1] for key, shown in run.arrays.items()}
            run.stream = self.given
            owned = [(shown, array) for shown, array in self.arrays.values() if not shown.owner]
            if owned:
                gpu.synchronize(self.stream)
            for shown, array in owned:
                if problem is None:
                    gpu.download(array, shown.pointer)
            gpu.wait_for_stream(self.outer, self.stream)
        finally:
            self.free()
            self.stack.close()

    def free(self) -> None:
        """Give back the memory of arrays copied to the GPU."""
        for shown in self.shown.values():
            if not shown.owner:
                self.gpu.free(shown.pointer)
        self.shown = {}
