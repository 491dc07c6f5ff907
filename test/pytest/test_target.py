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
from timetile.passes.targets.parts import PARTS, Part, default_part, part_for
from timetile.passes.targets.target import NAMES, target_named
from timetile.runtime.kernels import assembled_choice
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load, make_context
from timetile.runtime.program.compiled_program import Executor


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
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
def test_a_part_is_recognised_by_the_drivers_name_and_by_memory(part: Part):
    for name in part.driver_names:
        assert part_for(part.isa, name, None) == part
    nearest = part_for(part.isa, "another name", 1.01 * part.memory_tb_per_s)
    assert nearest.memory_tb_per_s == pytest.approx(part.memory_tb_per_s, rel=0.03)
    assert part.copy_tb_per_s < part.memory_tb_per_s


@pytest.mark.parametrize("isa", ISAS)
def test_the_default_part_is_taken_without_a_name(isa: str):
    assert part_for(isa, "another name", None) == default_part(isa) == target_named(isa).part


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
