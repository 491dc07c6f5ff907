"""Runs the launches between two checks of a condition on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
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
            return self.run(loop, steps, buffers, list(outside.values()))
