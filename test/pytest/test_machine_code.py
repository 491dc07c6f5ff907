"""The loops of machine code, read from the cubin, against the printed PTX and the assembler."""

import pytest

import timetile
from support.sizes import half
from timetile import Field, Scalar
from timetile.passes.targets.isa import ISAS
from timetile.runtime.kernels import assembled_choice, making
from timetile.runtime.kernels.assembler import assemble, assembler_version, assembles
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.machine_code import CodeLoop, steady_loop

pytestmark = pytest.mark.skipif(assembler_version() is None, reason="no assembler")


@timetile.stencil
def heat(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def kernel_of(arch: str, depth: int) -> Kernel:
    """The deepest kernel of heat conduction."""
    model = heat.on(executor="planes", depth=depth, arch=arch, cache=False)
    kernels = model.program((2048, 2048), "float64").kernels
    return kernels.kernel(kernels.facts[0][0].name)


def steady(kernel: Kernel) -> CodeLoop:
    """The steady loop of an assembled kernel."""
    assert kernel.cubin is not None
    loop = steady_loop(kernel.cubin, kernel.arch)
    assert loop is not None
    return loop


def test_an_assembler_older_than_the_gpu_leaves_ptx_to_the_driver(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """No nvJitLink knows the architecture; kernels are PTX, and the model chooses alone."""
    assert all(assembles(arch) for arch in ISAS)
    assert not assembles("sm_999") and not assembles("sm_999")
    assert [record.getMessage() for record in caplog.records] == [
        f"nvJitLink {assembler_version()} assembles nothing for sm_999 (ERROR_UNRECOGNIZED_ARCH "
        "(16)), and the driver assembles kernels at their first launch; install a newer "
        "nvidia-nvjitlink"
    ]
    for module in (making, assembled_choice):
        monkeypatch.setattr(module, "assembles", set[str]().__contains__)
    kernel = kernel_of("sm_100", 2)
    assert kernel.cubin is None and ".target sm_100\n" in kernel.ptx


@pytest.mark.usefixtures("chosen_by_model")
@pytest.mark.parametrize("arch", half([*ISAS]))
def test_the_steady_loop_has_the_arithmetic_of_a_turn(arch: str):
    """
    Five operations for each of 4 cells and 4 levels in each of 3 stream steps: four sums, of which
    one is fused with the product by 4, and the product by k fused with the last sum.
    """
    loop = steady(kernel_of(arch, 4))
    assert loop.arithmetic == 5 * 4 * 4 * 3
    assert loop.spills == loop.spill_words == 0
    assert loop.useful == loop.instructions


def test_spills_of_few_registers_are_seen_in_the_loop():
    """With 128 registers a thread, planes of 6 levels do not fit."""
    kernel = kernel_of("sm_90", 6)
    few = kernel.ptx.replace(".minnctapersm 1", ".minnctapersm 2")
    assert few != kernel.ptx
    assembled = assemble(few, "sm_90")
    loop = steady_loop(assembled.cubin, kernel.arch)
    assert assembled.spill_bytes > 0 and loop is not None
    # Most spilled words are stored and loaded in each turn.
    assert loop.spill_words > assembled.spill_bytes / 4 / 4
    assert loop.spill_words >= loop.spills > 20


@pytest.mark.usefixtures("chosen_by_model")
def test_planes_that_age_by_renaming_are_not_moved():
    """Two more steps in a turn of three more than double the instructions."""
    depth_six = steady(kernel_of("sm_90", 6))
    # Beside arithmetic: two shuffles of two words a level, and loads, stores, addresses of a step.
    others = depth_six.instructions - depth_six.arithmetic
    assert others <= 3 * (6 * 4 + 30)
