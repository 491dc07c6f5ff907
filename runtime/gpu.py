"""An NVIDIA GPU, through cuda-python: its memory, kernels, launches and graphs of launches."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from threading import Lock
from typing import Any

from timetile.lowering.ptx.symbols import report_symbol, symbol
from timetile.lowering.tile_to_gpu.inboxes import launch_words
from timetile.passes.diagnostics import CompileError
from timetile.runtime.arguments import Arguments
from timetile.runtime.cuda import cuda_module
from timetile.runtime.halos import COMPARE_HALOS, WARPS_OF_A_BLOCK, WORD_BYTES, HaloFrame
from timetile.runtime.kernels import Kernel

DEFAULT_SHARED_BYTES = 48 << 10
"""Dynamic shared memory that a kernel may use without asking."""

MESSAGE_WORD_BYTES = 8
"""A word of a message, four bytes of a cell and the number of the message."""


@dataclass(frozen=True)
class Unavailable:
    """Why there is no GPU to run on."""

    reason: str


@cache
def driver() -> Any:
    """The driver's bindings, initialised; Unavailable where no driver answers."""
    # cuda.core hangs where there is no driver: ask for the library first.
    try:
        bindings, pathfinder = cuda_module("bindings.driver"), cuda_module("pathfinder")
    except ImportError as error:
        return Unavailable(f"cuda-python is not installed ({error})")
    try:
        pathfinder.load_nvidia_dynamic_lib("cuda")
    except (pathfinder.DynamicLibNotFoundError, RuntimeError) as error:
        return Unavailable(f"no NVIDIA driver was found ({error})")
    (status,) = bindings.cuInit(0)
    if status != bindings.CUresult.CUDA_SUCCESS:
        return Unavailable(f"the NVIDIA driver does not start ({status.name})")
    return bindings


def gpu_is_available() -> bool:
    """A driver and a GPU answer."""
    return not isinstance(driver(), Unavailable)


