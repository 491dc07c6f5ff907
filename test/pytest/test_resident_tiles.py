"""
Kernels whose blocks wait for each other, as the GPU's runtime launches them: as many tiles as the device
holds at once, on words that are 0 before. The driver is one that notes down what it is asked.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.ptx.waits import MOST_POLLS, MOST_SLEEPS
from timetile.lowering.tile_to_gpu.inboxes import HEADER_WORDS
from timetile.passes.diagnostics import CompileError
from timetile.runtime.device import gpu_memory
from timetile.runtime.device.arguments import Arguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.of_program import Kernel
from timetile.runtime.loading.modules import load_text

MULTIPROCESSORS = 10


class Attribute(Enum):
    """The device attributes that the runtime asks for."""

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = MULTIPROCESSORS
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 9
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 0


class Capture(Enum):
    """Whether a stream's work goes into a graph."""

    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1


AFTER = 1 << 20
"""Bytes between the host's and the device's address of a word of host memory."""


@dataclass
class FakeDriver:
    """A driver of one GPU, which holds `fitting` blocks a multiprocessor."""

    fitting: int = 1
    calls: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """What changes the device, in order."""
    allocated: int = 0
    report: tuple[int, int] = (0, 0)
    """What the first words of device memory hold."""
    captures: Capture = Capture.CU_STREAM_CAPTURE_STATUS_NONE
    """Whether streams are being captured."""

    word: ctypes.c_uint32 = field(default_factory=ctypes.c_uint32)
    """Memory of the host that the device writes, too, at an address that is `AFTER` the host's."""

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
        if function == "function halos_differ":
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
        """The arguments are read as the driver does, which has the types from the kernel."""
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


def size_of(tiles: int) -> int:
    """Bytes of the words of several tiles of the kernel."""
    return (HEADER_WORDS + tiles * 512) * 8


FIELDS = Arguments((1, 2), (ctypes.c_void_p, ctypes.c_void_p))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver()
    monkeypatch.setattr(gpu_memory, "driver", lambda: driver)
    return driver


def test_a_cooperative_launch_has_as_many_tiles_as_the_device_holds(fake: FakeDriver):
    """Ten blocks hold two tiles of four; their words are 0 before every launch, and kept between."""
    device = Device()
    device.launch(KERNEL, FIELDS, 7)
    device.launch(KERNEL, FIELDS, 7)
    size = size_of(2)
    launch = [
        ("set", 1000, 0, size, 7),
        ("together", "function heat_d4", 8, 256, 4096, 7, (1, 2, 1000, 2)),
    ]
    assert fake.calls == [("allocate", size), *launch, *launch]


def test_no_more_tiles_than_there_are(fake: FakeDriver):
    fake.fitting = 3
    Device().launch(KERNEL, FIELDS, 0)
    allocate, _, launch = fake.calls
    assert allocate == ("allocate", size_of(5))
    assert launch[2] == 5 * 4
    assert launch[-1] == (1, 2, 1000, 5)


def test_blocks_that_wait_for_nobody(fake: FakeDriver):
    """Nothing is allocated, and the whole grid is launched at once."""
    Device().launch(replace(KERNEL, blocks_per_tile=1, message_words=0), FIELDS, 0)
    assert fake.calls == [("launch", "function heat_d4", 20)]


def test_halos_that_are_compared(fake: FakeDriver):
    """The answer is of this comparison, not of one before; it is waited for, and not copied."""
    device, frame = Device(), HaloFrame((3, 5, 7), (1, 1, 1), (2, 4, 6), 8)
    answers = [device.halos_differ(frame, 1000, other, 7) for other in (1000, 2000, 1000)]
    assert answers == [False, True, False]
    assert fake.calls == [("launch", "function halos_differ", 2), ("synchronize", 7)] * 3


def test_launches_of_a_graph(fake: FakeDriver):
    """They run one after the other, each with its own arguments."""
    device, alone = Device(), replace(KERNEL, blocks_per_tile=1, message_words=0)
    others = Arguments((2, 1), (ctypes.c_void_p, ctypes.c_void_p))
    graph = device.graph([(alone, FIELDS), (alone, others)])
    device.launch_graph(graph, 7)
    device.free_graph(graph)
    shape = (20, 256, 4096)
    assert fake.calls == [
        ("function heat_d4 0", [], shape, FIELDS.address),
        ("function heat_d4 1", ["function heat_d4 0"], shape, others.address),
        ("instantiate", "graph"),
        ("destroy", "graph"),
        ("launch", "executable", 7),
        ("destroy", "executable"),
    ]


def test_a_tile_that_does_not_fit(fake: FakeDriver):
    wide = replace(KERNEL, grid=2 * 11, blocks_per_tile=11)
    with pytest.raises(CompileError) as caught:
        Device().launch(wide, FIELDS, 0)
    assert str(caught.value) == (
        "kernel @heat_d4 needs 11 blocks of 256 threads, 168 registers and 4096 bytes of shared memory at "
        "once, as they wait for each other, and A GPU holds 10; give device-tiling at most 10 blocks, or "
        "tile=block"
    )
    assert fake.calls == []


