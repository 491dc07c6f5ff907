"""Runs of programs with kernels placed by given passes, and the kernels."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.programs import program_text
from timetile.dialects.tile import KernelOp
from timetile.runtime.kernels.options import Halos
from timetile.runtime.program.compiled_program import Executor


def check(
    program: Program,
    steps: int,
    executor: Executor,
    *passes: ModulePass,
    halos: Halos = "common",
) -> ModuleOp:
    """A run leaves the right bits; the placed kernels."""
    compiled = timetile.compile(
        program_text(program), executor=executor, fp_contract="off", cache=False,
        passes=passes, halos=halos,
    )  # fmt: skip
    inputs = random_inputs(program, steps, common_halos=halos == "common")
    assert_as_unfused(compiled, program, inputs, steps, executor)
    return compiled.kernels.tiled


def deepest(placed: ModuleOp, depth: int) -> KernelOp:
    """The kernel of a number of steps."""
    return next(k for k in placed.ops if isinstance(k, KernelOp) and k.steps.data == depth)
