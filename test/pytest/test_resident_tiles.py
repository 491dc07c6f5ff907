"""
Kernels of waiting blocks, as launched by the GPU's runtime: at most the tiles that the device holds
at once, on words of 0 at the start. The driver records calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from dataclasses import replace

import pytest

from support.fake_core import driver_in_place
from support.fake_driver import FIELDS, KERNEL, FakeDriver
from timetile.lowering.tile_to_gpu.message_buffers import HEADER_WORDS
from timetile.passes.diagnostics import CompileError
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.host.halos import HaloFrame


def size_of(tiles: int) -> int:
    """How many bytes several tiles of the kernel take for words."""
    return (HEADER_WORDS + tiles * 512) * 8


@pytest.fixture
def fake() -> Generator[FakeDriver]:
    driver = FakeDriver()
    with driver_in_place(driver):
        yield driver


def test_a_cooperative_launch_has_as_many_tiles_as_the_device_holds(fake: FakeDriver):
    """
    Ten blocks hold two tiles of four; the tiles' words are 0 before every launch, and kept between
    launches.
    """
    device = Device()
    device.launch(KERNEL, FIELDS, 7)
    device.launch(KERNEL, FIELDS, 7)
    size = size_of(2)
    launch = [
        ("set", 1000, 0, size, 7),
        ("together", "function heat_d4", 8, 256, 4096, 7, (1, 2, 1000, 2)),
    ]
    assert fake.calls == [("allocate", size), *launch, *launch]


def test_a_launch_has_no_more_tiles_than_the_kernel(fake: FakeDriver):
    fake.fitting = 3
    Device().launch(KERNEL, FIELDS, 0)
    allocate, _, launch = fake.calls
    assert allocate == ("allocate", size_of(5))
    assert launch[2] == 5 * 4
    assert launch[-1] == (1, 2, 1000, 5)


def test_a_kernel_without_messages_is_an_ordinary_launch(fake: FakeDriver):
    """Nothing is allocated, and the whole grid is launched at once."""
    Device().launch(replace(KERNEL, blocks_per_tile=1, message_words=0), FIELDS, 0)
    assert fake.calls == [("launch", "function heat_d4", 20)]


def test_a_comparison_of_halos_is_waited_for_each_time(fake: FakeDriver):
    """
    The answer belongs to the comparison, not to an earlier comparison; the runtime waits for the
    answer, and does not copy.
    """
    device, frame = Device(), HaloFrame((3, 5, 7), (1, 1, 1), (2, 4, 6), 8)
    answers = [device.halos_differ(frame, 1000, other, 7) for other in (1000, 2000, 1000)]
    assert answers == [False, True, False]
    assert fake.calls == [("launch", "function halos_differ4", 2), ("synchronize", 7)] * 3


def test_launches_of_a_graph_run_one_after_the_other(fake: FakeDriver):
    """Each launch of a graph has separate arguments."""
    device, alone = Device(), replace(KERNEL, blocks_per_tile=1, message_words=0)
    others = LaunchArguments((2, 1), (ctypes.c_void_p, ctypes.c_void_p))
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


def test_a_tile_that_the_device_cannot_hold_is_refused(fake: FakeDriver):
    wide = replace(KERNEL, grid=2 * 11, blocks_per_tile=11)
    with pytest.raises(CompileError) as caught:
        Device().launch(wide, FIELDS, 0)
    assert str(caught.value) == (
        "kernel @heat_d4 needs 11 blocks of 256 threads, 168 registers and 4096 bytes of shared "
        "memory at once, for blocks that wait for each other, and A GPU holds 10; give "
        "device-tiling at most 10 blocks, or tile=block"
    )
    assert fake.calls == []


def test_a_kernel_that_a_block_has_no_shared_memory_for_is_not_loaded(fake: FakeDriver):
    wide, device = replace(KERNEL, shared_bytes=(227 << 10) + 1), Device()
    with pytest.raises(CompileError) as caught:
        device.load(wide)
    assert str(caught.value) == (
        "kernel @heat_d4 needs 232449 bytes of shared memory and A GPU has 232448 a block; use "
        "fewer planes ahead, a smaller depth or fewer warps"
    )
    assert (fake.modules, device.loaded) == (0, {})


def test_memory_given_back_is_freed(fake: FakeDriver):
    """Every kernel has separate words on every stream; kernels of one stream run in order."""
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
