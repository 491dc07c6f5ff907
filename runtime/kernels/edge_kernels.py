"""The kernels of loops whose updates copy edge cells: most kernels continue the fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.temporal.boundary import Kind
from timetile.passes.analysis.edge_copies import EdgeSteps, NoImagesError, edge_steps
from timetile.passes.diagnostics import Remark, place_of
from timetile.passes.loops.copy_edges import copy_edges
from timetile.passes.loops.drop_edge_copies import without_edge_copies
from timetile.runtime.kernels.loops import loops_of

if TYPE_CHECKING:
    from timetile.runtime.kernels.of_program import ProgramKernels

Outside = dict[SSAValue, Any]
"""Captured fields of a loop and, behind the fields, scalars, by value."""

FEWEST_STEPS = 8
"""Steps of the shortest run worth more kernels, with copies from one end to the other."""

FEWEST_NEAR = 40
"""Steps of such a run with copies from nearby, as kernels of several steps make these, too."""


def copies_cells(loop: LoopOp) -> bool:
    """Whether some update of a loop copies cells beside the box of the others."""
    try:
        return edge_steps(loop) is not None
    except NoImagesError:
        return True


@dataclass(frozen=True)
class LoopVariants:
    """A program variant's kernels, and what each program value is called in it."""

    kernels: ProgramKernels
    values: dict[SSAValue, SSAValue]

    def outside(self, number: int, outside: Outside) -> tuple[LoopOp, Outside]:
        """A loop of the variant, by number, with captured fields and scalars."""
        loop = self.kernels.loops[number]
        known = {self.values[value]: given for value, given in outside.items()}
        return loop, {value: known[value] for value in (*loop.captures, *loop.scalars)}


class EdgeKernels:
    """
    Kernels for a program's loops with edge cells: kernels of continued fields, and kernels for the
    edge cells. Loops have the numbers of the program's loops.
    """

    def __init__(self, kernels: ProgramKernels):
        self.kernels, self.one = kernels, RLock()

    @cached_property
    def found(self) -> tuple[dict[int, EdgeSteps], LoopVariants]:
        """The loops with edge cells, by number, and the kernels of continued fields."""
        own, values = self.kernels, dict[SSAValue, SSAValue]()
        if not any(map(copies_cells, own.loops)):
            # Most programs are not even copied.
            return {}, LoopVariants(own, values)
        source = own.source.clone(values)
        known: dict[int, EdgeSteps] = {}
        for number, loop in enumerate(loops_of(source)):
            found = without_edge_copies(loop)
            if isinstance(found, EdgeSteps):
                known[number] = found
            elif found is not None:
                # A remark for explanations: the loop is no slower than stated.
                own.remarks[str(Remark(place_of(loop), found))] = None
        return known, LoopVariants(own.same_but(source), values)

    @property
    def steps(self) -> dict[int, EdgeSteps]:
        """The steps of runs of loops with edge cells, by number; none under given passes."""
        if self.kernels.options.passes is not None:
            return {}
        with self.one:
            return self.found[0]

    @property
    def continued(self) -> LoopVariants:
        """The kernels of continued fields."""
        with self.one:
            return self.found[1]

    @property
    def filling(self) -> LoopVariants:
        """The kernels for edge cells."""
        with self.one:
            return self.filling_once

    @cached_property
    def filling_once(self) -> LoopVariants:
        """The kernels for edge cells, made by one thread."""
        values = dict[SSAValue, SSAValue]()
        source = self.kernels.source.clone(values)
        loops = loops_of(source)
        for number, each in self.steps.items():
            copy_edges(loops[number], each)
        made = self.kernels.same_but(source)
        # No kernel of several steps is asked for.
        made.options = replace(made.options, depth=1)
        return LoopVariants(made, values)

    def of(self, loop: LoopOp, steps: int) -> tuple[int, EdgeSteps] | None:
        """The number of a loop with edge cells, and a run's steps; None for runs as written."""
        number = self.kernels.loops.index(loop)
        found = self.steps.get(number)
        if found is None:
            return None
        least = FEWEST_STEPS if Kind.PERIODIC in found.boundary.kinds else FEWEST_NEAR
        if steps < max(found.fewest, least):
            return None
        return number, found
