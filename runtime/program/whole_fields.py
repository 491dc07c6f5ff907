"""The program for runs of few steps, where longer runs store layers in fields of their own.

A run that stores layers alone copies the layers twice (`passes/loops/store_layers.py`): acoustic
waves with layers on 512 x 512 x 512 cells take 866 us a step in whole fields and 788 us with stored
layers, and the copies take 480 us a run (one H200, FP32).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from timetile.passes.loops.store_layers import LEAST_STEPS

if TYPE_CHECKING:
    from timetile.runtime.program.compiled_program import CompiledProgram


class WholeFields:
    """
    A program with layers in whole fields, made at the first run of few steps. Without `make`, all
    runs take the program itself.
    """

    def __init__(self, make: Callable[[], CompiledProgram] | None = None):
        self.make = make
        self.made: CompiledProgram | None = None
        self.one_making = Lock()

    def takes(self, steps: int | None) -> bool:
        """Whether a run has too few steps to pay for copies of layers."""
        return self.make is not None and isinstance(steps, int) and steps < LEAST_STEPS

    @property
    def program(self) -> CompiledProgram:
        """The program, made once."""
        assert self.make is not None
        with self.one_making:
            self.made = self.made or self.make()
            return self.made

    def close(self) -> None:
        """Give back the program's resources on the GPU, after all runs are done."""
        if self.made is not None:
            self.made.close()
