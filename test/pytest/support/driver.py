"""
A driver that counts resources: contexts, memory, modules, graphs and events, taken and given back.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class BookKeeper:
    """
    GPUs of one architecture, as shown by the driver's bindings. Fields are addresses; nothing is
    computed. Wrong calls fail: a second release, a wait for a destroyed stream, memory freed during
    a launch.
    """

    arch: tuple[int, int] = (9, 0)
    gpus: int = 2
    multiprocessors: int = 132
    memory_kilohertz: int = 3_125_000
    memory_bits: int = 6144
    kilohertz: int = 1_980_000
    l2_bytes: int = 60 << 20
    shared_bytes: int = 232448
    copy_tb_per_s: float = 4.23
    name: str = "A GPU"
    held: Counter[str] = field(default_factory=Counter[str])
    """Resources taken and not given back, by kind."""
    living: dict[int, str] = field(default_factory=dict[int, str])
    images: list[bytes] = field(default_factory=list[bytes])
    launched: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Functions and graphs, each with the stream of the launch."""
    busy: set[int] = field(default_factory=set[int])
    """Streams with unfinished work."""
    marks: dict[int, int] = field(default_factory=dict[int, int])
    """The streams of recorded events."""
    gone: set[int] = field(default_factory=set[int])
    """Destroyed streams."""
    homes: dict[int, int] = field(default_factory=dict[int, int])
    """The GPUs of addresses."""
    differ: bool = False
    """The results of comparisons of halos."""
    relaxed: bool = False
    broken: bool = False
    """Every call fails from now on, as after an illegal access."""
    most: Counter[str] = field(default_factory=Counter[str])
    number: int = 1 << 20
    reachable: bool = True
    """Whether GPUs have access to each other's memory."""
    reached: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs of GPUs with access switched on."""
    copied: list[int] = field(default_factory=list[int])
    """Bytes of copies between pointers."""
    uploaded: set[int] = field(default_factory=set[int])
    """Graphs prepared for launches."""
    locked: dict[int, Any] = field(default_factory=dict[int, Any])
    """Page-locked memory of the host, by address."""
    captured: dict[int, int] = field(default_factory=dict[int, int])
    """Streams being captured into graphs, the first one first, and the count of their work."""
    roots: dict[int, int] = field(default_factory=dict[int, int])
    """The first stream of each captured stream's graph."""
    recorded: dict[int, int] = field(default_factory=dict[int, int])
    """Events recorded in a capture, and the count of work before."""
    joined: dict[int, int] = field(default_factory=dict[int, int])
    """The count of work of captured streams that the first stream waits for."""

    late: int = 0
    """Questions about events to be answered with no, and then with yes."""

    CUDA_MEMCPY3D = SimpleNamespace
    CUresult = SimpleNamespace(CUDA_ERROR_NOT_READY=600)
    CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_UNIFIED="unified")
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUDA_KERNEL_NODE_PARAMS = SimpleNamespace
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_NONE=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL="ordinal")
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared")
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="multiprocessors",
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE="memory clock",
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH="memory bus",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR="all shared",
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE="clock",
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE="l2",
    )
    CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP = 1, 2

    def take(self, kind: str) -> tuple[Any, int]:
        """Something new."""
        if self.broken:
            return Failed("CUDA_ERROR_ILLEGAL_ADDRESS", 700), 0
        self.number += 1 << 12
        self.living[self.number] = kind
        self.held[kind] += 1
        self.most[kind] = max(self.most[kind], self.held[kind])
        return 0, self.number

    def give(self, kind: str, thing: int) -> tuple[Any]:
        """Back."""
        if self.broken:
            return (Failed("CUDA_ERROR_ILLEGAL_ADDRESS", 700),)
        assert self.living.pop(thing) == kind, f"{kind} {thing} is none, or was given back before"
        self.held[kind] -= 1
        return (0,)

    @property
    def left(self) -> dict[str, int]:
        """Held resources, without the context."""
        return {kind: count for kind, count in self.held.items() if count and kind != "context"}

    # Devices and contexts.

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13010

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, self.gpus

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return 0, number

    def cuDeviceTotalMem(self, handle: int) -> tuple[int, int]:
        return 0, 80 << 30

    def cuDevicePrimaryCtxRetain(self, handle: int) -> tuple[Any, int]:
        return self.take("context")

    def cuDeviceGetName(self, size: int, handle: int) -> tuple[int, bytes]:
        return 0, self.name.encode() + b"\0"

    def cuDeviceGetAttribute(self, attribute: str, handle: int) -> tuple[int, int]:
        major, minor = self.arch
        known = {
            "major": major,
            "minor": minor,
            "multiprocessors": self.multiprocessors,
            "memory clock": self.memory_kilohertz,
            "memory bus": self.memory_bits,
            "shared": self.shared_bytes,
            "all shared": self.shared_bytes + 1024,
            "clock": self.kilohertz,
            "l2": self.l2_bytes,
        }
        return 0, known[attribute]

    def cuCtxPushCurrent(self, context: int) -> tuple[int]:
        return (0,)

    def cuCtxPopCurrent(self) -> tuple[int, int]:
        return 0, 0

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        return (0,)

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> tuple[int, Any]:
        before, self.relaxed = self.relaxed, mode in ("relaxed", True)
        return 0, before

    # Memory.

    def cuMemAlloc(self, size: int) -> tuple[Any, int]:
        return self.take("memory")

    def cuMemFree(self, pointer: int) -> tuple[Any]:
        assert not self.busy, "memory is freed that a launch may use"
        return self.give("memory", pointer)

    def cuMemAllocHost(self, size: int) -> tuple[Any, int]:
        words = (ctypes.c_uint32 * -(-size // 4))()
        place = ctypes.addressof(words)
        self.locked[place] = words
        return 0, place

    def cuMemFreeHost(self, place: int) -> tuple[int]:
        del self.locked[place]
        return (0,)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        self.word = ctypes.c_uint32()
        return 0, ctypes.addressof(self.word)

    def cuMemHostGetDevicePointer(self, place: int, flags: int) -> tuple[int, int]:
        return 0, place

    def cuMemcpyHtoD(self, *_: Any) -> tuple[int]:
        return (0,)

    def cuMemcpyDtoH(self, *_: Any) -> tuple[int]:
        return (0,)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        self.busy.add(stream)
        return (0,)

    def cuMemsetD8Async(self, *_: Any) -> tuple[int]:
        return (0,)

    def cuPointerGetAttribute(self, what: str, pointer: int) -> tuple[int, int]:
        home = self.homes.get(pointer)
        return (0, home) if home is not None else (1, 0)

    # Several devices.

    def cuDeviceCanAccessPeer(self, handle: int, other: int) -> tuple[int, int]:
        return 0, int(self.reachable)

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> tuple[Any]:
        if (context, context) in self.reached:
            return (Failed("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", 704),)
        self.reached.append((context, context))
        return (0,)

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        self.work_on(stream)
        self.copied.append(size)
        return (0,)

    def cuMemcpy3DAsync(self, what: SimpleNamespace, stream: int) -> tuple[int]:
        assert what.srcPitch >= what.WidthInBytes and what.dstPitch >= what.WidthInBytes
        assert what.srcMemoryType == what.dstMemoryType == "unified"
        self.work_on(stream)
        self.copied.append(what.WidthInBytes * what.Height * what.Depth)
        return (0,)

    # Streams and events.

    def cuStreamCreate(self, flags: int) -> tuple[Any, int]:
        return self.take("stream")

    def cuCtxGetStreamPriorityRange(self) -> tuple[int, int, int]:
        return 0, 0, -5

    def cuStreamCreateWithPriority(self, flags: int, priority: int) -> tuple[Any, int]:
        assert priority == -5
        return self.take("stream")

    def cuStreamDestroy(self, stream: int) -> tuple[Any]:
        self.gone.add(stream)
        return self.give("stream", stream)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> tuple[int]:
        assert self.living[event] == "event" and event in self.marks
        if event in self.recorded:
            root = self.roots.get(self.marks[event])
            assert root is not None, "a recorded event is waited for outside of its capture"
            self.captured.setdefault(stream, 0)
            assert self.roots.setdefault(stream, root) == root, "captures wait for each other"
            if stream == root:
                self.joined[self.marks[event]] = self.recorded[event]
        else:
            assert stream not in self.captured, "recorded work waits for an event from before"
        return (0,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        assert stream not in self.gone, "a stream is waited for that is gone"
        self.busy.discard(stream)
        return (0,)

    def cuStreamIsCapturing(self, stream: int) -> tuple[int, int]:
        return 0, 0

    def cuEventCreate(self, flags: int) -> tuple[Any, int]:
        return self.take("event")

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        assert self.living[event] == "event" and stream not in self.gone
        self.marks[event] = stream
        self.recorded.pop(event, None)
        if stream in self.captured:
            self.recorded[event] = self.captured[stream]
        return (0,)

    def work_on(self, stream: int) -> None:
        """A stream has work."""
        if stream in self.captured:
            self.captured[stream] += 1
        else:
            self.busy.add(stream)

    def cuEventSynchronize(self, event: int) -> tuple[int]:
        assert self.living[event] == "event"
        self.busy.discard(self.marks[event])
        return (0,)

    def cuEventElapsedTime(self, before: int, after: int) -> tuple[int, float]:
        assert self.living[before] == self.living[after] == "event"
        return 0, 2 * self.copied[-1] / self.copy_tb_per_s / 1e9

    def cuEventQuery(self, event: int) -> tuple[int]:
        assert self.living[event] == "event"
        self.late -= 1
        return (0 if self.late < 0 else 600,)

    def cuEventDestroy(self, event: int) -> tuple[Any]:
        return self.give("event", event)

    # Modules.

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, int]:
        self.images.append(image)
        return self.take("module")

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[int, tuple[int, str]]:
        image = self.images[-1]
        assert name in image, f"the loaded image has no function {name.decode()}"
        return 0, (module, name.decode())

    def cuFuncGetModule(self, function: tuple[int, str]) -> tuple[int, int]:
        return 0, function[0]

    def cuFuncSetAttribute(self, *_: Any) -> tuple[int]:
        return (0,)

    def cuModuleUnload(self, module: int) -> tuple[Any]:
        assert not self.busy, "a kernel is unloaded that may run"
        return self.give("module", module)

    # Launches and graphs.

    def cuLaunchKernel(self, function: tuple[int, str], *others: Any) -> tuple[int]:
        assert self.living[function[0]] == "module", "the kernel is not loaded any more"
        stream = others[7]
        if function[1].startswith("halos_differ"):
            self.word.value = int(self.differ)
        self.work_on(stream)
        self.launched.append((function[1], stream))
        return (0,)

    def cuStreamBeginCapture(self, stream: int, mode: str) -> tuple[int]:
        assert mode == "relaxed" and stream not in self.captured
        self.captured[stream], self.roots[stream] = 0, stream
        return (0,)

    def cuStreamEndCapture(self, stream: int) -> tuple[int, list[Any]]:
        """Every stream has waited for all recorded work, directly."""
        assert self.roots[stream] == stream
        for other in [each for each, root in self.roots.items() if root == stream]:
            count = self.captured.pop(other)
            del self.roots[other]
            joined = self.joined.pop(other, None)
            assert other == stream or joined == count, "recorded work is not joined"
        return 0, []

    def cuGraphCreate(self, flags: int) -> tuple[int, list[Any]]:
        return 0, []

    def cuGraphAddKernelNode(
        self, graph: list[Any], before: list[Any], count: int, what: SimpleNamespace
    ) -> tuple[int, Any]:
        graph.append(what.func)
        return 0, what

    def cuGraphInstantiate(self, graph: list[Any], flags: int) -> tuple[Any, int]:
        return self.take("graph")

    def cuGraphDestroy(self, graph: list[Any]) -> tuple[int]:
        return (0,)

    def cuGraphExecDestroy(self, graph: int) -> tuple[Any]:
        return self.give("graph", graph)

    def cuGraphUpload(self, graph: int, stream: int) -> tuple[int]:
        assert self.living[graph] == "graph"
        self.uploaded.add(graph)
        return (0,)

    def cuGraphLaunch(self, graph: int, stream: int) -> tuple[int]:
        assert self.living[graph] == "graph"
        self.busy.add(stream)
        self.launched.append(("graph", stream))
        return (0,)


@dataclass(frozen=True)
class Failed:
    """A status other than success."""

    name: str
    number: int

    def __int__(self) -> int:
        return self.number
