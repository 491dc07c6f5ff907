"""The kernels of a GPU: loaded, launched, in graphs of launches, and given back."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from itertools import chain
from threading import Lock, RLock
from typing import Any

from timetile.lowering.comparing_kernels import WARPS_OF_A_BLOCK, comparing_name
from timetile.lowering.gather_kernels import THREADS, gather_name
from timetile.lowering.ptx.symbols import report_symbol
from timetile.lowering.reduction_kernels import Round
from timetile.lowering.tile_to_gpu.message_buffers import launch_words
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.isa import version_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu_memory import GpuMemory
from timetile.runtime.device.small_kernels import SmallKernels
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.gathering import GatherFrame
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.reducing import THREADS as BLOCK
from timetile.runtime.kernels.reducing import comparing_text, gather_text
from timetile.runtime.machine.driver import checked

DEFAULT_SHARED_BYTES = 48 << 10
"""Bytes of dynamic shared memory allowed without asking."""

MESSAGE_WORD_BYTES = 8
"""A word of a message, four bytes of a cell and the number of the message."""


def image_of(kernel: Kernel, arch: str) -> bytes:
    """
    The image of a kernel for a GPU: machine code if it runs on the GPU, as on GPUs of equal major
    version and no older; otherwise PTX ending with a zero, for the driver's assembler.
    """
    made_for, runs_on = version_of(kernel.arch), version_of(arch)
    if kernel.cubin is not None and made_for[0] == runs_on[0] and made_for <= runs_on:
        return kernel.cubin
    return kernel.ptx.encode() + b"\0"


ROW_BYTES = 1 << 16
"""Bytes of the numbers of a check, 8 for each."""


class Device(GpuMemory):
    """One GPU, and the kernels loaded on the GPU."""

    def __init__(self, number: int = 0):
        super().__init__(number)
        self.kernels: dict[Kernel, Kernel] = {}
        self.loaded: dict[Kernel, Any] = {}
        self.users: Counter[Kernel] = Counter()
        """The number of runners holding each kernel."""
        self.streams: Counter[tuple[Kernel, int]] = Counter()
        """The number of runners holding each kernel on each stream."""
        self.resident: dict[Kernel, int] = {}
        """Tiles held by the device at once, of kernels with blocks waiting for each other."""
        self.message_buffers: dict[tuple[Kernel, int], int] = {}
        """Device memory for exchanges between the blocks of a kernel, one for each stream."""
        self.answer_word: tuple[ctypes.c_uint32, int] | None = None
        """The word of the answer of a comparison, on the host and on the device."""
        self.common = SmallKernels(self)
        """Small kernels of all programs: loaded until the process ends."""
        self.sides: list[tuple[int, int]] = []
        """Sides for the copies of numbers that no run holds."""
        self.led = 0
        """Runs led by the host: of several, each is inside of the condition of another."""
        self.one_comparison = Lock()
        self.one_loop = RLock()
        """Held by a run whose work is recorded on `own_stream`, or on a stream of the caller's."""
        self.one_report = Lock()

    @cached_property
    def own_stream(self) -> int:
        """A stream for work to be recorded: the default stream cannot be."""
        return self.new_stream()

    def take_side(self) -> tuple[int, int]:
        """A stream for the copies of numbers, and page-locked memory of ROW_BYTES."""
        self.led += 1
        return (
            self.sides.pop() if self.sides else (self.new_stream(), self.allocate_locked(ROW_BYTES))
        )

    def give_side(self, side: tuple[int, int]) -> None:
        """
        Keep a side whose work is done for another run: to make and free page-locked memory takes a
        millisecond, and at times a tenth of a second.
        """
        self.led -= 1
        self.sides.append(side)

    def known(self, kernel: Kernel) -> Kernel:
        """The stored object equal to `kernel`. Later look-ups then compare identity, not code."""
        return self.kernels.setdefault(kernel, kernel)

    def load(self, kernel: Kernel) -> Any:
        """The function of a kernel, loaded once."""
        function = self.loaded.get(kernel)
        if function is not None:
            return function
        with self.one_load:
            if kernel not in self.loaded:
                image = image_of(kernel, self.arch)
                self.loaded[kernel] = self.loaded_now(image, kernel.name, kernel.shared_bytes)
            return self.loaded[kernel]

    def loaded_now(self, image: bytes, called: str, shared_bytes: int) -> Any:
        """
        The function of an image, with its shared memory. CompileError if a block has less: nothing
        is loaded then.
        """
        if shared_bytes <= DEFAULT_SHARED_BYTES:
            return self.function(image, called)
        limit = self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        if shared_bytes > limit:
            raise CompileError(
                f"kernel @{called} needs {shared_bytes} bytes of shared memory "
                f"and {self.name} has {limit} a block; use fewer planes ahead, a smaller "
                "depth or fewer warps"
            )
        function = self.function(image, called)
        attribute = self.cuda.CUfunction_attribute
        name = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(self.cuda.cuFuncSetAttribute(function, name, shared_bytes))
        return function

    # Kernels held by programs.

    def retain(self, kernel: Kernel, stream: int) -> None:
        """Note that a runner of a stream uses a kernel."""
        with self.one_load:
            self.users[kernel] += 1
            self.streams[kernel, stream] += 1

    def release(self, kernels: Collection[Kernel], stream: int) -> None:
        """
        Note that a runner of a stream, with all runs done, stops using kernels. After the last
        runner, free the memory for exchanges, and unload the kernels.
        """
        with self.one_load:
            for kernel in kernels:
                self.streams[kernel, stream] -= 1
                if self.streams[kernel, stream] <= 0:
                    del self.streams[kernel, stream]
                    if (kernel, stream) in self.message_buffers:
                        self.free(self.message_buffers.pop((kernel, stream)))
                self.users[kernel] -= 1
                if self.users[kernel] <= 0:
                    del self.users[kernel]
                    self.unload(kernel)

    def unload(self, kernel: Kernel) -> None:
        """Forget a kernel, and unload its module if loaded."""
        self.kernels.pop(kernel, None)
        self.resident.pop(kernel, None)
        function = self.loaded.pop(kernel, None)
        if function is not None:
            self.unload_function(function)

    def launch(self, kernel: Kernel, arguments: LaunchArguments, stream: int) -> None:
        """
        Launch a kernel. Where the blocks of a tile wait for each other, as many tiles as the device
        holds at once; CompileError where it does not hold one.
        """
        if not kernel.is_attended:
            self.launch_grid(kernel, arguments, stream)
            return
        if kernel.bound_waits and self.is_capturing(stream):
            raise RuntimeError(
                f"kernel @{kernel.name} has bounded waits, followed by a wait of the host, and a "
                "captured stream allows no wait of the host; compile the program without "
                "bound_waits"
            )
        if kernel.has_messages:
            self.launch_tiles(kernel, arguments, stream)
            return
        report = self.report_of(kernel)
        if report is None:
            self.launch_grid(kernel, arguments, stream)
            return
        # All streams and threads share the report word of the module.
        with self.one_report:
            checked(self.cuda.cuMemsetD8Async(report, 0, MESSAGE_WORD_BYTES, stream))
            self.launch_grid(kernel, arguments, stream)
            self.check_waits(kernel, report, stream)

    def launch_grid(self, kernel: Kernel, arguments: LaunchArguments, stream: int) -> None:
        """Launch all blocks of a kernel without waits between blocks, except in a cluster."""
        # Each call of Python counts: a launch takes a few microseconds.
        function = self.loaded.get(kernel)
        answer = self.cuda.cuLaunchKernel(
            self.load(kernel) if function is None else function, kernel.grid, 1, 1,
            kernel.block, 1, 1, kernel.shared_bytes, stream, arguments.address, 0,
        )  # fmt: skip
        if answer[0]:
            checked(answer)

    def graph(
        self,
        launches: Sequence[tuple[Kernel, LaunchArguments]],
        waits: Sequence[Sequence[int]] | None = None,
    ) -> Any:
        """
        A graph of launches, for `launch_graph`: of kernels without bounded waits, and without waits
        between blocks, except in a cluster. `waits`: the numbers of the earlier launches that each
        launch comes after; without, one comes after the other.
        """
        if waits is None:
            waits = [[number - 1] if number else [] for number in range(len(launches))]
        cuda = self.cuda
        graph = checked(cuda.cuGraphCreate(0))
        try:
            nodes: list[Any] = []
            for (kernel, arguments), others in zip(launches, waits, strict=True):
                what = cuda.CUDA_KERNEL_NODE_PARAMS()
                what.func = self.load(kernel)
                what.gridDimX, what.gridDimY, what.gridDimZ = kernel.grid, 1, 1
                what.blockDimX, what.blockDimY, what.blockDimZ = kernel.block, 1, 1
                what.sharedMemBytes, what.kernelParams = kernel.shared_bytes, arguments.address
                before = [nodes[other] for other in others]
                nodes.append(checked(cuda.cuGraphAddKernelNode(graph, before, len(before), what)))
            return checked(cuda.cuGraphInstantiate(graph, 0))
        finally:
            checked(cuda.cuGraphDestroy(graph))

    def upload_graph(self, graph: Any, stream: int) -> None:
        """Prepare a graph for launches, as work of a stream."""
        checked(self.cuda.cuGraphUpload(graph, stream))

    def launch_graph(self, graph: Any, stream: int) -> None:
        """Launch a graph on a stream."""
        checked(self.cuda.cuGraphLaunch(graph, stream))

    def free_graph(self, graph: Any) -> None:
        """Forget a graph. Launches already made go on."""
        checked(self.cuda.cuGraphExecDestroy(graph))

    def report_of(self, kernel: Kernel) -> int | None:
        """
        The address at which a kernel reports a wait in vain for warps of its block or cluster; None
        if the kernel does not report.
        """
        if not kernel.bound_waits:
            return None
        symbol = report_symbol(kernel.name)
        if symbol not in kernel.ptx:
            return None
        module = checked(self.cuda.cuFuncGetModule(self.load(kernel)))
        address, _ = checked(self.cuda.cuModuleGetGlobal(module, symbol.encode()))
        return int(address)

    def launch_tiles(self, kernel: Kernel, arguments: LaunchArguments, stream: int) -> None:
        """
        Make a cooperative launch. Messages are numbered from 1 in every launch: their words are set
        to 0 before, also after an aborted launch.
        """
        together = min(kernel.tiles, self.resident_tiles(kernel))
        size = launch_words(together, kernel.message_words) * MESSAGE_WORD_BYTES
        if (kernel, stream) not in self.message_buffers:
            self.message_buffers[kernel, stream] = self.allocate(size)
        words = self.message_buffers[kernel, stream]
        checked(self.cuda.cuMemsetD8Async(words, 0, size, stream))
        given = arguments.followed_by((words, together), (ctypes.c_void_p, ctypes.c_int32))
        checked(
            self.cuda.cuLaunchCooperativeKernel(
                self.load(kernel), together * kernel.blocks_per_tile, 1, 1, kernel.block, 1, 1,
                kernel.shared_bytes, stream, given.address,
            )
        )  # fmt: skip
        if kernel.bound_waits:
            self.check_waits(kernel, words, stream)

    def check_waits(self, kernel: Kernel, place: int, stream: int) -> None:
        """Raise RuntimeError if the word at a place reports a wait in vain of a block."""
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
                f"block {block - 1} of kernel @{kernel.name} waited in vain for {what}: this is a "
                "bug of the compiler; please report it with the program"
            )

    def halos_differ(
        self, frame: HaloFrame, first: int, other: int, stream: int, cache: Cache | None = None
    ) -> bool:
        """
        Whether some cell around the frame's box has different bits in two buffers. Waits for all
        earlier work of the stream. The kernel is kept in the cache.
        """
        # All streams and threads share the word of the answer.
        with self.one_comparison:
            size = frame.word_bytes
            if self.answer_word is None:
                self.answer_word = self.word_of_host()
            function = self.common.function(comparing_text(size, cache), comparing_name(size))
            answer, place = self.answer_word
            answer.value = 0
            arguments = LaunchArguments(
                (first, other, place, *chain.from_iterable(frame.words()), frame.segments),
                (ctypes.c_void_p,) * 3 + (ctypes.c_uint32,) * 10,
            )
            checked(
                self.cuda.cuLaunchKernel(
                    function, frame.blocks, 1, 1, 32 * WARPS_OF_A_BLOCK, 1, 1,
                    0, stream, arguments.address, 0,
                )
            )  # fmt: skip
            self.synchronize(stream)
            return bool(answer.value)

    def gather(
        self,
        frame: GatherFrame,
        pointers: Sequence[int],
        stream: int,
        cache: Cache | None = None,
        *,
        scatter: bool = False,
    ) -> None:
        """
        Copy cells to a field, the first of five, from the second, at places given by the others:
        places in the second, with `scatter` in the first. The kernel is kept in the cache.
        """
        name = gather_name(frame.cell_bytes, scatter=scatter)
        text = gather_text(frame.cell_bytes, cache, scatter=scatter)
        function = self.common.function(text, name)
        numbers = frame.numbers()
        types = (ctypes.c_void_p,) * len(pointers) + (ctypes.c_int64,) * len(numbers)
        arguments = LaunchArguments((*pointers, *numbers), types)
        checked(
            self.cuda.cuLaunchKernel(
                function, frame.blocks, 1, 1, THREADS, 1, 1,
                0, stream, arguments.address, 0,
            )
        )  # fmt: skip

    def reduce(self, function: Any, made: Round, pointers: Sequence[int], stream: int) -> None:
        """
        Run a round of a reduction, a loaded function: read fields, and write numbers to the last
        pointer's.
        """
        arguments = LaunchArguments(tuple(pointers), (ctypes.c_void_p,) * len(pointers))
        checked(
            self.cuda.cuLaunchKernel(
                function, made.grid, 1, 1, BLOCK, 1, 1, 0, stream, arguments.address, 0
            )
        )

    def resident_tiles(self, kernel: Kernel) -> int:
        """
        The tiles of a kernel, of `blocks_per_tile` blocks each, held by the device at once. Raises
        CompileError if not even one fits.
        """
        if kernel in self.resident:
            return self.resident[kernel]
        each = checked(
            self.cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.load(kernel), kernel.block, kernel.shared_bytes
            )
        )
        blocks = each * self.attribute("MULTIPROCESSOR_COUNT")
        if blocks < kernel.blocks_per_tile:
            raise CompileError(
                f"kernel @{kernel.name} needs {kernel.blocks_per_tile} blocks of {kernel.block} "
                f"threads, {kernel.registers} registers and {kernel.shared_bytes} bytes of shared "
                f"memory at once, for blocks that wait for each other, and {self.name} holds "
                f"{blocks}; give device-tiling at most {blocks} blocks, or tile=block"
            )
        self.resident[kernel] = blocks // kernel.blocks_per_tile
        return self.resident[kernel]


@cache
def opened(number: int) -> Device:
    """The device of a number, opened now."""
    return Device(number)


def device(number: int = 0) -> Device:
    """The device of a number, opened once, whichever thread asks first."""
    with Device.one_load:
        return opened(number)
