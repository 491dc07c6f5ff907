"""A driver that records calls, and kernels of blocks that wait for each other."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.kernels.kernel import Kernel

MULTIPROCESSORS = 10


class Attribute(Enum):
    """Device attributes queried by the runtime."""

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = MULTIPROCESSORS
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 9
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 0
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 227 << 10


class Capture(Enum):
    """Whether a stream's work goes into a graph."""

    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1


AFTER = 1 << 20
"""Bytes between the host's and the device's address of a word of host memory."""


@dataclass
class FakeDriver:
    """A driver of one GPU with `fitting` blocks a multiprocessor."""

    fitting: int = 1
    calls: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """Calls that change the device, in order."""
    modules: int = 0
    """Modules loaded so far."""
    allocated: int = 0
    report: tuple[int, int] = (0, 0)
    """The first words of device memory."""
    captures: Capture = Capture.CU_STREAM_CAPTURE_STATUS_NONE
    """Whether streams are being captured."""

    word: ctypes.c_uint32 = field(default_factory=ctypes.c_uint32)
    """
    Memory of the host, also written by the device, with a device address `AFTER` the host's
    address.
    """

    CUdevice_attribute = Attribute
    CUstreamCaptureStatus = Capture

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 1

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return 0, number

    def cuDevicePrimaryCtxRetain(self, handle: int) -> tuple[int, str]:
        return 0, "context"

    def cuDeviceGetName(self, size: int, handle: int) -> tuple[int, bytes]:
        return 0, b"A GPU\0"

    def cuDeviceGetAttribute(self, attribute: Attribute, handle: int) -> tuple[int, int]:
        return 0, attribute.value

    def cuModuleLoadData(self, image: bytes) -> tuple[int, str]:
        self.modules += 1
        return 0, "module"

    def cuModuleGetFunction(self, module: str, name: bytes) -> tuple[int, str]:
        return 0, f"function {name.decode()}"

    def cuStreamIsCapturing(self, stream: int) -> tuple[int, Capture]:
        return 0, self.captures

    def cuModuleUnload(self, module: str) -> tuple[int]:
        self.calls.append(("unload", module))
        return (0,)

    def cuFuncGetModule(self, function: str) -> tuple[int, str]:
        return 0, f"module of {function}"

    def cuModuleGetGlobal(self, module: str, name: bytes) -> tuple[int, int, int]:
        assert module == "module of function heat_d4"
        assert name == b"heat_d4$report"
        return 0, 77000, 8

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: str, threads: int, shared_bytes: int
    ) -> tuple[int, int]:
        return 0, self.fitting

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        self.allocated += 1
        self.calls.append(("allocate", size))
        return 0, 1000 * self.allocated

    def cuMemFree(self, pointer: int) -> tuple[int]:
        self.calls.append(("free", pointer))
        return (0,)

    def cuMemsetD8Async(self, pointer: int, value: int, size: int, stream: int) -> tuple[int]:
        self.calls.append(("set", pointer, value, size, stream))
        return (0,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        self.calls.append(("synchronize", stream))
        return (0,)

    def cuMemcpyDtoH(self, target: int, pointer: int, size: int) -> tuple[int]:
        self.calls.append(("download", pointer, size))
        ctypes.memmove(target, (ctypes.c_uint32 * 2)(*self.report), size)
        return (0,)

    CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP = 1, 2

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        assert (size, flags) == (4, 3)
        return 0, ctypes.addressof(self.word)

    def cuMemHostGetDevicePointer(self, place: int, flags: int) -> tuple[int, int]:
        assert (place, flags) == (ctypes.addressof(self.word), 0)
        return 0, place + AFTER

    def cuLaunchKernel(self, function: str, grid: int, *others: Any) -> tuple[int]:
        self.calls.append(("launch", function, grid))
        if function.startswith("function halos_differ"):
            *_, arguments, extra = others
            assert extra == 0
            places = (ctypes.c_void_p * 3).from_address(arguments)
            first, other, answer = (ctypes.c_uint64.from_address(p or 0).value for p in places)
            if first != other:
                ctypes.c_uint32.from_address(answer - AFTER).value = 1
        return (0,)

    CUDA_KERNEL_NODE_PARAMS = SimpleNamespace

    def cuGraphCreate(self, flags: int) -> tuple[int, str]:
        return 0, "graph"

    def cuGraphAddKernelNode(
        self, graph: str, before: list[str], count: int, what: SimpleNamespace
    ) -> tuple[int, str]:
        assert count == len(before)
        node = f"{what.func} {len(self.calls)}"
        shape = (what.gridDimX, what.blockDimX, what.sharedMemBytes)
        self.calls.append((node, before, shape, what.kernelParams))
        return 0, node

    def cuGraphInstantiate(self, graph: str, flags: int) -> tuple[int, str]:
        self.calls.append(("instantiate", graph))
        return 0, "executable"

    def cuGraphDestroy(self, graph: str) -> tuple[int]:
        self.calls.append(("destroy", graph))
        return (0,)

    def cuGraphExecDestroy(self, graph: str) -> tuple[int]:
        self.calls.append(("destroy", graph))
        return (0,)

    def cuGraphLaunch(self, graph: str, stream: int) -> tuple[int]:
        self.calls.append(("launch", graph, stream))
        return (0,)

    def cuLaunchCooperativeKernel(
        self,
        function: str,
        grid: int,
        grid_y: int,
        grid_z: int,
        block: int,
        block_y: int,
        block_z: int,
        shared_bytes: int,
        stream: int,
        arguments: int,
    ) -> tuple[int]:
        """Arguments are read like in the driver, with types from the kernel."""
        assert (grid_y, grid_z, block_y, block_z) == (1, 1, 1, 1)
        places = (ctypes.c_void_p * 4).from_address(arguments)
        types = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32)
        values = tuple(kind.from_address(place).value for kind, place in zip(types, places))
        self.calls.append(("together", function, grid, block, shared_bytes, stream, values))
        return (0,)


KERNEL = Kernel(
    name="heat_d4",
    ptx="",
    cubin=b"machine code",
    arch="sm_90",
    grid=5 * 4,
    block=256,
    cluster=1,
    blocks_per_tile=4,
    message_words=512,
    shared_bytes=4096,
    registers=168,
    spill_bytes=0,
    bound_waits=False,
)
"""Five tiles of four blocks."""


FIELDS = LaunchArguments((1, 2), (ctypes.c_void_p, ctypes.c_void_p))
