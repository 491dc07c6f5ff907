"""What programs hold on a GPU is given back: by close, with, and when they are dropped; and they run where their arrays are."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.driver import BookKeeper
from support.programs import program_text
from timetile.passes.diagnostics import CompileError
from timetile.runtime.cli import doctor
from timetile.runtime.device import gpu, gpu_memory, runners
from timetile.runtime.device.gpu import Device, image_of
from timetile.runtime.device.runners import MOST_STREAMS
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.program import compile as compiling
from timetile.runtime.program.targets import arch_for

SHAPE = (31, 133)
TEXT = program_text(entry("heat-2d").make((29, 131)))


@dataclass
class GpuArray:
    """A field in GPU memory."""

    pointer: int
    device: Any = None
    shape: tuple[int, ...] = SHAPE

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f8", "data": (self.pointer, False), "version": 3}


@dataclass(frozen=True)
class Numbered:
    """A device as CuPy names it."""

    id: int


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[BookKeeper]:
    """A driver in place of the machine's."""
    books = BookKeeper()
    monkeypatch.setattr(gpu_memory, "driver", lambda: books)
    monkeypatch.setattr(doctor, "driver", lambda: books)
    monkeypatch.setattr(compiling, "gpu_is_available", lambda: True)
    gpu.opened.cache_clear()
    yield books
    gpu.opened.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels are made once for all tests: these ask what is held, not what is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIMETILE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def program(**options: Any) -> timetile.CompiledProgram:
    return timetile.compile(TEXT, executor="gpu", depth=4, **options)


def fields(driver: BookKeeper, first: int = 1, home: int = 0) -> list[GpuArray]:
    pointers = [(first + k) << 16 for k in range(2)]
    driver.homes |= dict.fromkeys(pointers, home)
    return [GpuArray(pointer) for pointer in pointers]


def run_a_lot(compiled: timetile.CompiledProgram, driver: BookKeeper, stream: int = 0) -> None:
    """Runs that take scratch buffers, kernels and graphs, by both kinds of kernels."""
    for steps in (7, 300, 7, 7, 300):
        compiled(*fields(driver), steps=steps, stream=stream)
        driver.differ = not driver.differ


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
        # It is in no cycle: nobody has to look for it.
        assert driver.left == {"module": 1}
    finally:
        gc.enable()


def test_programs_that_come_and_go_hold_no_more_than_one(driver: BookKeeper):
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


# Streams and threads.


def test_runners_of_many_streams_are_bounded(driver: BookKeeper):
    """Those that were used least lately are closed; the others are kept."""
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
    """However they meet, there is one of each stream, and kernels are loaded once."""
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
    """Whether the array says so, or the driver does; nothing is launched."""
    there = 1 - gpu_of_program
    compiled = program(gpu=gpu_of_program)
    here, away = fields(driver, 1, gpu_of_program), fields(driver, 8, there)
    if says_so:
        away[1].device = Numbered(there)
    with pytest.raises(ValueError) as caught:
        compiled(here[0], away[1], steps=7)
    assert str(caught.value) == (
        f"argument 1 (%v) is on GPU {there}, and the program runs on GPU {gpu_of_program}; copy the array there, or "
        f"compile with gpu={there}"
    )
    assert driver.launched == []
    compiled(*here, steps=7)
    assert driver.launched


def test_memory_that_is_no_gpus_is_refused(driver: BookKeeper):
    arrays = [GpuArray(16 << 20), GpuArray(32 << 20)]
    with pytest.raises(
        ValueError, match="begins at an address that is no memory of a GPU; pass a device array"
    ):
        program()(*arrays, steps=7)


def test_gpus_that_there_are_not(driver: BookKeeper):
    with pytest.raises(RuntimeError) as caught:
        program(gpu=2)
    assert str(caught.value) == "there is no GPU 2, the driver numbers them from 0 to 1"


# Architectures.


