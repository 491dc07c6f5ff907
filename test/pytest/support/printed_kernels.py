"""The kernels of a compiled program, as printed and assembled."""

from __future__ import annotations

from itertools import chain

import timetile
from timetile.runtime.kernels.kernel import Kernel


def made_kernels_of(program: timetile.CompiledProgram) -> list[Kernel]:
    """
    All kernels: of the loops, and of fields computed once before a loop. An assembled kernel has
    registers.
    """
    facts = chain.from_iterable(program.kernels.facts)
    return [program.kernels.kernel(fact.name) for fact in facts]
