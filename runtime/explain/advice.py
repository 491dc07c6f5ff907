"""Advice for a faster time loop: possible changes not made yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as xmath

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.launches.liveness import cycles_in_turn
from timetile.passes.cost.terms import Cost
from timetile.passes.scheduling.candidates import Candidate, candidates
from timetile.runtime.explain.constraint_costs import of_pipeline
from timetile.runtime.explain.data import Resources
from timetile.runtime.explain.term_order import faster_order
from timetile.runtime.program.compiled_program import CompiledProgram

WORTH_TELLING = 1.02
"""An alternative is told if predicted to be faster by this factor."""

PARTLY_FILLED = 0.5
"""Share of the resident blocks below which a larger domain costs little time."""


def divides(loop: LoopOp) -> bool:
    """Whether a cell of the loop has a rounded quotient or root."""
    kinds = arith.DivfOp | xmath.RsqrtOp | xmath.SqrtOp
    return any(
        isinstance(op, kinds) for update in loop.updates for op in named_function(update).walk()
    )


def advice(
    program: CompiledProgram,
    loop: LoopOp,
    kernel: KernelOp,
    cost: Cost,
    found: Sequence[Candidate],
    resources: Resources,
    fill: float | None,
) -> Iterator[str]:
    """Options, and changes of the program, for a faster loop, one a sentence."""
    options = program.kernels.options
    if options.passes is not None:
        yield from of_pipeline(program, loop, cost)
    elif options.depth is not None:
        best = candidates(loop, program.module, options.target, None)
        if best and best[0].cost.gcells_per_second > WORTH_TELLING * cost.gcells_per_second:
            yield (
                f"leave out --depth: {best[0].cost.gcells_per_second:.0f} GCells/s are predicted "
                f"with {best[0].depth} steps a launch"
            )
    if options.passes is None and options.fp_reassoc != "on":
        order = faster_order(
            loop, program.module, options.target, options.depth, found, cost.gcells_per_second
        )
        if order is not None:
            yield str(order)
    if options.fp_division == "exact" and divides(loop):
        yield (
            "--fp-division fast: quotients and roots cost less and are off by a few units in the "
            "last place"
        )
    if options.halos == "apart" and cycles_in_turn(loop):
        yield "leave out --halos apart: buffers that have equal halos get faster kernels"
    if options.halos == "compared" and cycles_in_turn(loop) and kernel.steps.data > 1:
        yield (
            "--halos common: promises equal halos of the buffers; runs then use faster kernels "
            "without a comparison"
        )
    if fill is not None and fill < PARTLY_FILLED:
        yield f"a larger domain: this one keeps {fill:.0%} of the GPU's places for blocks busy"
    if resources.spill_words:
        yield f"--depth less than {kernel.steps.data}, or less work in a step: registers spill"
