"""States kept during a run: in a list, by a function, or in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

from timetile.frontend.arrays import in_memory
from timetile.frontend.runs import State, StateRun
from timetile.runtime.program.kept_parts import file_of_snapshots

Taken = Callable[[State[Any]], object]
"""Takes a state with arrays of its own."""


class Keeper:
    """Gives copies of the states of a run to a function."""

    def __init__(self, run: StateRun, given: Mapping[str, Any], taken: Taken):
        self.run, self.given, self.taken = run, given, taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        """Nothing is left to do."""

    def keep(self) -> None:
        """Keep the state after the steps done."""
        self.taken(self.copied())

    def copied(self) -> State[Any]:
        """The present state, with copies of the arrays that the step assigns."""
        found = self.run.state(self.given)
        for name in found:
            if name.removesuffix(".prev") in self.run.assigned:
                found[name] = in_memory(found[name])
        return State(found, self.run.first + self.run.done, stopped=False)


class NoKeeper(Keeper):
    """Keeps nothing."""

    def keep(self) -> None:
        """Nothing."""


class FileKeeper(Keeper):
    """Writes the assigned fields to a file while the run goes on."""

    def __init__(self, run: StateRun, given: Mapping[str, Any], path: Path):
        super().__init__(run, given, self.write)
        self.file = file_of_snapshots(run.of_parts.program, path, again=run.first > 0)

    def write(self, state: State[Any]) -> None:
        """Append a state."""
        self.file.add(state.steps, {name: state[name] for name in self.run.assigned})

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        """Wait for the last state."""
        self.file.close(failed=problem is not None)


def keeper_of(keep: object, run: StateRun, given: Mapping[str, Any]) -> Keeper:
    """What keeps the states of a run. Raises TypeError for objects that keep nothing."""
    if keep is None:
        return NoKeeper(run, given, print)
    if isinstance(keep, str | PathLike):
        return FileKeeper(run, given, Path(cast("str", keep)))
    if isinstance(keep, list):
        return Keeper(run, given, cast("list[Any]", keep).append)
    if callable(keep):
        return Keeper(run, given, cast("Taken", keep))
    raise TypeError(
        "keep takes a list, a function of a state, or the path of a Zarr group or an HDF5 file, "
        f"got {keep!r}"
    )
