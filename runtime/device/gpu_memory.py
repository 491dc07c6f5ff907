"""An NVIDIA GPU, through cuda-python: context, memory, streams and events."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from timetile.lowering.ptx.symbols import symbol
from timetile.runtime.host.halos import WORD_BYTES
from timetile.runtime.machine.driver import Unavailable, checked, core, driver, reporting
from timetile.runtime.machine.ranges import profiled

HANDLE_BYTES = 64
"""Bytes of the handle of an allocation for other processes."""

CELLS_SENT = 8192
"""Most equal cells sent to a GPU: more are copied there."""

PEER_ACCESS_ALREADY_ENABLED = 704
"""The driver's answer to a second request for access to a device."""

WorkResult = TypeVar("WorkResult")


@dataclass
class Recorded:
    """Recorded work of streams."""

    graph: Any = None
    """The graph, once all work is recorded."""


class GpuMemory:
    """One GPU, by number, with its primary context."""

    one_load = RLock()
    """
    Held while kernels are loaded or given back: programs share kernels, and threads and finalizers
    may meet.
    """

    def __init__(self, number: int = 0):
        cuda = driver()
        if isinstance(cuda, Unavailable):
            raise RuntimeError(f"cannot run on a GPU: {cuda.reason}")
        self.cuda = cuda
        known = int(checked(cuda.cuDeviceGetCount()))
        if not 0 <= number < known:
            raise RuntimeError(
                f"there is no GPU {number}, the driver numbers them from 0 to {known - 1}"
            )
        self.number = number
        self.handle = checked(cuda.cuDeviceGet(number))
        # The driver makes a context without Python's lock: an import beside takes little time.
        with ThreadPoolExecutor(1) as beside:
            importing = beside.submit(core)
            self.context = checked(cuda.cuDevicePrimaryCtxRetain(self.handle))
            self.core = importing.result()
        self.card = self.core.Device(number)
        self.objects: dict[int, Any] = {}
        """The objects of streams, by number: an object keeps the context of its first use."""

    def attribute(self, name: str) -> int:
        """A device attribute, by the end of its name in the driver's enumeration."""
        return int(getattr(self.card.properties, name.lower()))

    @property
    def name(self) -> str:
        """The GPU's name."""
        return str(self.card.name)

    @property
    def arch(self) -> str:
        """The architecture, as `sm_90`."""
        return f"sm_{self.card.arch}"

    def on(self, stream: int) -> Any:
        """The object of a stream, by the stream's number."""
        known = self.objects.get(stream)
        if known is None:
            known = self.objects[stream] = self.core.Stream.from_handle(stream)
        return known

    @contextlib.contextmanager
    def current(self) -> Any:
        """Make the device current for the calls inside."""
        checked(self.cuda.cuCtxPushCurrent(self.context))
        try:
            yield self
        finally:
            checked(self.cuda.cuCtxPopCurrent())

    def enter(self) -> None:
        """Make the device current in place of the device made current last."""
        checked(self.cuda.cuCtxSetCurrent(self.context))

    def allocate(self, size: int) -> int:
        """Device memory of `size` bytes."""
        try:
            return int(checked(self.cuda.cuMemAlloc(max(size, 1))))
        except RuntimeError as error:
            raise MemoryError(f"{size} bytes of device memory: {error}") from error

    def free(self, pointer: int) -> None:
        """Free device memory."""
        checked(self.cuda.cuMemFree(pointer))

    def upload(self, pointer: int, array: Any) -> None:
        """Copy a NumPy array to the device."""
        with profiled("copy to the GPU"):
            checked(self.cuda.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))

    def download(self, array: Any, pointer: int) -> None:
        """Copy device memory to a NumPy array."""
        with profiled("copy from the GPU"):
            checked(self.cuda.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))

    def fill(self, pointer: int, cell: Any, count: int, stream: int) -> None:
        """Write a number of NumPy's to `count` cells of device memory, as work of a stream."""
        size, whole = cell.nbytes * min(count, CELLS_SENT), cell.nbytes * count
        self.upload(pointer, np.full(size // cell.nbytes, cell))
        self.wait_for_stream(stream, 0)
        while size < whole:
            more = min(size, whole - size)
            checked(self.cuda.cuMemcpyDtoDAsync(pointer + size, pointer, more, stream))
            size += more

    # Copies as work of a stream, from and to page-locked memory of the host.

    def allocate_locked(self, size: int) -> int:
        """Page-locked memory of the host of `size` bytes."""
        try:
            return int(checked(self.cuda.cuMemAllocHost(max(size, 1))))
        except RuntimeError as error:
            raise MemoryError(f"{size} bytes of page-locked memory: {error}") from error

    def free_locked(self, pointer: int) -> None:
        """Free page-locked memory of the host."""
        checked(self.cuda.cuMemFreeHost(pointer))

    def begin_upload(self, pointer: int, locked: int, size: int, stream: int) -> None:
        """Copy page-locked memory to the device, as work of a stream."""
        checked(self.cuda.cuMemcpyHtoDAsync(pointer, locked, size, stream))

    def begin_download(self, locked: int, pointer: int, size: int, stream: int) -> None:
        """Copy device memory to page-locked memory, as work of a stream."""
        checked(self.cuda.cuMemcpyDtoHAsync(locked, pointer, size, stream))

    @reporting
    def wait_for(self, event: Any) -> None:
        """Wait for a marked event, which stays."""
        event.sync()

    @reporting
    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done its work."""
        self.on(stream).sync()

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream's work is captured into a graph. The default stream's never is."""
        if not stream:
            return False
        status = checked(self.cuda.cuStreamIsCapturing(stream))
        return bool(status != self.cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    @reporting
    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Let a stream wait for all earlier work of another stream."""
        if waiting != other:
            self.on(waiting).wait(self.on(other))

    def function(self, image: bytes, name: str) -> Any:
        """A function of machine code, or of PTX ending with a zero."""
        module = checked(self.cuda.cuModuleLoadData(image))
        return checked(self.cuda.cuModuleGetFunction(module, symbol(name).encode()))

    def function_of_text(self, text: str, name: str) -> Any:
        """A function of PTX."""
        return self.function(text.encode() + b"\0", name)

    def unload_function(self, function: Any) -> None:
        """Unload the module of a loaded function, after all launches are done."""
        checked(self.cuda.cuModuleUnload(checked(self.cuda.cuFuncGetModule(function))))

    @contextlib.contextmanager
    def giving_back(self) -> Any:
        """
        The device is current, and memory may be freed though some stream is captured into a graph:
        programs are dropped at any time.
        """
        cuda = self.cuda
        with self.current():
            before = checked(
                cuda.cuThreadExchangeStreamCaptureMode(
                    cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
                )
            )
            try:
                yield self
            finally:
                checked(cuda.cuThreadExchangeStreamCaptureMode(before))

    @reporting
    def mark(self, event: Any, stream: int) -> Any:
        """An event (a new event for None) after all earlier work of the stream."""
        return self.on(stream).record(event)

    @reporting
    def has_passed(self, event: Any) -> bool:
        """Whether all work before a marked event is done."""
        return bool(event.is_done)

    @reporting
    def wait_for_mark(self, event: Any) -> None:
        """Wait for a marked event, even of a destroyed stream, and destroy the event."""
        event.sync()
        event.close()

    @reporting
    def destroy_event(self, event: Any) -> None:
        """Destroy an event that nothing waits for."""
        event.close()

    # Graphs of the work of several streams.

    def instantiated(self, graph: Any) -> Any:
        """A graph to launch, in place of a recorded one."""
        try:
            return checked(self.cuda.cuGraphInstantiate(graph, 0))
        finally:
            checked(self.cuda.cuGraphDestroy(graph))

    @contextlib.contextmanager
    def recording(self, stream: int) -> Generator[Recorded]:
        """
        Record the work given to a stream, and to streams that wait for recorded events: behind the
        block a graph to add to another.
        """
        mode = self.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        checked(self.cuda.cuStreamBeginCapture(stream, mode))
        found = Recorded()
        try:
            yield found
        except BaseException:
            self.drop_capture(stream)
            raise
        found.graph = checked(self.cuda.cuStreamEndCapture(stream))

    def recorded(self, stream: int, work: Callable[[], WorkResult]) -> tuple[Any, WorkResult]:
        """The graph of the work given to a stream, to add to another, and what `work` returns."""
        with self.recording(stream) as found:
            made = work()
        return found.graph, made

    def drop_capture(self, stream: int) -> None:
        """Stop recording after a failure, whatever the driver says."""
        status, graph = self.cuda.cuStreamEndCapture(stream)
        if int(status) == 0:
            self.cuda.cuGraphDestroy(graph)

    # Streams and copies of several GPUs.

    def new_stream(self, *, is_urgent: bool = False) -> int:
        """
        A stream of the current device, which waits for no other stream. Blocks of an urgent
        stream's kernels start before waiting blocks of other streams.
        """
        flags = int(self.cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
        if not is_urgent:
            return int(checked(self.cuda.cuStreamCreate(flags)))
        _, greatest = checked(self.cuda.cuCtxGetStreamPriorityRange())
        return int(checked(self.cuda.cuStreamCreateWithPriority(flags, greatest)))

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream. Work under way goes on."""
        self.objects.pop(stream, None)
        checked(self.cuda.cuStreamDestroy(stream))

    @reporting
    def wait_for_event(self, waiting: int, event: Any) -> None:
        """Let a stream wait for a marked event of any device."""
        self.on(waiting).wait(event)

    def reaches(self, other: GpuMemory) -> bool:
        """
        Whether kernels and copies of the device reach the memory of another device directly; access
        is switched on.
        """
        if not checked(self.cuda.cuDeviceCanAccessPeer(self.handle, other.handle)):
            return False
        with self.current():
            (status,) = self.cuda.cuCtxEnablePeerAccess(other.context, 0)
        if int(status) != PEER_ACCESS_ALREADY_ENABLED:
            checked((status,))
        return True

    def copy(self, source: int, target: int, size: int, stream: int) -> None:
        """Copy bytes between pointers of any devices, on a stream."""
        checked(self.cuda.cuMemcpyAsync(target, source, size, stream))

    def copy_box(
        self,
        extents: tuple[int, int, int],
        source: tuple[int, int, int],
        target: tuple[int, int, int],
        stream: int,
    ) -> None:
        """
        Copy rows of bytes between pointers of any devices, on a stream: `extents` are the bytes of
        a row, rows and planes; of source and target the pointer to the first byte, the bytes from
        row to row, and the rows from plane to plane.
        """
        what = self.cuda.CUDA_MEMCPY3D()
        kind = self.cuda.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        what.srcMemoryType = what.dstMemoryType = kind
        what.WidthInBytes, what.Height, what.Depth = extents
        what.srcDevice, what.srcPitch, what.srcHeight = source
        what.dstDevice, what.dstPitch, what.dstHeight = target
        checked(self.cuda.cuMemcpy3DAsync(what, stream))

    # Memory of other processes.

    def shared(self, pointer: int) -> tuple[bytes, int]:
        """The handle of an allocation for other processes, and a pointer's distance in it."""
        base, _ = checked(self.cuda.cuMemGetAddressRange(pointer))
        handle = checked(self.cuda.cuIpcGetMemHandle(base))
        return ctypes.string_at(int(handle.getPtr()), HANDLE_BYTES), pointer - int(base)

    def opened(self, handle: bytes) -> int | None:
        """
        A pointer to memory that another process has allocated, by its handle; None if out of reach.
        """
        given = self.cuda.CUipcMemHandle()
        ctypes.memmove(int(given.getPtr()), handle, HANDLE_BYTES)
        flags = self.cuda.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
        status, pointer = self.cuda.cuIpcOpenMemHandle(given, int(flags))
        return None if int(status) != 0 else int(pointer)

    def close_opened(self, pointer: int) -> None:
        """Close an allocation of another process."""
        checked(self.cuda.cuIpcCloseMemHandle(pointer))

    def number_of(self, pointer: int) -> int | None:
        """The number of the GPU with this address in its memory; None if no GPU has."""
        what = self.cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, number = self.cuda.cuPointerGetAttribute(what, pointer)
        return None if int(status) != 0 else int(number)

    def word_of_host(self) -> tuple[ctypes.c_uint32, int]:
        """
        A word of host memory writable by kernels, and its device address: nothing needs to be
        copied.
        """
        cuda = self.cuda
        flags = cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP
        place = int(checked(cuda.cuMemHostAlloc(WORD_BYTES, flags)))
        on_device = int(checked(cuda.cuMemHostGetDevicePointer(place, 0)))
        return ctypes.c_uint32.from_address(place), on_device
