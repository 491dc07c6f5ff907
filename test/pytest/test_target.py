"""
Code is compiled for the requested GPU, and impossible kernels are refused before anything runs.
"""

from __future__ import annotations

import io

import pytest
from xdsl.context import Context
from xdsl.passes import PassPipeline

import timetile
from support.catalogue import entry, star, sum_program
from support.programs import program_text
from timetile.lowering.pipelines import pipeline
from timetile.lowering.ptx.target import PtxTarget
from timetile.passes.diagnostics import CompileError
from timetile.passes.scheduling.candidates import candidates
from timetile.passes.targets.isa import ISAS
from timetile.passes.targets.part import Part
from timetile.passes.targets.parts import PARTS, default_part, part_for
from timetile.passes.targets.target import NAMES, target_named
from timetile.runtime.kernels import assembled_choice
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load, make_context
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_by_model")


@pytest.mark.parametrize("arch", ISAS)
def test_the_pipeline_prints_for_its_architecture(arch: str):
    module = load(program_text(entry("heat-2d").make((40, 70))))
    PassPipeline(pipeline(depth=2, arch=arch)).apply(make_context(), module)
    printed = io.StringIO()
    PtxTarget().emit(Context(), module, printed)
    assert f".target {arch}\n" in printed.getvalue()


FAR = (1 << 30) + 1


@pytest.mark.parametrize("executor", ["planes", "simt"])
def test_fields_too_long_for_coordinates_are_refused_before_a_run(executor: Executor):
    text = program_text(sum_program("f32", star(1, 1))((FAR,)))
    with pytest.raises(CompileError, match=f"a field reaches from -1 to {FAR + 1} along axis 0"):
        timetile.compile(text, executor=executor, cache=False)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_target_of_one_instruction_set(name: str):
    target = target_named(name)
    assert target.part.isa == target.isa.name == target.fit.isa
    assert target.isa.name in target.title
    assert name in (target.isa.name, target.part.name)


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_a_part_is_recognised_by_the_drivers_name(part: Part):
    for name in part.driver_names:
        assert part_for(part.isa, name) == part
        assert part_for(part.isa, f"{name} MIG 1g.10gb") == part
    assert part.copy_tb_per_s < part.memory_tb_per_s


@pytest.mark.parametrize("isa", ISAS)
def test_the_default_part_of_an_instruction_set_is_its_first(isa: str):
    assert default_part(isa) == target_named(isa).part
    assert part_for(isa, "another name") is None


def test_kernels_for_older_gpus_know_no_part_of_a_newer_gpu():
    assert part_for("sm_80", "NVIDIA H200") is None


# Facts behind a name.


def test_facts_take_the_place_of_a_parts_numbers():
    target = target_named("h100-pcie+clock=1.5+copy=1.7+l2=1000000+shared=102400+block=51200", 100)
    part, usual = target.part, PARTS["h100-pcie"]
    assert (part.clock_ghz, part.copy_tb_per_s, part.l2_bytes) == (1.5, 1.7, 1000000)
    assert (part.multiprocessors, part.memory_tb_per_s) == (100, usual.memory_tb_per_s)
    assert target.isa.shared_per_multiprocessor == 102400 and target.isa.shared_per_block == 51200
    assert target.title == (
        "sm_90 (H100 PCIe) with 100 multiprocessors, a clock of 1.5 GHz, device copies of 1.7 "
        "TB/s, 1000000 bytes of L2, 102400 bytes of shared memory a multiprocessor, 51200 bytes "
        "of shared memory a block"
    )
    assert target_named(part.name, 100) == target


def test_copies_are_as_fast_as_the_memory_unless_measured():
    usual = target_named("h200").part
    faster = target_named("h200+memory=9.6").part
    assert faster.copy_tb_per_s == pytest.approx(2 * usual.copy_tb_per_s)
    assert target_named("h200+memory=9.6+copy=5").part.copy_tb_per_s == 5


@pytest.mark.parametrize("text", ["speed=3", "copy", "copy=", "copy=fast", "copy=0", "copy=-1"])
def test_facts_of_no_gpu_are_refused(text: str):
    with pytest.raises(CompileError) as caught:
        target_named(f"h200+{text}")
    assert str(caught.value) == (
        f"{text!r} is no fact of a GPU; write a name of multiprocessors, clock, memory, copy, l2, "
        "shared, block, = and a number above 0, as in h100-sxm+copy=3.1"
    )


def test_facts_of_a_gpu_change_its_schedules_and_keys():
    text = program_text(sum_program("f64", star(1, 1))((4_000_000,)))
    made = [
        timetile.compile(text, executor="simt", arch=name, halos="common", cache=False)
        for name in ("h200", "h200+copy=1.5")
    ]
    usual, slow = (each.kernels.options for each in made)
    assert usual.key() != slow.key() and usual.arch == slow.arch == "sm_90"
    assert str(made[0].kernels.tiled) != str(made[1].kernels.tiled)


# Fits.


def test_a_part_without_measured_kernels_scales_the_fit_and_says_so():
    said = (
        "no kernel was measured on {}: values fitted on the H200 are scaled by multiprocessors, "
        "clock, memory and L2"
    )
    for name in ("h200", "h100-sxm", "sm_90", "h200+copy=4.0"):
        assert target_named(name).fit_text is None
        assert target_named(name).parameters == target_named("h200").parameters
    assert target_named("a100-sxm").fit_text == said.format("the A100 SXM")
    assert target_named("sm_90+memory=1.0").fit_text == said.format("such a GPU of sm_90")
    fitted, slow = target_named("h200"), target_named("sm_90+memory=1.0")
    # The chip is the same, and its L2 as fast: the memory's copies take 4.8 times as long.
    assert slow.parameters.moving.l2 * slow.part.copy_tb_per_s == pytest.approx(
        fitted.parameters.moving.l2 * fitted.part.copy_tb_per_s
    )
    half = target_named("sm_90", 66).parameters.reading.l2_bytes_per_cycle
    assert half == pytest.approx(fitted.parameters.reading.l2_bytes_per_cycle / 2)


def test_parts_of_one_instruction_set_share_code_but_not_schedules(
    monkeypatch: pytest.MonkeyPatch,
):
    """Schedules are chosen by the model alone: the assembler knows instruction sets, no parts."""
    monkeypatch.setattr(assembled_choice, "assembler_version", lambda: None)
    text = program_text(sum_program("f64", star(3, 1))((512, 512, 512)))
    compiled = {
        name: timetile.compile(text, executor="simt", arch=name, halos="common", cache=False)
        for name in ("sm_90", "h200", "h100-pcie")
    }
    assert {c.kernels.options.arch for c in compiled.values()} == {"sm_90"}
    assert [c.kernels.options.part for c in compiled.values()] == [None, None, "h100-pcie"]
    usual, same, other = (str(c.kernels.tiled) for c in compiled.values())
    assert usual == same != other


def test_slower_memory_takes_deeper_kernels():
    """An H100 was measured: 569 GCells/s with the H200's four steps a launch, and 690 with five."""
    text = program_text(sum_program("f64", star(3, 1))((512, 512, 512)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    depths = [
        candidates(loop, module, target_named(name), None)[0].depth for name in ("h200", "h100-sxm")
    ]
    assert depths == sorted(set(depths))