def kernel(arch: str, cubin: bytes | None = b"\x7fELF") -> Kernel:
    return Kernel(
        "heat", "ptx", cubin, arch, grid=1, block=32, cluster=1, blocks_per_tile=1, message_words=0,
        bound_waits=False, shared_bytes=0, registers=0, spill_bytes=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made_for", "runs_on", "is_cubin"),
    [
        ("sm_80", "sm_80", True), ("sm_80", "sm_86", True), ("sm_80", "sm_89", True),
        ("sm_80", "sm_90", False), ("sm_90", "sm_90", True), ("sm_90", "sm_100", False),
        ("sm_90", "sm_103", False), ("sm_90", "sm_120", False), ("sm_90", "sm_86", False),
    ],
)  # fmt: skip
def test_a_gpu_loads_machine_code_of_its_own_major_version_else_ptx(
    made_for: str, runs_on: str, is_cubin: bool
):
    assert image_of(kernel(made_for), runs_on) == (b"\x7fELF" if is_cubin else b"ptx\0")
    assert image_of(kernel(made_for, None), runs_on) == b"ptx\0"


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ((8, 0), "sm_80"),
        ((8, 9), "sm_80"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_90"),
        ((12, 0), "sm_90"),
    ],
)
def test_newer_gpus_run_kernels_of_the_newest_known(
    driver: BookKeeper, there: tuple[int, int], chosen: str
):
    driver.arch = there
    compiled = program()
    assert compiled.kernels.options.arch == chosen
    run_a_lot(compiled, driver)
    images = [image for image in driver.images if b"halos_differ" not in image]
    assembled = assembler_version() is not None and there[0] == int(chosen[3])
    assert images and all(image.startswith(b"\x7fELF") is assembled for image in images)
    assert all(image.endswith(b"\0") for image in images if not image.startswith(b"\x7fELF"))


@pytest.mark.parametrize("there", [(7, 5), (7, 0), (6, 1)])
def test_older_gpus_are_refused(driver: BookKeeper, there: tuple[int, int]):
    driver.arch = there
    name = f"sm_{there[0]}{there[1]}"
    said = f"the GPU is of architecture {name}, and kernels need sm_80 or newer; run on the CPU with executor cpu"
    with pytest.raises(CompileError) as caught:
        program()
    assert str(caught.value) == said
    with pytest.raises(CompileError):
        program(arch="sm_80")
    findings = [found for found in doctor.gpus() if found.what.startswith("GPU")]
    assert [found.found for found in findings] == [False, False]
    assert all(said in found.text for found in findings)


def test_kernels_for_a_newer_gpu_are_refused(driver: BookKeeper):
    driver.arch = (8, 6)
    with pytest.raises(CompileError) as caught:
        program(arch="sm_90")
    assert str(caught.value) == (
        "kernels for sm_90 do not run on GPU 0, which is of architecture sm_86; leave arch out, or give sm_80"
    )
    driver.arch = (9, 0)
    gpu.opened.cache_clear()
    assert program(arch="sm_80").kernels.options.arch == "sm_80"


@pytest.mark.parametrize(
    ("name", "multiprocessors", "memory_bits", "part", "said"),
    [
        ("NVIDIA H200", 132, 6144, None, None),
        ("NVIDIA H100 PCIe", 114, 6144, "h100-pcie", None),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 60, 6144, "h100-sxm", 60),
        # 4.0 TB/s.
        ("Another GPU", 130, 5120, "gh200", 130),
        ("A GPU that does not say how fast its memory is", 132, 0, None, None),
    ],
)
def test_schedules_are_for_the_gpus_part(
    driver: BookKeeper,
    name: str,
    multiprocessors: int,
    memory_bits: int,
    part: str | None,
    said: int | None,
):
    driver.name, driver.multiprocessors, driver.memory_bits = name, multiprocessors, memory_bits
    options = program().kernels.options
    assert (options.arch, options.part, options.multiprocessors) == ("sm_90", part, said)


def test_the_architecture_is_the_newest_that_is_not_newer():
    assert [arch_for(f"sm_{n}") for n in (80, 87, 89, 90, 100, 110, 121)] == [
        "sm_80", "sm_80", "sm_80", "sm_90", "sm_90", "sm_90", "sm_90",
    ]  # fmt: skip


def test_a_program_says_where_it_runs(driver: BookKeeper):
    assert repr(program(gpu=1)).endswith(" for GPU 1, sm_90>")
    assert isinstance(gpu.device(1), Device)
