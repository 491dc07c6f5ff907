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
        self.is_waiting = self.source is not None
        if self.source is None or is_newer(self.binary, self.source):
            return
        self.binary.parent.mkdir(parents=True, exist_ok=True)
        command = ["nvcc", "-O3", "-std=c++17", "-arch=sm_90", "-o", self.begun, self.source]
        try:
            self.building = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            self.is_waiting = False
            print(f"no naive kernels are timed: {described(error)}", flush=True)

    @property
    def begun(self) -> Path:
        """The file of a binary that may not be whole."""
        return self.binary.with_suffix(".begun")

    @property
    def is_built(self) -> bool:
        """Whether the binary is whole, and nothing is timed yet."""
        return self.is_waiting and (self.building is None or self.building.poll() is not None)

    def wait(self) -> None:
        """Wait for nvcc."""
        if self.building is None:
            return
        _, said = self.building.communicate()
        if self.building.returncode:
            print(said, flush=True)
        else:
            self.begun.rename(self.binary)
        self.building = None

    def time(self) -> None:
        """Wait for nvcc, and time the kernels, once."""
        if not self.is_waiting:
            return
        self.is_waiting = False
        self.wait()
        try:
            command = [self.binary.resolve(), *self.programs]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no naive kernels are timed: {described(error)}", flush=True)
            return
        rows = (line.split() for line in said.splitlines())
        self.speeds = {(name, element): float(speed) for name, element, speed in rows}


def is_newer(made: Path, source: Path) -> bool:
    """Whether a file made of a source is there, and newer."""
    return made.exists() and made.stat().st_mtime > source.stat().st_mtime
