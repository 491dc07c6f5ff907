"""
Resources of programs on a GPU are given back: by close, by with, and when programs are dropped.
Programs run on the GPU of their arrays.
"""

from __future__ import annotations

import gc
import logging
from dataclasses import dataclass
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import timetile
from support.driver import BookKeeper
from support.gpu_programs import SHAPE, GpuArray, fields, program, run_a_lot
from support.swept import thomas_text
from timetile.runtime.device import gpu, runners
from timetile.runtime.device.runners import MOST_STREAMS

pytestmark = pytest.mark.usefixtures("cache_of_file")


@dataclass(frozen=True)
class Numbered:
    """A device in CuPy's notation."""

    id: int


# Giving back.


def test_close_gives_back_everything(driver: BookKeeper):
    compiled = program()
    run_a_lot(compiled, driver)
    assert {"module", "graph", "event", "memory"} <= set(driver.left)
    compiled.close()
    assert driver.left == {"module": 1}, "the kernel that compares halos stays"
    compiled.close()
    run_a_lot(compiled, driver)
    compiled.close()
    assert driver.left == {"module": 1}


def test_the_object_of_a_destroyed_stream_is_forgotten(driver: BookKeeper):
    """The driver may give the number of a destroyed stream again."""
    device = gpu.device()
    stream = device.new_stream()
    device.synchronize(stream)
    assert stream in device.objects
    device.destroy_stream(stream)
    assert stream not in device.objects


def test_kernels_of_sweeps_are_loaded_once_and_given_back(driver: BookKeeper):
    """A sweep is the last work of the stream, which may be gone when the program is closed."""
    compiled = timetile.compile(thomas_text((9, 40), 0), executor="gpu", cache=False)
    pointers = [(1 + k) << 16 for k in range(3)]
    driver.homes |= dict.fromkeys(pointers, 0)
    given = [GpuArray(pointer, shape=(9, 40)) for pointer in pointers]
    for _ in range(3):
        compiled(*given, 0.3, stream=9)
    compiled(*given, -0.3, stream=9)
    names = [name for name, _ in driver.launched]
    assert names == ["sweep$2e$up", "sweep$2e$down"] * 4
    assert driver.left["module"] == 2
    driver.gone.add(9)
    compiled.close()
    assert not driver.left.get("module") and not driver.left.get("event")


LARGEST = """
!f = !stencil.field<[0,5]x[0,3000]xf64>
func.func @largest(%u: !f) -> f64 {
  %r = temporal.reduce maximum %u in <[1, 0], [4, 3000]> : !f -> f64
  return %r : f64
}
"""


def test_kernels_of_reductions_are_loaded_once_and_given_back(driver: BookKeeper):
    compiled = timetile.compile(LARGEST, executor="gpu", cache=False)
    driver.homes[1 << 16] = 0
    for _ in range(2):
        compiled(GpuArray(1 << 16, shape=(5, 3000)))
        assert driver.left["module"] == 2, "one for each round"
    compiled.close()
    assert not driver.left.get("module")


def test_the_end_of_a_with_block_gives_back_everything(driver: BookKeeper):
    with program() as compiled:
        run_a_lot(compiled, driver)
    assert driver.left == {"module": 1}
    with pytest.raises(KeyError), program() as compiled:
        run_a_lot(compiled, driver)
        raise KeyError
    assert driver.left == {"module": 1}


def test_a_program_that_is_dropped_gives_back_everything(driver: BookKeeper):
    compiled = program()
    run_a_lot(compiled, driver)
    gc.disable()
    try:
        del compiled
        # The program is in no cycle: the garbage collector is not needed.
        assert driver.left == {"module": 1}
    finally:
        gc.enable()


def test_twenty_closed_programs_hold_no_more_than_one_program(driver: BookKeeper):
    for _ in range(5):
        run_a_lot(program(), driver)
    assert driver.left == {"module": 1}
    compiled = program()
    driver.most.clear()
    run_a_lot(compiled, driver)
    assert driver.held["memory"] <= 1 and driver.most["memory"] <= 1


def test_kernels_that_another_program_uses_stay_loaded(driver: BookKeeper):
    one, other = program(), program()
    run_a_lot(one, driver)
    loaded = driver.held["module"]
    run_a_lot(other, driver)
    assert driver.held["module"] == loaded
    one.close()
    assert driver.held["module"] == loaded
    other(*fields(driver), steps=7)
    other.close()
    assert driver.left == {"module": 1}


def test_a_stream_that_is_gone_is_not_waited_for(driver: BookKeeper):
    compiled = program()
    run_a_lot(compiled, driver, stream=9)
    driver.gone.add(9)
    compiled.close()
    assert driver.left == {"module": 1}


def test_programs_are_given_back_though_a_stream_is_captured(
    driver: BookKeeper, monkeypatch: pytest.MonkeyPatch
):
    free, modes = driver.cuMemFree, list[bool]()

    def noted(pointer: int) -> tuple[Any]:
        modes.append(driver.relaxed)
        return free(pointer)

    monkeypatch.setattr(driver, "cuMemFree", noted)
    compiled = program()
    run_a_lot(compiled, driver)
    compiled.close()
    assert modes and all(modes)
    assert not driver.relaxed


def test_a_gpu_that_answers_no_more_is_a_warning(
    driver: BookKeeper, caplog: pytest.LogCaptureFixture
):
    compiled = program()
    run_a_lot(compiled, driver)
    driver.broken = True
    with caplog.at_level(logging.WARNING, "timetile"):
        compiled.close()
    assert (
        "what a program held on the GPU is not given back: the NVIDIA driver reports "
        "CUDA_ERROR_ILLEGAL_ADDRESS"
    ) in caplog.messages


