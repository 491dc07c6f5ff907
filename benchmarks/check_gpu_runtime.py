"""
Check on a GPU that programs give back their resources, and that calls continue earlier calls.

    python benchmarks/check_gpu_runtime.py

Each check prints a name, and the fault, if any; the exit status is 0 without faults. The checks
need one GPU; with several GPUs, the check of arrays on another GPU runs, too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
from rows import source

import timetile
from timetile.runtime.device.gpu import device, image_of
from timetile.runtime.machine.driver import checked

DOMAIN, DEPTH = (509, 1021), 4
TEXT, HALO, _ = source("j2d5pt", DOMAIN, "f64")
SHAPE = tuple(n + 2 * HALO for n in DOMAIN)


class OnGpu:
    """An array in GPU memory, in the notation of other libraries."""

    def __init__(self, array: np.ndarray[Any, Any], number: int = 0):
        self.gpu, self.array = device(number), array
        with self.gpu.current():
            self.pointer = self.gpu.allocate(array.nbytes)
            self.gpu.upload(self.pointer, array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shape, kind = self.array.shape, self.array.dtype.str
        return {"shape": shape, "typestr": kind, "data": (self.pointer, False), "version": 3}

    def read(self) -> np.ndarray[Any, Any]:
        """The cells, once all work is done."""
        found = np.empty_like(self.array)
        with self.gpu.current():
            checked(self.gpu.cuda.cuCtxSynchronize())
            self.gpu.download(found, self.pointer)
        return found

    def free(self) -> None:
        with self.gpu.current():
            self.gpu.free(self.pointer)


def arrays() -> list[np.ndarray[Any, Any]]:
    """Two fields with different halos: runs take scratch buffers."""
    return [np.random.default_rng(k).random(SHAPE) for k in range(2)]


def compiled(**options: Any) -> timetile.CompiledProgram:
    return timetile.compile(TEXT, executor="gpu", depth=DEPTH, halos="apart", **options)


def expected(steps: int) -> list[np.ndarray[Any, Any]]:
    found = arrays()
    timetile.compile(TEXT, executor="cpu", halos="apart")(*found, steps)
    return found


def free_bytes() -> int:
    """Of the GPU, once all work is done."""
    gpu = device()
    with gpu.current():
        checked(gpu.cuda.cuCtxSynchronize())
        return int(checked(gpu.cuda.cuMemGetInfo())[0])


def run_a_lot(program: timetile.CompiledProgram, stream: int = 0) -> None:
    """Runs with scratch buffers, graphs and kernels."""
    fields = [OnGpu(array) for array in arrays()]
    for steps in (9, 600, 9, 9, 600):
        program(*fields, steps=steps, stream=stream)
    for each in fields:
        each.read()
        each.free()


def given_back_by(give_back: Callable[[timetile.CompiledProgram], None]) -> str | None:
    """Twenty programs, one after the other, take no more memory than one program."""
    run_a_lot(first := compiled())
    give_back(first)
    del first
    before = free_bytes()
    for _ in range(20):
        run_a_lot(program := compiled())
        give_back(program)
        del program
    lost = before - free_bytes()
    return f"{lost} bytes were not given back" if lost > 1 << 20 else None


def close() -> str | None:
    return given_back_by(timetile.CompiledProgram.close)


def dropped() -> str | None:
    gc.disable()
    try:
        return given_back_by(lambda program: None)
    finally:
        gc.enable()


def closed_at_once() -> str | None:
    """Programs are closed during their runs; the results are right."""
    fields = [OnGpu(array) for array in arrays()]
    with compiled() as program:
        program(*fields, steps=1000)
    found = [each.read() for each in fields]
    for each in fields:
        each.free()
    return None if np.array_equal(found, expected(1000)) else "the fields are wrong"


def goes_on() -> str | None:
    fields = [OnGpu(array) for array in arrays()]
    state: Any = fields
    with compiled() as program:
        for steps in (5, 5, 1, 30):
            state = program.advance(state, steps)
    found = [each.read() for each in fields]
    for each in fields:
        each.free()
    return None if np.array_equal(found, expected(41)) else "4 calls are not one"


def stops() -> str | None:
    """Snapshots of arrays on the host and on the GPU have the bits of one run."""
    host, placed = arrays(), [OnGpu(array) for array in arrays()]
    with compiled() as program:
        for state in (host, placed):
            steps = [step for step, _ in program.snapshots(state, steps=23, every=7)]
            if steps != [7, 14, 21, 23]:
                return f"the stops are {steps}"
        found = [*host, *(each.read() for each in placed)]
    for each in placed:
        each.free()
    wrong = [k for k, array in enumerate(found) if not np.array_equal(array, expected(23)[k % 2])]
    return f"the fields {wrong} are wrong" if wrong else None


def many_streams() -> str | None:
    """Streams destroyed before the program is closed, more than the kept streams."""
    cuda, program = device().cuda, compiled()
    before = free_bytes()
    for _ in range(20):
        with device().current():
            stream = checked(cuda.cuStreamCreate(0))
        run_a_lot(program, int(stream))
        with device().current():
            checked(cuda.cuStreamDestroy(stream))
    program.close()
    lost = before - free_bytes()
    return f"{lost} bytes were not given back" if lost > 4 << 20 else None


def dropped_while_captured() -> str | None:
    """A program is dropped while another's run is captured: the graph is made, and right."""
    cuda, gpu = device().cuda, device()
    run_a_lot(doomed := compiled(bound_waits=False))
    program = compiled()
    fields = [OnGpu(array) for array in arrays()]
    warm = [OnGpu(array) for array in arrays()]
    with gpu.current():
        stream = checked(cuda.cuStreamCreate(0))
    program(*warm, steps=9, stream=int(stream))
    with gpu.current():
        checked(cuda.cuStreamSynchronize(stream))
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        checked(cuda.cuStreamBeginCapture(stream, mode))
    program(*fields, steps=9, stream=int(stream))
    del doomed
    with gpu.current():
        graph = checked(cuda.cuStreamEndCapture(stream))
        launchable = checked(cuda.cuGraphInstantiate(graph, 0))
        checked(cuda.cuGraphLaunch(launchable, stream))
        checked(cuda.cuStreamSynchronize(stream))
    found = [each.read() for each in fields]
    return None if np.array_equal(found, expected(9)) else "the fields are wrong"