def test_what_is_given_back_is_freed(fake: FakeDriver):
    """Every kernel has words of its own on every stream; those of one stream go together."""
    device, other = Device(), replace(KERNEL, name="heat_step")
    for kernel, stream in ((KERNEL, 1), (other, 1), (KERNEL, 2)):
        device.retain(kernel, stream)
        device.launch(kernel, FIELDS, stream)
    fake.calls.clear()
    device.release([KERNEL, other], 1)
    assert fake.calls == [
        ("free", 1000),
        ("free", 2000),
        ("unload", "module of function heat_step"),
    ]
    device.launch(KERNEL, FIELDS, 2)
    assert fake.calls[3][:2] == ("set", 3000)
    device.release([KERNEL], 2)
    assert fake.calls[5:] == [("free", 3000), ("unload", "module of function heat_d4")]


BOUNDED = replace(KERNEL, bound_waits=True)
"""A kernel that reports waits that are in vain."""


def test_waits_that_are_not_in_vain(fake: FakeDriver):
    """A launch whose waits are bounded is waited for, and its report read."""
    Device().launch(BOUNDED, FIELDS, 7)
    assert fake.calls[-2:] == [("synchronize", 7), ("download", 1000, 8)]


@pytest.mark.parametrize(
    ("report", "what"),
    [((4, 17), "message or barrier 17 of the tile's other blocks"), ((4, 0), "its own warps")],
)
def test_a_wait_in_vain(fake: FakeDriver, report: tuple[int, int], what: str):
    fake.report = report
    with pytest.raises(RuntimeError) as caught:
        Device().launch(BOUNDED, FIELDS, 0)
    assert str(caught.value) == (
        f"block 3 of kernel @heat_d4 waited in vain for {what}: this is a bug of the compiler; please "
        "report it with the program"
    )


ALONE = replace(
    BOUNDED,
    blocks_per_tile=1,
    message_words=0,
    ptx=".visible .global .align 8 .u64 heat_d4$report;",
)
"""A kernel whose warps wait for each other alone: its report lies in its module."""


def test_waits_for_warps_that_are_not_in_vain(fake: FakeDriver):
    """The word of the report is 0 before the launch, which is waited for."""
    Device().launch(ALONE, FIELDS, 7)
    assert fake.calls == [
        ("set", 77000, 0, 8, 7),
        ("launch", "function heat_d4", 20),
        ("synchronize", 7),
        ("download", 77000, 8),
    ]


def test_kernels_that_wait_for_nobody_report_nothing(fake: FakeDriver):
    Device().launch(replace(ALONE, ptx=""), FIELDS, 7)
    assert fake.calls == [("launch", "function heat_d4", 20)]


@pytest.mark.parametrize("kernel", [ALONE, BOUNDED])
def test_launches_that_are_waited_for_are_not_captured(fake: FakeDriver, kernel: Kernel):
    fake.captures = Capture.CU_STREAM_CAPTURE_STATUS_ACTIVE
    with pytest.raises(RuntimeError) as caught:
        Device().launch(kernel, FIELDS, 7)
    assert str(caught.value) == (
        "kernel @heat_d4 is waited for, as its waits are bounded, and a stream that is captured cannot be; compile "
        "it without bound_waits"
    )
    assert fake.calls == []


@pytest.mark.parametrize(
    ("cluster", "what"), [(1, "its own warps"), (2, "the warps of its cluster")]
)
def test_a_wait_for_warps_in_vain(fake: FakeDriver, cluster: int, what: str):
    fake.report = (4, 0)
    with pytest.raises(
        RuntimeError, match=f"^block 3 of kernel @heat_d4 waited in vain for {what}: this"
    ):
        Device().launch(replace(ALONE, cluster=cluster), FIELDS, 0)


# What bounded waits are on the GPU.


def test_a_kernel_without_messages_reports_in_its_module():
    """The word is the module's own, where a kernel of it has bounded waits; the loop is the same."""
    module = load_text(f"""
llvm.func @k(%n: i32) attributes {{
    nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32}} {{
  {ARRIVALS}
  llvm.return
}}
""")
    bounded, unbounded = (
        print_module(kernels_of(module), "8.1", "sm_90", bound_waits=bound)
        for bound in (True, False)
    )
    assert ".visible .global .align 8 .u64 k$report;" in bounded
    assert "mov.u64 %rd1, k$report;" in bounded
    assert "st.relaxed.gpu.global.u64 [%rd1], %rd2;" in bounded
    assert "k$report" not in unbounded


def instructions_of(body: str, *, bound_waits: bool) -> list[str]:
    """A kernel's instructions behind its arguments: %rd1 is where waits are reported, %r1 a number."""
    module = load_text(f"""
"gpu.module"() <{{sym_name = "k"}}> ({{
  llvm.func @k(%words: !llvm.ptr<1>, %n: i32) attributes {{
      nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32}} {{
    {body}
    llvm.return
  }}
}}) {{tile.launch = #tile.launch<steps 1, roles [], grid 26, block 64, shared_bytes 0, occupancy 1,
    blocks_per_tile 13, message_words 64>}} : () -> ()
""")
    text = print_module(kernels_of(module), "8.1", "sm_90", bound_waits=bound_waits)
    _, found, rest = text.partition("ld.param.u32 %r1, [k_param_1];\n")
    assert found
    return [line.strip().removesuffix(";") for line in rest.splitlines()]