def test_numpy_arrays_leave_nothing_but_what_is_kept(driver: BookKeeper):
    compiled = program()
    arrays = [np.zeros(SHAPE) for _ in range(2)]
    compiled(*arrays, steps=2)
    kept = driver.held["memory"]
    for _ in range(3):
        compiled(*arrays, steps=2)
    assert driver.held["memory"] == kept
    compiled.close()
    assert driver.left in ({}, {"module": 1})


COEFFICIENT = """
func.func @spread(%u: !stencil.field<[0,8]xf64>, %c: !stencil.field<[0,8]xf64>) {
  %0 = stencil.load %u : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
  %1 = stencil.load %c : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
  %2 = stencil.apply(%x = %0 : !stencil.temp<?xf64>, %k = %1 : !stencil.temp<?xf64>)
      -> (!stencil.temp<?xf64>) {
    %a = stencil.access %x[0] : !stencil.temp<?xf64>
    %b = stencil.access %k[0] : !stencil.temp<?xf64>
    %r = arith.mulf %a, %b : f64
    stencil.return %r : f64
  }
  stencil.store %2 to %u(<[1], [7]>) : !stencil.temp<?xf64> to !stencil.field<[0,8]xf64>
  func.return
}
"""


def test_arrays_that_a_run_only_reads_are_not_copied_back(
    driver: BookKeeper, monkeypatch: pytest.MonkeyPatch
):
    copied: list[int] = []

    def noted(place: int, *others: Any) -> tuple[int]:
        copied.append(place)
        return (0,)

    monkeypatch.setattr(driver, "cuMemcpyDtoH", noted, raising=False)
    arrays = [np.zeros(8) for _ in range(2)]
    timetile.compile(COEFFICIENT, executor="gpu", cache=False)(*arrays)
    assert copied == [arrays[0].ctypes.data]


# Streams and threads.


def test_runners_of_many_streams_are_bounded(driver: BookKeeper):
    """The least recently used runners are closed; the other runners are kept."""
    compiled = program()
    for stream in range(3 * MOST_STREAMS):
        compiled(*fields(driver), steps=7, stream=stream)
        compiled(*fields(driver), steps=7, stream=0)
        assert len(compiled.runners.kept) <= MOST_STREAMS
        assert driver.held["event"] <= MOST_STREAMS
    assert 0 in compiled.runners.kept
    compiled.close()
    assert driver.left == {"module": 1}


def test_a_runner_that_is_lent_is_not_closed(driver: BookKeeper, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runners, "MOST_STREAMS", 1)
    compiled = program()
    with compiled.runners.lent(1) as first:
        compiled(*fields(driver), steps=7, stream=2)
        assert compiled.runners.kept[1] is first
    assert list(compiled.runners.kept) == [1]
    with compiled.runners.lent(1) as first:
        compiled.close()
        assert not compiled.runners.kept
        first.last = first.device.mark(None, 1)
    assert driver.left == {"module": 1}


def test_threads_share_the_runner_of_a_stream(driver: BookKeeper):
    """In any order of meeting, each stream has one runner, and kernels are loaded once."""
    compiled = program()
    ready, found = Barrier(8), list[int]()

    def run(stream: int) -> None:
        ready.wait()
        for _ in range(5):
            compiled(*fields(driver, 1 + 2 * stream), steps=7, stream=stream)
            found.append(id(compiled.runner(stream)))

    threads = [Thread(target=run, args=(k % 2,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2
    names = [image for image in driver.images if b"halos_differ" not in image]
    assert len(set(names)) == len(names)
    compiled.close()
    assert driver.left == {"module": 1}


def test_a_device_is_opened_once(driver: BookKeeper):
    ready, found = Barrier(8), set[int]()

    def ask() -> None:
        ready.wait()
        found.add(id(gpu.device(1)))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1 and driver.held["context"] == 1


# Where arrays are.


@pytest.mark.parametrize("gpu_of_program", [0, 1])
@pytest.mark.parametrize("says_so", [False, True])
def test_arrays_on_another_gpu_are_refused(driver: BookKeeper, gpu_of_program: int, says_so: bool):
    """The report comes from the array or from the driver; nothing is launched."""
    there = 1 - gpu_of_program
    compiled = program(gpu=gpu_of_program)
    here, away = fields(driver, 1, gpu_of_program), fields(driver, 8, there)
    if says_so:
        away[1].device = Numbered(there)
    with pytest.raises(ValueError) as caught:
        compiled(here[0], away[1], steps=7)
    assert str(caught.value) == (
        f"argument 1 (%v) is on GPU {there}, and the program runs on GPU {gpu_of_program}; copy "
        "the array there, or "
        f"compile with gpu={there}"
    )
    assert driver.launched == []
    compiled(*here, steps=7)
    assert driver.launched


def test_memory_that_is_no_gpus_is_refused(driver: BookKeeper):
    arrays = [GpuArray(16 << 20), GpuArray(32 << 20)]
    with pytest.raises(
        ValueError, match="begins at an address outside the memory of a GPU; pass a device array"
    ):
        program()(*arrays, steps=7)


def test_a_number_without_a_gpu_is_refused(driver: BookKeeper):
    with pytest.raises(RuntimeError) as caught:
        program(gpu=2)
    assert str(caught.value) == "there is no GPU 2, the driver numbers them from 0 to 1"
