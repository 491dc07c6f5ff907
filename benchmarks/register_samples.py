"""
Assembled kernels, kept in `benchmarks/samples/registers-sm_90.jsonl`, one a line of JSON.

`benchmarks/assemble_samples.py` makes the samples, and `benchmarks/fit.py --registers` compares the
cost model with them. The first line of a file has the architecture, the assembler, the date and the
commands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from samples import SAMPLES

from timetile.passes.cost.register_facts import RegisterFacts, StageTaps

NEVER = 999
"""Stands for a number of registers that the instruction set does not have."""


@dataclass(frozen=True)
class RegisterSample:
    """An assembled kernel."""

    commit: str
    """The commit of the compiler."""
    program: str
    depth: int
    """Time steps of a launch."""
    schedule: dict[str, Any]
    """The entries of the schedule other than the defaults."""
    facts: RegisterFacts
    registers: int
    """Registers of a thread, as assembled for the schedule's occupancy."""
    spill_bytes: int
    apart: bool
    """Tiles inside the bounds have code of their own, without guards."""
    needed: int
    """
    The fewest registers without spills, of the code inside the bounds if apart; `NEVER` if no
    number is enough.
    """

    @staticmethod
    def of_line(line: Mapping[str, Any]) -> RegisterSample:
        """A sample from its JSON."""
        facts: dict[str, Any] = dict(line["facts"])
        facts["stages"] = tuple(StageTaps(*stage) for stage in facts["stages"])
        entries: dict[str, Any] = {**line, "facts": RegisterFacts(**facts)}
        return RegisterSample(**entries)

    def to_line(self) -> dict[str, Any]:
        """The sample as JSON."""
        line = asdict(self)
        line["facts"]["stages"] = [list(stage.values()) for stage in line["facts"]["stages"]]
        return line


def write(path: Path, first: Mapping[str, Any], samples: Sequence[RegisterSample]) -> None:
    """Write a file of samples, a sample a line."""
    ordered = sorted(samples, key=lambda s: (s.program, s.depth, repr(s.schedule)))
    lines = [first, *(sample.to_line() for sample in ordered)]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def read_register_samples(name: str) -> list[RegisterSample]:
    """The samples of a file below `benchmarks/samples`."""
    _, *lines = (SAMPLES / name).read_text().splitlines()
    return [RegisterSample.of_line(cast(dict[str, Any], json.loads(line))) for line in lines]


def commands_of(name: str) -> list[str]:
    """The commands that made a file of samples."""
    first, *_ = (SAMPLES / name).read_text().splitlines()
    return cast(list[str], json.loads(first)["commands"])
