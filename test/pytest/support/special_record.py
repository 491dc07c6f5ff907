"""
The record of special values: results of a GPU for the programs of `special_values`, in one file.

The file is a compressed `.npz`: for each program the operands, `read NAME k`, and the bytes of all
results, `made NAME`; and `facts`, the machine as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.special_values import DTYPES, SpecialProgram, in_bits

RECORD = Path(__file__).parents[1] / "data" / "special_values.npz"


@dataclass(frozen=True)
class SpecialRecord:
    """The arrays of a file, and the machine of the results."""

    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, str]

    def results_of(self, program: SpecialProgram) -> dict[str, NDArray[Any]]:
        """
        The recorded bits of a program's results, by name. KeyError for a program, and ValueError
        for operands, that the record lacks.
        """
        for k, given in enumerate(program.read):
            kept = self.arrays[f"read {program.name} {k}"]
            if not np.array_equal(in_bits(kept), in_bits(given)):
                raise ValueError(f"{program.name} was recorded with other operands: record again")
        made = self.arrays[f"made {program.name}"]
        found: dict[str, NDArray[Any]] = {}
        first = 0
        for name, kind in zip(program.results, program.types):
            zero = in_bits(np.zeros(program.read[0].size, DTYPES[kind]))
            found[name] = made[first : first + zero.nbytes].view(zero.dtype)
            first += zero.nbytes
        if first != made.size:
            raise ValueError(f"{program.name} was recorded with other results: record again")
        return found


def load_record(path: Path = RECORD) -> SpecialRecord:
    """The record of a file."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return SpecialRecord(arrays, json.loads(arrays.pop("facts").tobytes()))


def as_bytes(facts: Mapping[str, str]) -> NDArray[Any]:
    """The facts as JSON."""
    return np.frombuffer(json.dumps(facts, sort_keys=True).encode(), np.uint8)


def save_record(
    path: Path,
    made: Mapping[str, tuple[SpecialProgram, dict[str, NDArray[Any]]]],
    facts: Mapping[str, str],
) -> None:
    """Write programs, with the bits of their results, and the machine's facts."""
    arrays: dict[str, NDArray[Any]] = {"facts": as_bytes(facts)}
    for name, (program, results) in made.items():
        arrays |= {f"read {name} {k}": given for k, given in enumerate(program.read)}
        arrays[f"made {name}"] = np.concatenate(
            [results[result].view(np.uint8) for result in program.results]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, **arrays)