def checked(result: tuple[Any, ...]) -> Any:
    """The value that a driver call returned; RuntimeError where it failed."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"the NVIDIA driver reports {status.name}")
    return values[0] if len(values) == 1 else tuple(values) if values else None


class Device:
    """One GPU, its primary context and the kernels that are loaded on it."""

    def __init__(self, number: int = 0):
        cuda = driver()
        if isinstance(cuda, Unavailable):
            raise RuntimeError(f"cannot run on a GPU: {cuda.reason}")
        self.cuda = cuda
        self.number = number
        self.handle = checked(cuda.cuDeviceGet(number))
        self.context = checked(cuda.cuDevicePrimaryCtxRetain(self.handle))
        self.kernels: dict[Kernel, Kernel] = {}
        self.loaded: dict[Kernel, Any] = {}
        self.resident: dict[Kernel, int] = {}
        """Tiles that the device holds at once, of kernels whose blocks wait for each other."""
        self.inboxes: dict[tuple[Kernel, int], int] = {}
        """Device memory by which the blocks of a kernel exchange edges, one for each stream."""
        self.comparing: tuple[Any, ctypes.c_uint32, int] | None = None
        """The function that compares halos, loaded once, and the word of its answer, on the host and on the device."""
        self.one_comparison = Lock()
        self.one_report = Lock()

    def attribute(self, name: str) -> int:
        """A device attribute, by the end of its name in the driver's enumeration."""
        attribute = getattr(self.cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self.cuda.cuDeviceGetAttribute(attribute, self.handle)))

    @property
    def name(self) -> str:
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

    def allocate(self, size: int) -> int:
        """Device memory of `size` bytes."""
        try:
            return int(checked(self.cuda.cuMemAlloc(max(size, 1))))
        except RuntimeError as error:
            raise MemoryError(f"{size} bytes of device memory: {error}") from error

    def free(self, pointer: int) -> None:
        checked(self.cuda.cuMemFree(pointer))

    def upload(self, pointer: int, array: Any) -> None:
        """Copy a NumPy array to the device."""
        checked(self.cuda.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))

    def download(self, array: Any, pointer: int) -> None:
        """Copy device memory to a NumPy array."""
        checked(self.cuda.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))

    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done its work."""
        checked(self.cuda.cuStreamSynchronize(stream))

    def is_capturing(self, stream: int) -> bool:
        """What the stream is given goes into a graph; the default stream's never does."""
        if not stream:
            return False
        status = checked(self.cuda.cuStreamIsCapturing(stream))
        return bool(status != self.cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Let a stream wait for what another one has been given so far."""
        if waiting == other:
            return
        flags = int(self.cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        event = checked(self.cuda.cuEventCreate(flags))
        checked(self.cuda.cuEventRecord(event, other))
        checked(self.cuda.cuStreamWaitEvent(waiting, event, 0))
        checked(self.cuda.cuEventDestroy(event))

    def function(self, image: bytes, name: str) -> Any:
        """A function of machine code, or of PTX that ends with a zero."""
        module = checked(self.cuda.cuModuleLoadData(image))
        return checked(self.cuda.cuModuleGetFunction(module, symbol(name).encode()))

    def known(self, kernel: Kernel) -> Kernel:
        """The first kernel that was equal to it: to look that one up compares no code."""
        return self.kernels.setdefault(kernel, kernel)

    def load(self, kernel: Kernel) -> Any:
        """The function of a kernel, loaded once."""
        if kernel not in self.loaded:
            image = kernel.cubin if kernel.cubin is not None else kernel.ptx.encode() + b"\0"
            function = self.function(image, kernel.name)
            if kernel.shared_bytes > DEFAULT_SHARED_BYTES:
                limit = self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
                if kernel.shared_bytes > limit:
                    raise CompileError(
                        f"kernel @{kernel.name} needs {kernel.shared_bytes} bytes of shared memory "
                        f"and {self.name} has {limit} a block; use fewer planes ahead, a smaller "
                        "depth or fewer warps"
                    )
                attribute = self.cuda.CUfunction_attribute
                name = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                checked(self.cuda.cuFuncSetAttribute(function, name, kernel.shared_bytes))
            self.loaded[kernel] = function
        return self.loaded[kernel]

    def launch(self, kernel: Kernel, arguments: Arguments, stream: int) -> None:
        """
        Launch a kernel. Where the blocks of a tile wait for each other, as many tiles as the device holds at
        once; CompileError where it does not hold one.
        """
        if kernel.bound_waits and self.is_capturing(stream):
            raise RuntimeError(
                f"kernel @{kernel.name} is waited for, as its waits are bounded, and a stream that is captured "
                "cannot be; compile it without bound_waits"
            )
        if kernel.apart > 1:
            self.launch_tiles(kernel, arguments, stream)
            return
        report = self.report_of(kernel)
        if report is None:
            self.launch_grid(kernel, arguments, stream)
            return
        # All streams and threads share the module's word.
        with self.one_report:
            checked(self.cuda.cuMemsetD8Async(report, 0, MESSAGE_WORD_BYTES, stream))
            self.launch_grid(kernel, arguments, stream)
            self.check_waits(kernel, report, stream)

    def launch_grid(self, kernel: Kernel, arguments: Arguments, stream: int) -> None:
        """Launch all blocks of a kernel whose blocks wait for no others but those of their cluster."""
        checked(
            self.cuda.cuLaunchKernel(
                self.load(kernel), kernel.grid, 1, 1, kernel.block, 1, 1,
                kernel.shared_bytes, stream, arguments.address, 0,
            )
        )  # fmt: skip

    def graph(self, launches: Sequence[tuple[Kernel, Arguments]]) -> Any:
        """
        Launches, one after the other, that `launch_graph` makes all at once: of kernels whose blocks wait for no
        others but those of their cluster, and whose waits are not bounded.
        """
        cuda = self.cuda
        graph = checked(cuda.cuGraphCreate(0))
        try:
            before: list[Any] = []
            for kernel, arguments in launches:
                what = cuda.CUDA_KERNEL_NODE_PARAMS()
                what.func = self.load(kernel)
                what.gridDimX, what.gridDimY, what.gridDimZ = kernel.grid, 1, 1
                what.blockDimX, what.blockDimY, what.blockDimZ = kernel.block, 1, 1
                what.sharedMemBytes, what.kernelParams = kernel.shared_bytes, arguments.address
                before = [checked(cuda.cuGraphAddKernelNode(graph, before, len(before), what))]
            return checked(cuda.cuGraphInstantiate(graph, 0))
        finally:
            checked(cuda.cuGraphDestroy(graph))

    def launch_graph(self, graph: Any, stream: int) -> None:
        checked(self.cuda.cuGraphLaunch(graph, stream))

    def free_graph(self, graph: Any) -> None:
        """Forget a graph; launches of it that were made go on."""
        checked(self.cuda.cuGraphExecDestroy(graph))

    def report_of(self, kernel: Kernel) -> int | None:
        """Where a kernel says who waited in vain for its block's or its cluster's warps; None where it does not."""
        symbol = report_symbol(kernel.name)
        if not kernel.bound_waits or symbol not in kernel.ptx:
            return None
        module = checked(self.cuda.cuFuncGetModule(self.load(kernel)))
        address, _ = checked(self.cuda.cuModuleGetGlobal(module, symbol.encode()))
        return int(address)

    def launch_tiles(self, kernel: Kernel, arguments: Arguments, stream: int) -> None:
        """
        A cooperative launch. Messages are numbered from 1 on in every one: their words are 0 before, also
        after a launch that was aborted.
        """
        tiles = kernel.grid // kernel.apart
        together = min(tiles, self.resident_tiles(kernel))
        size = launch_words(together, kernel.message_words) * MESSAGE_WORD_BYTES
        if (kernel, stream) not in self.inboxes:
            self.inboxes[kernel, stream] = self.allocate(size)
        inbox = self.inboxes[kernel, stream]
        checked(self.cuda.cuMemsetD8Async(inbox, 0, size, stream))
        given = arguments.followed_by((inbox, together), (ctypes.c_void_p, ctypes.c_int32))
        checked(
            self.cuda.cuLaunchCooperativeKernel(
                self.load(kernel), together * kernel.apart, 1, 1, kernel.block, 1, 1,
                kernel.shared_bytes, stream, given.address,
            )
        )  # fmt: skip
        if kernel.bound_waits:
            self.check_waits(kernel, inbox, stream)

    def check_waits(self, kernel: Kernel, place: int, stream: int) -> None:
        """RuntimeError where the word at a place says that a block of the kernel waited in vain."""
        import numpy as np

        report = np.zeros(2, dtype=np.uint32)
        self.synchronize(stream)
        self.download(report, place)
        block, number = (int(word) for word in report)
        if block:
            others = f"message or barrier {number} of the tile's other blocks"
            own = "the warps of its cluster" if kernel.cluster > 1 else "its own warps"
            what = others if number else own
            raise RuntimeError(
                f"block {block - 1} of kernel @{kernel.name} waited in vain for {what}: this is a bug "
                "of the compiler; please report it with the program"
            )

    def halos_differ(self, frame: HaloFrame, first: int, other: int, stream: int) -> bool:
        """
        Some cell around the frame's box has other bits in one buffer than in the other; waits for what the stream has
        been given so far.
        """
        # All streams and threads share the word of the answer.
        with self.one_comparison:
            if self.comparing is None:
                compare = self.function(COMPARE_HALOS.encode() + b"\0", "halos_differ")
                self.comparing = compare, *self.word_of_host()
            function, answer, place = self.comparing
            answer.value = 0
            arguments = Arguments(
                (first, other, place, *chain.from_iterable(frame.words()), frame.segments),
                (ctypes.c_void_p,) * 3 + (ctypes.c_uint32,) * 10,
            )
            checked(
                self.cuda.cuLaunchKernel(
                    function, frame.blocks, 1, 1, 32 * WARPS_OF_A_BLOCK, 1, 1, 0, stream, arguments.address, 0
                )
            )  # fmt: skip
            self.synchronize(stream)
            return bool(answer.value)

    def word_of_host(self) -> tuple[ctypes.c_uint32, int]:
        """A word of the host's memory that kernels write, and where they find it: nothing needs to be copied."""
        cuda = self.cuda
        flags = cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP
        place = int(checked(cuda.cuMemHostAlloc(WORD_BYTES, flags)))
        on_device = int(checked(cuda.cuMemHostGetDevicePointer(place, 0)))
        return ctypes.c_uint32.from_address(place), on_device

    def forget(self, kernels: Collection[Kernel], stream: int) -> None:
        """Free the device memory by which blocks of kernels on a stream exchanged edges, once they have."""
        keys = [(kernel, stream) for kernel in kernels if (kernel, stream) in self.inboxes]
        if keys:
            self.synchronize(stream)
        for key in keys:
            self.free(self.inboxes.pop(key))

    def resident_tiles(self, kernel: Kernel) -> int:
        """
        The tiles of a kernel, of `apart` blocks each, that the device holds at once; CompileError where
        not even one fits.
        """
        if kernel in self.resident:
            return self.resident[kernel]
        each = checked(
            self.cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.load(kernel), kernel.block, kernel.shared_bytes
            )
        )
        blocks = each * self.attribute("MULTIPROCESSOR_COUNT")
        if blocks < kernel.apart:
            raise CompileError(
                f"kernel @{kernel.name} needs {kernel.apart} blocks of {kernel.block} threads, "
                f"{kernel.registers} registers and {kernel.shared_bytes} bytes of shared memory at "
                f"once, as they wait for each other, and {self.name} holds {blocks}; give "
                f"device-tiling at most {blocks} blocks, or tile=block"
            )
        self.resident[kernel] = blocks // kernel.apart
        return self.resident[kernel]


@cache
def device(number: int = 0) -> Device:
    """The device of a number, opened once."""
    return Device(number)