TAKE = "%a = simt.take %words[4] number %n : f32"
MEET = "simt.tile_barrier %words[] number %n blocks 13"
ARRIVALS = """
%w = simt.shared at 0 : !llvm.ptr<3>
"nvvm.mbarrier.try_wait.parity.shared"(%w, %n, %n) : (!llvm.ptr<3>, i32, i32) -> ()
"""


def test_a_bounded_take():
    """The lanes of a warp wait together for all words: they vote on them, and on whether to leave."""
    assert instructions_of(TAKE, bound_waits=True)[:19] == [
        "mov.u32 %r2, 0",
        "$take_1:",
        "ld.relaxed.gpu.global.b64 %rd2, [%rd1+32]",
        "mov.b64 {%r3, %r4}, %rd2",
        "setp.ne.u32 %p1, %r4, %r1",
        "vote.sync.any.pred %p2, %p1, -1",
        "@!%p2 bra $done_2",
        # Somebody has waited in vain: from then on nobody waits.
        "ld.relaxed.gpu.global.u64 %rd3, [%rd1]",
        "setp.ne.u64 %p3, %rd3, 0",
        "vote.sync.any.pred %p3, %p3, -1",
        "@%p3 bra $done_2",
        "add.u32 %r2, %r2, 1",
        f"setp.lt.u32 %p3, %r2, {MOST_POLLS}",
        "@%p3 bra $take_1",
        # The block, from 1 on, and the message.
        "mov.u32 %r5, %ctaid.x",
        "add.u32 %r5, %r5, 1",
        "mov.u32 %r6, %r1",
        "mov.b64 %rd3, {%r5, %r6}",
        "st.relaxed.gpu.global.u64 [%rd1], %rd3",
    ]


def test_a_bounded_barrier_of_blocks():
    """One thread waits for all, and does not vote; the block's own barrier is behind both ends."""
    assert instructions_of(MEET, bound_waits=True) == [
        "bar.sync 0",
        "mov.u32 %r2, %tid.x",
        "setp.ne.u32 %p1, %r2, 0",
        "@%p1 bra $met_1",
        "mul.lo.s32 %r3, %r1, 13",
        "red.release.gpu.global.add.u32 [%rd1], 1",
        "mov.u32 %r5, 0",
        "$meet_2:",
        "ld.acquire.gpu.global.u32 %r4, [%rd1]",
        "setp.lt.u32 %p1, %r4, %r3",
        "@!%p1 bra $done_3",
        "ld.relaxed.gpu.global.u64 %rd2, [%rd1]",
        "setp.ne.u64 %p2, %rd2, 0",
        "@%p2 bra $done_3",
        "add.u32 %r5, %r5, 1",
        f"setp.lt.u32 %p2, %r5, {MOST_POLLS}",
        "@%p2 bra $meet_2",
        "mov.u32 %r6, %ctaid.x",
        "add.u32 %r6, %r6, 1",
        "mov.u32 %r7, %r1",
        "mov.b64 %rd2, {%r6, %r7}",
        "st.relaxed.gpu.global.u64 [%rd1], %rd2",
        "$done_3:",
        "$met_1:",
        "bar.sync 0",
        "ret",
        "}",
    ]


def test_a_bounded_wait_for_own_warps():
    """A block that waits for one that left would hang, too. What it reports has number 0."""
    assert instructions_of(ARRIVALS, bound_waits=True) == [
        "mov.u32 %r2, dynamic_shared",
        "mov.u32 %r3, 0",
        "$wait_1:",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r1",
        "@%p1 bra $done_2",
        "ld.relaxed.gpu.global.u64 %rd2, [%rd1]",
        "setp.ne.u64 %p2, %rd2, 0",
        "@%p2 bra $done_2",
        "add.u32 %r3, %r3, 1",
        f"setp.lt.u32 %p2, %r3, {MOST_SLEEPS}",
        "@%p2 bra $wait_1",
        "mov.u32 %r4, %ctaid.x",
        "add.u32 %r4, %r4, 1",
        "mov.u32 %r5, 0",
        "mov.b64 %rd2, {%r4, %r5}",
        "st.relaxed.gpu.global.u64 [%rd1], %rd2",
        "$done_2:",
        "ret",
        "}",
    ]


@pytest.mark.parametrize("body", [TAKE, MEET, ARRIVALS])
def test_waits_that_are_not_bounded_report_nothing(body: str):
    """The loop that is bounded has one way out more."""
    text = " ".join(instructions_of(body, bound_waits=False))
    assert "done" not in text and "%ctaid" not in text
    assert text.count("bra") == 1 + ("met" in text)
