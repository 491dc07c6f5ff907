"""An NVIDIA GPU, through cuda-python: context, memory and streams."""

from __future__ import annotations

import contextlib
import ctypes
from threading import RLock
from typing import Any

import numpy as np

from timetile.lowering.ptx.symbols import symbol
from timetile.runtime.host.halos import WORD_BYTES
from timetile.runtime.machine.driver import Unavailable, checked, driver
from timetile.runtime.machine.ranges import profiled

HANDLE_BYTES = 64
"""Bytes of the handle of an allocation for other processes."""

CELLS_SENT = 8192
"""Most equal cells sent to a GPU: more are copied there."""

PEER_ACCESS_ALREADY_ENABLED = 704
"""The driver's answer to a second request for access to a device."""


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
        self.context = checked(cuda.cuDevicePrimaryCtxRetain(self.handle))

    def attribute(self, name: str) -> int:
        """A device attribute, by the end of its name in the driver's enumeration."""
        attribute = getattr(self.cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self.cuda.cuDeviceGetAttribute(attribute, self.handle)))

    @property
    def name(self) -> str:
        """The GPU's name."""
        raw = checked(self.cuda.cuDeviceGetName(128, self.handle))
        return raw.split(b"\0")[0].decode()

    @property
    def arch(self) -> str:
        """The architecture, as `sm_90`."""
        major = self.attribute("COMPUTE_CAPABILITY_MAJOR")
        return f"sm_{major}{self.attribute('COMPUTE_CAPABILITY_MINOR')}"

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

    def wait_for(self, event: Any) -> None:
        """Wait for a marked event, which stays."""
        checked(self.cuda.cuEventSynchronize(event))

    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done its work."""
        checked(self.cuda.cuStreamSynchronize(stream))

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream's work is captured into a graph. The default stream's never is."""
        if not stream:
            return False
        status = checked(self.cuda.cuStreamIsCapturing(stream))
        return bool(status != self.cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Let a stream wait for all earlier work of another stream."""
        if waiting == other:
            return
        flags = int(self.cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        event = checked(self.cuda.cuEventCreate(flags))
        checked(self.cuda.cuEventRecord(event, other))
        checked(self.cuda.cuStreamWaitEvent(waiting, event, 0))
        checked(self.cuda.cuEventDestroy(event))

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

    def mark(self, event: Any, stream: int) -> Any:
        """An event (a new event for None) after all earlier work of the stream."""
        if event is None:
            flags = int(self.cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
            event = checked(self.cuda.cuEventCreate(flags))
        checked(self.cuda.cuEventRecord(event, stream))
        return event

    def has_passed(self, event: Any) -> bool:
        """Whether all work before a marked event is done."""
        result = self.cuda.cuEventQuery(event)
        if result[0] == self.cuda.CUresult.CUDA_ERROR_NOT_READY:
            return False
        checked(result)
        return True

    def wait_for_mark(self, event: Any) -> None:
        """Wait for a marked event, even of a destroyed stream, and destroy the event."""
        checked(self.cuda.cuEventSynchronize(event))
        checked(self.cuda.cuEventDestroy(event))

    def destroy_event(self, event: Any) -> None:
        """Destroy an event that nothing waits for."""
        checked(self.cuda.cuEventDestroy(event))

    # Graphs of the work of several streams.

    def begin_capture(self, stream: int) -> None:
        """Record the work of a stream in a graph, and of streams that wait for recorded events."""
        mode = self.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        checked(self.cuda.cuStreamBeginCapture(stream, mode))

    def end_capture(self, stream: int) -> Any:
        """The recorded work, as a graph to launch."""
        graph = self.captured(stream)
        try:
            return checked(self.cuda.cuGraphInstantiate(graph, 0))
        finally:
            checked(self.cuda.cuGraphDestroy(graph))

    def captured(self, stream: int) -> Any:
        """The recorded work, as a graph to add to another."""
        return checked(self.cuda.cuStreamEndCapture(stream))

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
        checked(self.cuda.cuStreamDestroy(stream))

    def wait_for_event(self, waiting: int, event: Any) -> None:
        """Let a stream wait for a marked event of any device."""
        checked(self.cuda.cuStreamWaitEvent(waiting, event, 0))

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
