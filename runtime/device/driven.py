"""
Launches driven by series: each turn of a loop over launches takes its own numbers.

The host's interpreter takes longer for a launch with a dozen numbers than a GPU for the launch.
The numbers of all turns are read ahead, and a turn sets them in the packed arguments: the driver
copies arguments as a kernel is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from timetile.dialects.tile import LaunchOp, StepValueOp
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.host.functions import HostValues
from timetile.runtime.kernels.kernel import Kernel

DRIVEN = (StepValueOp, LaunchOp, arith.MuliOp, arith.ConstantOp, scf.YieldOp)
"""The operations of a loop over launches with numbers of series."""


@dataclass(frozen=True, eq=False)
class DrivenLaunch:
    """A launch of each turn: the numbers of all turns, by the places of the arguments."""

    kernel: Kernel
    arguments: LaunchArguments
    numbers: dict[int, list[Any]]


@dataclass(frozen=True, eq=False)
class Driven:
    """Launches made `times` times, one after the other, with numbers of their own in each turn."""

    launches: list[DrivenLaunch]
    times: int

    def make(self, launch: Callable[[Kernel, LaunchArguments], None]) -> None:
        """Make all launches."""
        places = [
            [(each.arguments.packed[place], found) for place, found in each.numbers.items()]
            for each in self.launches
        ]
        for turn in range(self.times):
            for each, numbers in zip(self.launches, places):
                for packed, found in numbers:
                    packed.value = found[turn]
                launch(each.kernel, each.arguments)


def is_driven(op: scf.ForOp) -> bool:
    """Whether a loop over launches has numbers of series, and nothing else beside."""
    inner = list(op.body.block.ops)
    has_numbers = any(isinstance(each, StepValueOp) for each in inner)
    return has_numbers and not op.iter_args and all(isinstance(each, DRIVEN) for each in inner)


class DrivenLoop:
    """A loop over launches with numbers of series, run with some operands."""

    def __init__(self, op: scf.ForOp, turns: range, values: HostValues):
        self.op, self.turns = op, turns
        self.values = {**values, op.body.block.args[0]: np.asarray(turns)}
        """Values of the host, and arrays with a value for each turn."""
        self.changing: set[SSAValue] = {op.body.block.args[0]}
        """The values with an array for the turns."""

    def launches(
        self, prepared: Callable[[LaunchOp, Sequence[Any]], tuple[Kernel, LaunchArguments]]
    ) -> list[DrivenLaunch]:
        """The launches of a turn; `prepared` gives kernel and arguments of the first turn."""
        found: list[DrivenLaunch] = []
        for op in self.op.body.block.ops:
            if isinstance(op, LaunchOp):
                first = [self.values[v][0] if v in self.changing else self.values[v]
                         for v in op.operands]  # fmt: skip
                numbers = {
                    place: self.values[value].tolist()
                    for place, value in enumerate(op.operands)
                    if value in self.changing
                }
                found.append(DrivenLaunch(*prepared(op, first), numbers))
            else:
                self.evaluate(op)
        return found

    def evaluate(self, op: Operation) -> None:
        """Evaluate an operation for all turns."""
        match op:
            case arith.ConstantOp(value=IntegerAttr() as number):
                self.values[op.result] = number.value.data
            case arith.MuliOp():
                self.values[op.result] = self.values[op.lhs] * self.values[op.rhs]
            case StepValueOp():
                places = np.asarray(self.values[op.step]) + op.plus.data
                series = np.asarray(self.values[op.series])
                self.values[op.result] = np.broadcast_to(series[places], len(self.turns))
            case _:
                return
        if any(operand in self.changing for operand in op.operands):
            self.changing.add(op.results[0])
