"""The kernels of `naive/naive.cu`, built beside other work and timed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rows import described


@dataclass
class NaiveKernels:
    """The naive kernels of some programs, built by nvcc beside other work, and their speeds."""

    source: Path | None
    programs: Sequence[str]
    binary: Path
    speeds: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """GPts/s by program and element, once timed."""

    def __post_init__(self) -> None:
        self.building: subprocess.Popen[str] | None = None
        if self.source is None:
            return
        self.binary.parent.mkdir(parents=True, exist_ok=True)
        command = ["nvcc", "-O3", "-std=c++17", "-arch=sm_90", "-o", self.binary, self.source]
        try:
            self.building = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            print(f"no naive kernels are timed: {described(error)}", flush=True)

    @property
    def is_built(self) -> bool:
        """Whether nvcc has ended, and nothing is timed yet."""
        return self.building is not None and self.building.poll() is not None

    def time(self) -> None:
        """Wait for nvcc, and time the kernels, once."""
        if self.building is None:
            return
        _, said = self.building.communicate()
        self.building = None
        try:
            command = [self.binary.resolve(), *self.programs]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no naive kernels are timed: {described(error)} {said}", flush=True)
            return
        rows = (line.split() for line in said.splitlines())
        self.speeds = {(name, element): float(speed) for name, element, speed in rows}
