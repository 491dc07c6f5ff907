"""What is compiled is for the GPU that was asked for, and what no kernel can have is refused before anything runs."""

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
from timetile.runtime.loading import load, make_context
from timetile.runtime.program import Executor


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
