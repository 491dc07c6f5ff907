"""Kernels of a run to come, begun by the model's choice while the assembler looks at the choice.

The assembler mostly confirms the model's schedule: the other kernels of the run are then nearly
done when the deepest is. If another schedule wins, the begun kernels are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from timetile.dialects.temporal import LoopOp
from timetile.lowering.plan_launches import kernel_facts
from timetile.passes.diagnostics import collected_remarks
from timetile.runtime.kernels.ahead import KernelsAhead, MadeKernel
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.making import made_kernel
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.machine.forks import processes

BUSY = 2
"""Processes busy meanwhile: one with the deepest kernel, one with the search for deeper ones."""


def loop_schedules(module: ModuleOp) -> list[tuple[Attribute | None, Attribute | None]]:
    """The schedule and the depths of each time loop."""
    return [(loop.schedule, loop.depths) for loop in loops_of(module)]


class ForeseenKernels:
    """Begins the kernels of a program's next run, but for the deepest, by the model's choice."""

    def __init__(
        self, options: Options, ahead: KernelsAhead, cached: Callable[[str], Kernel | None]
    ):
        self.options, self.ahead, self.cached = options, ahead, cached
        self.coming: dict[LoopOp, int] = {}
        """The steps of the run to come, by time loop; a run of several loops foresees nothing."""

    def begin(self, module: ModuleOp) -> None:
        """Begin kernels of a module with one time loop and the model's choice."""
        room = processes() - BUSY
        if room < 1 or len(self.coming) != 1:
            return
        ((loop, steps),) = self.coming.items()
        expected = module.clone()
        with collected_remarks():
            run_passes(self.options.halves_of_tile_passes()[1], expected, verify=False)
        facts, names = kernel_facts(expected), loops_of(expected)[0].kernel_names
        plan = planned_function(loop, [facts[name] for name in names], steps)
        others = [name for name in launched_by(plan) if name != names[0]]

        def make(name: str) -> MadeKernel:
            with collected_remarks() as remarks:
                kernel = made_kernel(expected, name, self.options)
            return kernel, tuple(map(str, remarks))

        self.ahead.foresee([name for name in others if self.cached(name) is None], make, room)

    def forget(self) -> None:
        """End what was begun: the run will ask for kernels of other schedules."""
        self.ahead.forget()
