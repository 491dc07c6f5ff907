"""
Snapshots of ranks in one file: all ranks write to an HDF5 file at once, rank 0 to a Zarr group.

Rank 0 makes room for a snapshot with the library of the file, and tells the others the places. Each
rank writes an equal share of the rows through MPI's files; the number of the step comes last, once
all have written: a snapshot with a step is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from timetile.runtime.host.kept_fields import (
    STEP_OF_SNAPSHOT,
    GrowingArrays,
    Hdf5Arrays,
    KeptFields,
    cells_of_file,
    opened_arrays,
)
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.ranked_program import PROBLEM, RankedProgram, object_to
from timetile.runtime.ranks.peers import WORD_BYTES, Peers, as_bytes, failed, words_of_all

T = TypeVar("T")

DONE = "done"
"""The word of a rank that has done its work."""


class FileOfSnapshots(Protocol):
    """Takes the snapshots of a run."""

    def add(self, step: int, fields: Mapping[str, Any]) -> None:
        """Write a snapshot, now or later. The fields are not changed meanwhile."""
        ...

    def close(self, *, failed: bool = False) -> None:
        """Nothing comes any more."""
        ...


class KeptParts:
    """
    Writes snapshots of ranks to a file. All ranks make and call the object together, with equal
    fields. Raises RankError on all ranks if one fails.
    """

    def __init__(self, peers: Peers, path: Path, *, again: bool):
        self.peers, self.path = peers, path
        self.arrays: GrowingArrays | None = self.by_first(lambda: opened_arrays(path, again=again))

    def by_first(self, work: Callable[[], T]) -> T | None:
        """The result of some work of rank 0, once it is done; None on other ranks."""
        return self.together(lambda: work() if self.peers.rank == 0 else None)

    def together(self, work: Callable[[], T]) -> T:
        """The result of some work, once all ranks have done theirs."""
        found = self.done_or_told(work)
        self.words(DONE)
        return found

    def done_or_told(self, work: Callable[[], T]) -> T:
        """The result of some work; a failure is told to the other ranks, who wait for a word."""
        try:
            return work()
        except BaseException as error:
            object_to(self.peers, error)
            raise

    def words(self, text: str) -> list[str]:
        """The texts of all ranks. Raises RankError for a rank that failed."""
        found = words_of_all(self.peers, text)
        for rank, word in enumerate(found):
            if word.startswith(PROBLEM):
                raise failed(rank, self.peers.count, word.removeprefix(PROBLEM))
        return found

    def add(self, step: int, fields: Mapping[str, Any]) -> None:
        """Write a snapshot."""
        for name, given in fields.items():
            self.add_field(name, np.ascontiguousarray(cells_of_file(given)))
        self.by_first(lambda: self.append(STEP_OF_SNAPSHOT, np.asarray(np.int64(step))))

    def append(self, name: str, cells: np.ndarray[Any, Any]) -> None:
        """Append cells, on rank 0 alone."""
        assert self.arrays is not None
        self.arrays.append(name, cells)
        self.arrays.flush()

    def add_field(self, name: str, cells: np.ndarray[Any, Any]) -> None:
        """Write a field of a snapshot."""
        rows, *places = self.room_for(name, cells)
        if places:
            self.together(lambda: self.write_share(cells, rows, places))
        else:
            self.by_first(lambda: self.append(name, cells))

    def room_for(self, name: str, cells: np.ndarray[Any, Any]) -> list[int]:
        """
        The rows of a chunk, and the places in the file of the chunks of a new snapshot; no places
        where rank 0 writes alone.
        """

        def room() -> str:
            said = "[0]"
            if isinstance(self.arrays, Hdf5Arrays) and cells.ndim:
                said = json.dumps(self.arrays.room(name, cells.shape, cells.dtype))
            if len(said) >= WORD_BYTES:
                raise ValueError(f"{name} has too many cells for an HDF5 file; name a Zarr group")
            return said

        said = self.done_or_told(lambda: room() if self.peers.rank == 0 else DONE)
        return json.loads(self.words(said)[0])

    def write_share(self, cells: np.ndarray[Any, Any], rows: int, places: list[int]) -> None:
        """Write the rank's share of the rows to the chunks."""
        from mpi4py import MPI

        count, rank = self.peers.count, self.peers.rank
        first, last = (len(cells) * k // count for k in (rank, rank + 1))
        # On a communicator of one rank, no call waits.
        file = MPI.File.Open(MPI.COMM_SELF, str(self.path), MPI.MODE_WRONLY)
        try:
            for number, place in enumerate(places):
                begin = number * rows
                low, high = max(first, begin), min(last, begin + rows)
                if low < high:
                    at = place + (low - begin) * cells[0].nbytes
                    file.Write_at(at, as_bytes(cells[low:high]))
        finally:
            file.Close()

    def close(self, *, failed: bool = False) -> None:
        """Close the file, on rank 0."""
        if self.arrays is not None:
            self.arrays.close()


def file_of_snapshots(program: CompiledProgram, path: Path, *, again: bool) -> FileOfSnapshots:
    """
    The file for the snapshots of a program: of one process, or of all ranks. Raises the errors of
    `check_kept_file`, on ranks RankError on the other ranks.
    """
    if isinstance(program, RankedProgram):
        return KeptParts(program.peers, path, again=again)
    return KeptFields(path, again=again)
