"""The runners of a program on one GPU, one for each stream, and their resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

from timetile.runtime.device.gpu import device
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.kernels.of_program import ProgramKernels

MOST_STREAMS = 8
"""Most streams with a runner: each runner holds scratch buffers, as large as fields, and graphs."""


class Runners:
    """
    The runners of a program, by the stream's handle. If there are too many, the runner of the least
    recently used stream is closed. Several threads may ask at once.
    """

    def __init__(self, kernels: ProgramKernels, gpu: int):
        self.kernels, self.gpu = kernels, gpu
        self.kept: dict[int, GpuRunner] = {}
        """Runners by stream, the runner lent last at the end."""
        self.leases: Counter[GpuRunner] = Counter()
        self.lock = RLock()

    def of(self, stream: int) -> GpuRunner:
        """The runner of a stream, kept from now on."""
        with self.lock:
            runner = self.kept.pop(stream, None)
            if runner is None:
                runner = GpuRunner(self.kernels, device(self.gpu), stream, alone=True)
            self.kept[stream] = runner
            return runner

    @contextmanager
    def lent(self, stream: int) -> Generator[GpuRunner]:
        """The runner of a stream for a run: not closed for others meanwhile."""
        with self.lock:
            runner = self.of(stream)
            self.leases[runner] += 1
        try:
            yield runner
        finally:
            with self.lock:
                self.leases -= Counter([runner])
                surplus = self.surplus()
                if runner not in self.kept.values():
                    # Another thread closed the program.
                    surplus.append(runner)
            for each in surplus:
                each.close()

    def surplus(self) -> list[GpuRunner]:
        """The runners above the limit, removed."""
        idle = [stream for stream, runner in self.kept.items() if runner not in self.leases]
        return [self.kept.pop(stream) for stream in idle[: max(0, len(self.kept) - MOST_STREAMS)]]

    def close(self) -> None:
        """Give back the resources of all runners, after all runs are done."""
        with self.lock:
            runners = list(self.kept.values())
            self.kept.clear()
        for runner in runners:
            runner.close()
