"""
Pipelines with any options are compiled or refused, and a user who follows the named ways out
arrives.
"""

from __future__ import annotations

import re

import pytest

import timetile
from support.catalogue import CATALOGUE
from support.pipelines import Pipeline, drawn
from support.programs import program_text
from support.sizes import seeds
from support.ways_out import ways
from timetile.dialects.tile import KernelOp
from timetile.lowering import lower_tile_to_gpu
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.target import Target
from timetile.runtime.kernels.of_program import ProgramKernels

FARTHEST = 16
"""Refusals on a way."""


class EnoughError(Exception):
    """Kernels are not refused in the test: no threads are made."""


@pytest.fixture(autouse=True)
def until_memory_is_counted(monkeypatch: pytest.MonkeyPatch):
    """The last pass that refuses kernels is followed by much work and no further question."""
    checked = lower_tile_to_gpu.check_shared_memory

    def check_and_stop(kernel: KernelOp, taken: int, target: Target) -> None:
        checked(kernel, taken, target)
        raise EnoughError

    monkeypatch.setattr(lower_tile_to_gpu, "check_shared_memory", check_and_stop)


def lower(kernels: ProgramKernels, name: str) -> None:
    """Lower a kernel as far as anything may be refused."""
    try:
        module = kernels.hardware(name)
    except EnoughError:
        return
    target = kernels.options.target
    print_module(kernels_of(module), target.isa.ptx_version, target.name)


def refusal(text: str, pipeline: Pipeline) -> str | None:
    """The refusal of a pipeline; None for an accepted pipeline."""
    try:
        compiled = timetile.compile(
            text, executor="planes", passes=pipeline.text, arch=pipeline.arch, cache=False
        )
        for loop in compiled.kernels.facts:
            for fact in loop:
                lower(compiled.kernels, fact.name)
    except CompileError as error:
        return error.reason
    return None


def without_numbers(said: str) -> str:
    return re.sub(r"\d+", "N", said)


def follow(text: str, said: str, name: str, pipeline: Pipeline) -> list[str]:
    """
    The refusals along a way, until none is left; the way itself is preferred as long as named.
    """
    heard = [said]
    while (again := refusal(text, pipeline)) is not None and len(heard) < FARTHEST:
        heard.append(again)
        found = ways(again, pipeline)
        if without_numbers(again) == without_numbers(said):
            found = [way for way in found if way[0] == name]
        found = sorted(found, key=lambda way: way[0] != name)
        assert found, f"no way out of: {heard}"
        pipeline = found[0][1]
    assert again is None, f"no end of: {heard}"
    return heard


@pytest.mark.parametrize("seed", seeds(120))
def test_ways_out_lead_out(seed: int):
    entry = CATALOGUE[seed % len(CATALOGUE)]
    program = entry.make(entry.domains[0])
    pipeline, text = drawn(seed, program.rank), program_text(program)
    said = refusal(text, pipeline)
    if said is None:
        return
    assert "the IR is wrong" not in said
    found = ways(said, pipeline)
    assert found, f"no way out of: {said}"
    for name, followed in found:
        follow(text, said, name, followed)
