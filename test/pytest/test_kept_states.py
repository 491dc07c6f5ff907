"""States kept during a run: in a list, by a function, in a Zarr group."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.steps import noise
from timetile import Field, Series, State
from timetile.runtime.host.kept_fields import KeptFields, opened_arrays

zarr: Any = pytest.importorskip("zarr")


@timetile.stencil
def heat(u: Field, k: Field, f: Series):
    u.next = u[0] + k[0] * (u[-1] - 2 * u[0] + u[1]) + f[0]


ON_CPU = heat.on(executor="cpu", cache=False)

GIVEN = {"u": noise(40), "k": 0.2 * noise(40)}

FORCE = noise(50)


def after(steps: int) -> Any:
    """The field after some steps."""
    return ON_CPU.advance(GIVEN, steps, f=FORCE)["u"]


def test_a_list_gets_states_with_arrays_of_their_own():
    kept: list[State[Any]] = []
    state = ON_CPU.advance(GIVEN, 10, keep=kept, every=4, f=FORCE)
    assert [each.steps for each in kept] == [4, 8, 10]
    for each in kept:
        assert np.array_equal(each["u"], after(each.steps)) and each["k"] is GIVEN["k"]
    kept[-1]["u"][:] = 0
    assert np.array_equal(state["u"], after(10))


def test_a_function_is_called_until_a_condition_ends_the_run():
    seen: list[int] = []

    def look(state: State[Any]) -> None:
        assert np.array_equal(state["u"], after(state.steps))
        seen.append(state.steps)

    def ends(u: Field) -> bool:
        return len(seen) == 2 and timetile.maximum(u.next[0]) > 0

    state = ON_CPU.advance(GIVEN, 20, keep=look, until=ends, every=3, f=FORCE)
    assert seen == [3, 6] and state.stopped and state.steps == 6


def test_a_zarr_group_has_all_snapshots_of_runs_that_go_on(tmp_path: Path):
    path = tmp_path / "heat.zarr"
    state = ON_CPU.advance(GIVEN, 6, keep=path, every=3, f=FORCE)
    ON_CPU.advance(state, 7, keep=str(path), every=5, first_step=6, f=FORCE)
    group: Any = zarr.open_group(str(path), mode="r")
    assert list(group["step"][:]) == [3, 6, 11, 13] and set(group) == {"step", "u"}
    assert group["u"].chunks == (1, 40)
    for number, steps in enumerate(group["step"][:]):
        assert np.array_equal(group["u"][number], after(int(steps)))


def test_an_hdf5_file_has_all_snapshots_of_runs_that_go_on(tmp_path: Path):
    h5py: Any = pytest.importorskip("h5py")
    path = tmp_path / "heat.h5"
    state = ON_CPU.advance(GIVEN, 6, keep=path, every=3, f=FORCE)
    ON_CPU.advance(state, 7, keep=str(path), every=5, first_step=6, f=FORCE)
    with h5py.File(path) as file:
        assert list(file["step"][:]) == [3, 6, 11, 13] and set(file) == {"step", "u"}
        assert file["u"].chunks == (1, 40)
        for number, steps in enumerate(file["step"][:]):
            assert np.array_equal(file["u"][number], after(int(steps)))
    with pytest.raises(ValueError, match=r"u has cells of shape \(30,\), and the file has snap"):
        short = {name: array[:30] for name, array in GIVEN.items()}
        ON_CPU.advance(short, 2, keep=path, first_step=13, f=FORCE)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "heat.hdf5"
    with pytest.raises(ModuleNotFoundError) as caught:
        ON_CPU.advance(GIVEN, 2, keep=path, f=FORCE)
    assert str(caught.value) == (f"{path} needs the package h5py; run pip install 'timetile[hdf5]'")


@pytest.mark.parametrize("name", ["heat.zarr", "heat.h5"])
def test_cells_of_bf16_are_kept_as_float32(name: str, tmp_path: Path):
    cells = noise(40).astype(pytest.importorskip("ml_dtypes").bfloat16)
    kept = KeptFields(tmp_path / name, again=False)
    kept.add(3, {"u": cells})
    kept.close()
    file: Any = opened_arrays(tmp_path / name, again=True)
    found = (file.group if name.endswith("zarr") else file.file)["u"][0]
    file.close()
    assert found.dtype == np.float32 and np.array_equal(found, cells.astype(np.float32))


@pytest.mark.parametrize("name", ["heat.zarr", "heat.h5"])
def test_a_file_in_the_way_is_left_alone(name: str, tmp_path: Path):
    path = tmp_path / name
    ON_CPU.advance(GIVEN, 2, keep=path, f=FORCE)
    with pytest.raises(FileExistsError, match=rf"{name} exists; remove it, name another path"):
        ON_CPU.advance(GIVEN, 2, keep=path, f=FORCE)
    with pytest.raises(TypeError, match="keep takes a list, a function of a state, or the path"):
        ON_CPU.advance(GIVEN, 2, keep=3, f=FORCE)


def test_an_error_of_writing_ends_the_run(tmp_path: Path):
    path = tmp_path / "heat.zarr"
    group: Any = zarr.open_group(str(path), mode="w")
    group.create_array("u", shape=(0, 3), dtype="float64")
    with pytest.raises(ValueError, match="shape"):
        ON_CPU.advance(GIVEN, 6, keep=path, first_step=1, f=FORCE)
