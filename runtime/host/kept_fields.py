"""Fields kept in a file during a run: a Zarr group, or an HDF5 file, with an axis of snapshots.

The file has an array for each field, and the steps of the snapshots as `step`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from errno import ENOENT
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

HDF5 = (".h5", ".hdf5")
"""Names of HDF5 files end so; other paths are of Zarr groups."""

STEP_OF_SNAPSHOT = "step"

NO_FOLDER = "its folder is missing; make the folder, or name another path"

MOST_CHUNK_BYTES = 1 << 30
"""Chunks written by several ranks have at most so many bytes; HDF5 takes less than 4 GiB."""

EARLY = 1
"""HDF5's number for room that is made before cells are written (`H5D_ALLOC_TIME_EARLY`)."""


class GrowingArrays(Protocol):
    """Arrays of a file by name, with snapshots along the first axis."""

    def append(self, name: str, cells: np.ndarray[Any, Any]) -> None:
        """Append a snapshot; the first makes the array. ValueError for cells of another shape."""
        ...

    def flush(self) -> None:
        """Write what was appended."""
        ...

    def close(self) -> None:
        """Nothing is appended any more."""
        ...


class ZarrArrays:
    """The arrays of a Zarr group."""

    def __init__(self, path: Path):
        zarr: Any = library("zarr", path)
        self.group = zarr.open_group(str(path), mode="a")

    def append(self, name: str, cells: np.ndarray[Any, Any]) -> None:
        """Append a snapshot, a chunk of the array."""
        if name not in self.group:
            shape = cells.shape
            self.group.create_array(name, shape=(0, *shape), chunks=(1, *shape), dtype=cells.dtype)
        self.group[name].append(cells[None])

    def flush(self) -> None:
        """Nothing is left to write."""

    def close(self) -> None:
        """Nothing is left to write."""


class Hdf5Arrays:
    """The arrays of an HDF5 file."""

    def __init__(self, path: Path):
        h5py: Any = library("h5py", path)
        self.file = h5py.File(path, "a")

    def append(self, name: str, cells: np.ndarray[Any, Any]) -> None:
        """Append a snapshot, a chunk of the array."""
        shape = cells.shape
        if name not in self.file:
            self.file.create_dataset(
                name, (0, *shape), cells.dtype, maxshape=(None, *shape), chunks=(1, *shape)
            )
        self.check_shape(name, shape)
        array = self.file[name]
        array.resize(len(array) + 1, axis=0)
        array[-1] = cells

    def room(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> list[int]:
        """
        Room in the file for a snapshot whose cells follow: the rows of a chunk, and where each
        chunk lies, in bytes. `[0]` for an array that has no room before the cells are written.
        """
        if name not in self.file:
            h5py: Any = import_module("h5py")
            made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            row_bytes = dtype.itemsize * prod(shape[1:])
            rows = max(1, min(shape[0], MOST_CHUNK_BYTES // max(row_bytes, 1)))
            self.file.create_dataset(
                name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(1, rows, *shape[1:]),
                dcpl=made,
            )  # fmt: skip
        array = self.file[name]
        if array.id.get_create_plist().get_alloc_time() != EARLY:
            return [0]
        self.check_shape(name, shape)
        last = len(array)
        array.resize(last + 1, axis=0)
        self.file.flush()
        rows, others = array.chunks[1], (0,) * (len(shape) - 1)
        firsts = [(last, first, *others) for first in range(0, shape[0], rows)]
        return [rows, *(array.id.get_chunk_info_by_coord(each).byte_offset for each in firsts)]

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise ValueError for snapshots of another shape."""
        array = self.file[name]
        if array.shape[1:] != shape:
            raise ValueError(
                f"{name} has cells of shape {shape}, and the file has snapshots of shape "
                f"{array.shape[1:]}; name another file"
            )

    def flush(self) -> None:
        """Write what was appended: a process that is killed leaves a readable file."""
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def cells_of_file(cells: Any) -> np.ndarray[Any, Any]:
    """Cells as a file keeps them: those of bf16, which no file has a type for, as float32."""
    found: np.ndarray[Any, Any] = np.asarray(cells)
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def library(name: str, path: Path) -> Any:
    """The package for a file. Raises ModuleNotFoundError with the way to get the package."""
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        extra = "hdf5" if name == "h5py" else name
        raise ModuleNotFoundError(
            f"{path} needs the package {name}; run pip install 'timetile[{extra}]'"
        ) from problem


def check_kept_file(path: Path, *, again: bool) -> None:
    """
    Raise FileExistsError for a file in the way, unless a run goes on, FileNotFoundError without the
    folder of an HDF5 file (Zarr makes folders), and ModuleNotFoundError without the package for the
    file.
    """
    library("h5py" if path.suffix in HDF5 else "zarr", path)
    if path.suffix in HDF5 and not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, NO_FOLDER, str(path))
    if path.exists() and not again:
        raise FileExistsError(
            f"{path} exists; remove it, name another path, or pass the first step of a run that "
            "goes on"
        )


def opened_arrays(path: Path, *, again: bool) -> GrowingArrays:
    """
    The arrays of a new file, or those of an earlier run to append to. Raises the errors of
    `check_kept_file`.
    """
    check_kept_file(path, again=again)
    return Hdf5Arrays(path) if path.suffix in HDF5 else ZarrArrays(path)


class KeptFields:
    """Writes snapshots to a file, in a thread, while the run goes on."""

    def __init__(self, path: Path, *, again: bool):
        self.arrays = opened_arrays(path, again=again)
        self.writer = ThreadPoolExecutor(max_workers=1)
        self.latest: Future[None] | None = None

    def add(self, step: int, fields: Mapping[str, Any]) -> None:
        """Write a snapshot, after the snapshot before. The fields are not changed meanwhile."""
        self.wait()
        self.latest = self.writer.submit(self.write, step, fields)

    def wait(self) -> None:
        """Wait for the latest snapshot; errors of writing are raised here."""
        if self.latest is not None:
            self.latest.result()

    def write(self, step: int, fields: Mapping[str, Any]) -> None:
        """Append a snapshot."""
        for name, cells in fields.items():
            self.arrays.append(name, cells_of_file(cells))
        # The step comes last: a snapshot with a step is whole.
        self.arrays.append(STEP_OF_SNAPSHOT, np.asarray(np.int64(step)))
        self.arrays.flush()

    def close(self, *, failed: bool = False) -> None:
        """Wait for the last snapshot. After a failure no further error is raised."""
        self.writer.shutdown()
        try:
            if not failed:
                self.wait()
        finally:
            self.arrays.close()