def threads() -> str | None:
    """Eight threads on two streams of one program, each with separate fields."""
    cuda, program = device().cuda, compiled()
    with device().current():
        streams = [int(checked(cuda.cuStreamCreate(0))) for _ in range(2)]
    wanted, wrong = expected(13), list[int]()

    def run(number: int) -> None:
        fields = [OnGpu(array) for array in arrays()]
        program(*fields, steps=13, stream=streams[number % 2])
        if not np.array_equal([each.read() for each in fields], wanted):
            wrong.append(number)

    started = [Thread(target=run, args=(k,)) for k in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    program.close()
    return f"the fields of threads {wrong} are wrong" if wrong else None


def ptx_of_newer_gpus() -> str | None:
    """A newer GPU gets PTX, accepted by the present GPU, too."""
    kernels = compiled().kernels
    for loop in kernels.facts:
        for fact in loop:
            kernel = kernels.kernel(fact.name)
            image = image_of(kernel, "sm_120")
            if image[:4] == b"\x7fELF":
                return "it is machine code"
            with device().current():
                device().function(image, kernel.name)
    return None


def arrays_elsewhere() -> str | None:
    """Memory of the host, and of another GPU if present."""
    program = compiled()
    host = [np.zeros(SHAPE) for _ in range(2)]
    wrong = [OnGpu(each) for each in host]
    for each, array in zip(wrong, host):
        each.pointer = array.__array_interface__["data"][0] & ~15
    places: list[list[OnGpu]] = [wrong]
    if int(checked(device().cuda.cuDeviceGetCount())) > 1:
        places.append([OnGpu(array, 1) for array in arrays()])
    for fields in places:
        try:
            program(*fields, steps=9)
        except ValueError:
            continue
        return "it ran"
    return None


CHECKS = (
    close, dropped, closed_at_once, goes_on, stops, many_streams, dropped_while_captured, threads,
    ptx_of_newer_gpus, arrays_elsewhere,
)  # fmt: skip


def main() -> None:
    failed = 0
    for check in CHECKS:
        wrong = check()
        failed += wrong is not None
        print(f"{check.__name__}: {wrong or 'right'}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
