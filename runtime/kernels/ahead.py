"""Kernels begun in forked processes, before a run asks for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.machine.forks import Forked, processes

MadeKernel = tuple[Kernel, tuple[str, ...]]
"""A kernel, and the remarks made on the way."""


class KernelsAhead:
    """Begins the kernels of a program, and hands each over once."""

    def __init__(self, make: Callable[[str], MadeKernel]):
        self.make = make
        self.begun: dict[str, Forked[MadeKernel]] = {}

    def begin(self, names: Sequence[str]) -> None:
        """
        Begin kernels in processes of their own. The first is left to the present process, and so
        are the last where cores are few.
        """
        room = processes() - 1 - len(self.begun)
        waiting = [name for name in names[1:] if name not in self.begun]
        for name in waiting[: max(0, room)]:
            self.begun[name] = Forked(lambda name=name: self.make(name))

    def foresee(self, names: Sequence[str], make: Callable[[str], MadeKernel], room: int) -> None:
        """
        Begin kernels that a run will probably ask for, the first ones, in at most `room` processes.
        `make` makes a kernel.
        """
        for name in names[: max(0, room)]:
            self.begun[name] = Forked(lambda name=name: make(name))

    def forget(self) -> None:
        """End what was begun: a run will ask for other kernels."""
        self.begun.clear()

    def take(self, name: str) -> MadeKernel:
        """A kernel: from the process that began it, or made now."""
        begun = self.begun.pop(name, None)
        return self.make(name) if begun is None else begun.result()
