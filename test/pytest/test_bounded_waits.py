"""
Kernels with reports of endless waits: the extra resources of such kernels, the runtime's reading of
a report, and the launches followed by a wait. The driver records calls.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest

from support.fake_core import driver_in_place
from support.fake_driver import FIELDS, KERNEL, Capture, FakeDriver
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.ptx.waits import MOST_POLLS, MOST_SLEEPS
from timetile.runtime.device.gpu import Device
from timetile.runtime.executors.ptx.machine import PtxLaunch
from timetile.runtime.executors.ptx.parse import parse_module
from timetile.runtime.executors.ptx.program import Program
from timetile.runtime.executors.ptx.runner import FieldOfPtx
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.loading.modules import load_text


@pytest.fixture
def fake() -> Generator[FakeDriver]:
    driver = FakeDriver()
    with driver_in_place(driver):
        yield driver


BOUNDED = replace(KERNEL, bound_waits=True)
"""A kernel with a report of endless waits."""


def test_a_launch_with_bounded_waits_is_waited_for_and_its_report_read(fake: FakeDriver):
    """The runtime waits for a launch with bounded waits, and reads the report."""
    Device().launch(BOUNDED, FIELDS, 7)
    assert fake.calls[-2:] == [("synchronize", 7), ("download", 1000, 8)]


@pytest.mark.parametrize(
    ("report", "what"),
    [((4, 17), "message or barrier 17 of the tile's other blocks"), ((4, 0), "its own warps")],
)
def test_a_wait_in_vain_is_an_error_that_names_the_message(
    fake: FakeDriver, report: tuple[int, int], what: str
):
    fake.report = report
    with pytest.raises(RuntimeError) as caught:
        Device().launch(BOUNDED, FIELDS, 0)
    assert str(caught.value) == (
        f"block 3 of kernel @heat_d4 waited in vain for {what}: this is a bug of the compiler; "
        "please report it with the program"
    )


ALONE = replace(
    BOUNDED,
    blocks_per_tile=1,
    message_words=0,
    ptx=".visible .global .align 8 .u64 heat_d4$report;",
)
"""A kernel of warps that only wait for each other: the report lies in the kernel's module."""


def test_a_report_of_waits_for_warps_is_0_before_the_launch(fake: FakeDriver):
    """The word of the report is 0 before the launch; the runtime waits for the launch."""
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
def test_launches_with_bounded_waits_are_not_captured(fake: FakeDriver, kernel: Kernel):
    fake.captures = Capture.CU_STREAM_CAPTURE_STATUS_ACTIVE
    with pytest.raises(RuntimeError) as caught:
        Device().launch(kernel, FIELDS, 7)
    assert str(caught.value) == (
        "kernel @heat_d4 has bounded waits, followed by a wait of the host, and a captured stream "
        "allows no wait of the host; compile the program without bound_waits"
    )
    assert fake.calls == []


@pytest.mark.parametrize(
    ("cluster", "what"), [(1, "its own warps"), (2, "the warps of its cluster")]
)
def test_an_endless_wait_for_warps_is_an_error_with_the_kernels_name(
    fake: FakeDriver, cluster: int, what: str
):
    fake.report = (4, 0)
    with pytest.raises(
        RuntimeError, match=f"^block 3 of kernel @heat_d4 waited in vain for {what}: this"
    ):
        Device().launch(replace(ALONE, cluster=cluster), FIELDS, 0)


# Bounded waits on the GPU.


def test_a_kernel_without_messages_reports_in_its_module():
    """A module with a kernel of bounded waits has its own report word; the loop is unchanged."""
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


def printed(body: str, *, bound_waits: bool) -> str:
    """A kernel of one warp as PTX, with a buffer of words and a number."""
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
    return print_module(kernels_of(module), "8.1", "sm_90", bound_waits=bound_waits)


def instructions_of(body: str, *, bound_waits: bool) -> list[str]:
    """A kernel's instructions after the arguments: %rd1 is the report's address, %r1 a number."""
    text = printed(body, bound_waits=bound_waits)
    _, found, rest = text.partition("ld.param.u32 %r1, [k_param_1];\n")
    assert found
    return [line.strip().removesuffix(";") for line in rest.splitlines()]


TAKE = "%a = simt.take %words[4] number %n : f32"


@pytest.mark.parametrize(("kind", "count"), [("f32", 1), ("f32", 3), ("f64", 1), ("f64", 2)])
def test_a_take_waits_for_every_word_of_a_message(kind: str, count: int):
    """A word without the message's number, the last one too, keeps the warp in the loop."""
    places = ", ".join(str(2 * k) for k in range(count))
    names = ", ".join(f"%a{k}" for k in range(count))
    kinds = ", ".join([kind] * count)
    text = printed(f"{names} = simt.take %words[{places}] number %n : {kinds}", bound_waits=False)
    program = Program(parse_module(text)["k"])
    sent = [2 * k + half for k in range(count) for half in range(2 if kind == "f64" else 1)]

    def take(late: int | None) -> None:
        numbers = np.full(2 * count, 6, np.uint32)
        numbers[sent] = 7
        if late is not None:
            numbers[late] = 6
        words = FieldOfPtx(numbers.astype(np.uint64) << np.uint64(32))
        PtxLaunch(program, 1, 32, 0, [words, np.asarray(7, np.uint32)]).run()

    take(None)
    for word in sent:
        with pytest.raises(SimtError, match="waits for an event that never comes"):
            take(word)


MEET = "simt.tile_barrier %words[] number %n blocks 13"


ARRIVALS = """
%w = simt.shared at 0 : !llvm.ptr<3>
"nvvm.mbarrier.try_wait.parity.shared"(%w, %n, %n) : (!llvm.ptr<3>, i32, i32) -> ()
"""


def test_the_lanes_of_a_warp_vote_whether_a_bounded_take_goes_on():
    """The lanes of a warp wait together for all words: lanes vote on the words, and on leaving."""
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


def test_one_thread_waits_at_a_bounded_barrier_of_blocks():
    """
    One thread waits for all threads, without a vote; the block's own barrier follows both ends.
    """
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


def test_a_bounded_wait_for_own_warps_leaves_when_a_report_is_there():
    """A block that waits for an ended block would hang, too; the report has number 0."""
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
    """A bounded loop has one more way out."""
    text = " ".join(instructions_of(body, bound_waits=False))
    assert "done" not in text and "%ctaid" not in text
    assert text.count("bra") == 1 + ("met" in text)
