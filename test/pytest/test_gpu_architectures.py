"""A program is compiled for the present GPU: its architecture, its part, and loadable kernels."""

from __future__ import annotations

import pytest

from support.driver import BookKeeper
from support.gpu_programs import program, run_a_lot
from timetile.passes.diagnostics import CompileError
from timetile.runtime.cli import doctor
from timetile.runtime.device import gpu
from timetile.runtime.device.gpu import Device, image_of
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.program.targets import arch_for

pytestmark = pytest.mark.usefixtures("cache_of_file")


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
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_100"),
        ((10, 3), "sm_100"),
        ((12, 1), "sm_120"),
    ],
)
def test_programs_of_newer_gpus_are_of_the_newest_known(
    driver: BookKeeper, there: tuple[int, int], chosen: str
):
    driver.arch = there
    assert program().kernels.options.arch == chosen


@pytest.mark.parametrize("there", [(8, 7), (9, 0), (12, 1)])
def test_newer_gpus_run_kernels_of_the_newest_known(driver: BookKeeper, there: tuple[int, int]):
    driver.arch = there
    compiled = program()
    run_a_lot(compiled, driver)
    images = [image for image in driver.images if b"halos_differ" not in image]
    assembled = assembler_version() is not None
    assert images and all(image.startswith(b"\x7fELF") is assembled for image in images)
    assert all(image.endswith(b"\0") for image in images if not image.startswith(b"\x7fELF"))


@pytest.mark.parametrize("there", [(7, 5), (7, 0), (6, 1)])
def test_older_gpus_are_refused(driver: BookKeeper, there: tuple[int, int]):
    driver.arch = there
    name = f"sm_{there[0]}{there[1]}"
    said = (
        f"the GPU is of architecture {name}, and kernels need sm_80 or newer; run on the CPU "
        f"with executor cpu"
    )
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
        "kernels for sm_90 do not run on GPU 0, which is of architecture sm_86; leave out arch, "
        "or give sm_86"
    )
    driver.arch = (9, 0)
    gpu.opened.cache_clear()
    assert program(arch="sm_80").kernels.options.arch == "sm_80"


@pytest.mark.parametrize(
    ("name", "multiprocessors", "memory_bits", "part", "said"),
    [
        ("NVIDIA H200", 132, 6144, None, None),
        ("NVIDIA H100 PCIe", 114, 2560, "h100-pcie+l2=62914560", None),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 60, 4288, "h100-sxm+l2=62914560", 60),
        ("NVIDIA GH200 144G HBM3e", 132, 6144, "gh200+memory=4.8+l2=62914560", None),
        ("Another GPU", 130, 5120, "sm_90+memory=4", 130),
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
        "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_100", "sm_120",
    ]  # fmt: skip


def test_a_program_says_where_it_runs(driver: BookKeeper):
    assert repr(program(gpu=1)).endswith(" for GPU 1, sm_90>")
    assert isinstance(gpu.device(1), Device)
