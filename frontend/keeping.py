"""States kept during a run: in a list, by a function, or in a Zarr group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from timetile.frontend.arrays import copy_of
from timetile.frontend.runs import State, StateRun
from timetile.runtime.host.arrays import is_numpy_array

Taken = Callable[[State[Any]], object]
"""Takes a state with arrays of its own."""


def in_memory(array: Any) -> Any:
    """A copy of an array, in NumPy."""
    if is_numpy_array(array):
        return copy_of(array)
    if hasattr(array, "cpu"):
        return np.array(array.detach().cpu())
    return np.array(array.get() if hasattr(array, "get") else array)


class Keeper:
    """Gives copies of the states of a run to a function."""

    def __init__(self, run: StateRun, given: Mapping[str, Any], taken: Taken):
        self.run, self.given, self.taken = run, given, taken

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is left to do."""

    def keep(self) -> None:
        """Keep the state after the steps done."""
        self.taken(self.copied())

    def copied(self) -> State[Any]:
        """The present state, with copies of the arrays that the step assigns."""
        found = self.run.state(self.given)
        for name in found:
            if name.removesuffix(".prev") in self.run.step.written:
                found[name] = in_memory(found[name])
        return State(found, self.run.first + self.run.done, stopped=False)


class NoKeeper(Keeper):
    """Keeps nothing."""

    def keep(self) -> None:
        """Nothing."""


class ZarrKeeper(Keeper):
    """
    Writes the assigned fields to a Zarr group, in a thread, while the run goes on. The first
    snapshot makes the arrays.
    """

    def __init__(self, run: StateRun, given: Mapping[str, Any], path: Path):
        super().__init__(run, given, self.write)
        self.group = opened_group(path, again=run.first > 0)
        self.writer = ThreadPoolExecutor(max_workers=1)
        self.written: Future[None] | None = None

    def keep(self) -> None:
        """Copy the present state, and write it after the state before."""
        state = self.copied()
        self.wait()
        self.written = self.writer.submit(self.write, state)

    def wait(self) -> None:
        """Wait for the latest state; errors of writing are raised here."""
        if self.written is not None:
            self.written.result()

    def write(self, state: State[Any]) -> None:
        """Append a state."""
        self.append("step", np.int64(state.steps))
        for name in self.run.step.written:
            self.append(name, state[name])

    def append(self, name: str, cells: Any) -> None:
        """Append cells to an array along the axis of snapshots."""
        if name not in self.group:
            shape = np.shape(cells)
            self.group.create_array(name, shape=(0, *shape), chunks=(1, *shape), dtype=cells.dtype)
        array = self.group[name]
        array.append(np.asarray(cells)[None])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the last state."""
        self.writer.shutdown()
        if problem is None:
            self.wait()


def opened_group(path: Path, *, again: bool) -> Any:
    """
    A Zarr group: a new one, or the group of an earlier run to append to. Raises FileExistsError for
    a group in the way, ModuleNotFoundError without the package zarr.
    """
    try:
        zarr: Any = import_module("zarr")
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "keep= of a path needs the package zarr; run pip install 'timetile[zarr]', or pass a "
            "list or a function"
        ) from problem
    if path.exists() and not again:
        raise FileExistsError(
            f"{path} exists; remove it, name another path, or pass first_step= of a run that goes "
            "on"
        )
    return zarr.open_group(str(path), mode="a")


def keeper_of(keep: object, run: StateRun, given: Mapping[str, Any]) -> Keeper:
    """What keeps the states of a run. Raises TypeError for objects that keep nothing."""
    if keep is None:
        return NoKeeper(run, given, print)
    if isinstance(keep, str | PathLike):
        return ZarrKeeper(run, given, Path(cast("str", keep)))
    if isinstance(keep, list):
        return Keeper(run, given, cast("list[Any]", keep).append)
    if callable(keep):
        return Keeper(run, given, cast("Taken", keep))
    raise TypeError(
        f"keep takes a list, a function of a state, or the path of a Zarr group, got {keep!r}"
    )
