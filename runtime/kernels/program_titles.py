"""How records of measurements name a program, and count its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetile.dialects.syntax import element_type
from timetile.passes.analysis.launches.liveness import written_bounds, written_cells
from timetile.runtime.loading.selection import host_function

if TYPE_CHECKING:
    from timetile.runtime.kernels.of_program import ProgramKernels


def title_of(kernels: ProgramKernels) -> str:
    """Name and sizes of a program: `@heat, 8192 x 8192 cells (f64)`."""
    name = host_function(kernels.source, kernels.options.function).sym_name.data
    loop = max(kernels.loops, key=written_cells)
    bounds = written_bounds(loop)
    sizes = " x ".join(str(high - low) for low, high in zip(bounds.lb, bounds.ub))
    kinds = ", ".join(dict.fromkeys(str(element_type(buffer)) for buffer in loop.buffers))
    return f"@{name}, {sizes} cells ({kinds})"


def updates_of_step(kernels: ProgramKernels) -> int:
    """Cell updates of a step of all time loops."""
    return sum(written_cells(loop) for loop in kernels.loops if loop.sweep is None)
