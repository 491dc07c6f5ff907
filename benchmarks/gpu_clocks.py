"""Clocks and power of all GPUs, sampled by `nvidia-smi` beside a run."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from threading import Thread

MILLISECONDS = 20
"""Between two samples, as asked for; `nvidia-smi` may be slower."""

QUERY = "index,clocks.sm,power.draw,temperature.gpu"

Span = tuple[float, float]
"""The begin and the end of a run, in seconds of `time.monotonic`."""


@dataclass(frozen=True)
class Sample:
    """A sample of a GPU."""

    at: float
    """Seconds of `time.monotonic`."""
    megahertz: float
    watts: float
    celsius: float


@dataclass
class GpuClocks:
    """The samples of GPUs, by number; none without `nvidia-smi`."""

    samples: dict[int, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def take(self, line: str) -> None:
        """Note a line of `nvidia-smi`; lines of another form are left out."""
        try:
            number, *values = map(float, line.split(","))
            self.samples[int(number)].append(Sample(time.monotonic(), *values))
        except (TypeError, ValueError):
            return

    def during(self, spans: list[Span]) -> dict[int, Sample]:
        """The mean of the samples of each GPU in some spans of time."""
        found: dict[int, Sample] = {}
        for number, known in sorted(self.samples.items()):
            inside = [each for each in known if any(a <= each.at <= b for a, b in spans)]
            if inside:
                found[number] = Sample(
                    mean(each.at for each in inside),
                    round(mean(each.megahertz for each in inside)),
                    round(mean(each.watts for each in inside)),
                    round(mean(each.celsius for each in inside)),
                )
        return found


def reader_of_clocks() -> subprocess.Popen[str] | None:
    """`nvidia-smi`, saying clocks again and again; None where it is missing."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        return subprocess.Popen(
            [*command, "-lms", str(MILLISECONDS)], stdout=subprocess.PIPE, text=True
        )
    except OSError:
        return None


@contextmanager
def sampled() -> Generator[GpuClocks]:
    """The clocks of all GPUs, sampled inside the block."""
    found, reader = GpuClocks(), reader_of_clocks()
    if reader is None:
        yield found
        return

    def read() -> None:
        for line in reader.stdout or ():
            found.take(line)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        reader.kill()
        reader.wait()
