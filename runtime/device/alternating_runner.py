"""Runs the launches between two checks of a condition on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.runtime.device.actions import Prepared, Repeated
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by


class AlternatingRunner(GpuRunner):
    """
    Runs some steps of one time loop as given launches (`runtime/kernels/alternating.py`), whatever
    plan another run of as many steps has.
    """

    def __init__(
        self, kernels: ProgramKernels, on: Device, stream: int, launches: FuncOp, steps: int
    ):
        super().__init__(kernels, on, stream)
        (loop,) = kernels.loops
        self.steps = steps
        self.plans[loop, steps, False] = launches
        # A launch that is recorded loads no kernel.
        for name in launched_by(launches):
            kernel = on.known(kernels.kernel(name))
            on.load(kernel)
            self.retain(kernel)

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        assert steps == self.steps
        with self.one_run:
            self.actions = []
            return self.run(loop, steps, buffers, list(outside.values()))

    @property
    def launches(self) -> list[Prepared] | None:
        """
        The launches of the latest run, one after the other; None if it did other things, or was
        repeated as a graph.
        """
        repeated = [action for action in self.actions if isinstance(action, Repeated)]
        if not repeated or len(repeated) < len(self.actions):
            return None
        return [launch for each in repeated for launch in each.launches * each.times]
