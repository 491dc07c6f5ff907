"""The examples of examples/python end with the bits of NumPy loops, and their pictures exist."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.numpy_loops import LOOPS
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "python"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "draw")
STEPS = 5

each_example = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples' folder is on the path; imports from the folder are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    yield
    for name in (*NAMES, "draw"):
        sys.modules.pop(name, None)


def started(name: str, dtype: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The model of an example, a state of small arrays with some noise, and scalars."""
    example = import_module(name)
    state: dict[str, Any] = example.start(37)
    noise = np.random.default_rng(5)
    rough: dict[str, Any] = {
        key: a + 0.01 * noise.random(a.shape) for key, a in state.items() if key != "solid"
    }
    state = {key: array.astype(dtype) for key, array in (state | rough).items()}
    # Round numbers of either type.
    numbers = {key: np.dtype(dtype).type(value) for key, value in example.NUMBERS.items()}
    return getattr(example, name), state, numbers


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@each_example
def test_an_example_leaves_the_arrays_of_its_numpy_loop(name: str, dtype: str):
    model, state, numbers = started(name, dtype)
    before = {key: array.copy() for key, array in state.items()}
    found = model.on(executor="cpu", fp_contract="off", cache=False).advance(
        state, steps=STEPS, **numbers
    )
    expected = {f"{key}.prev": state[key] for key in model.step.second} | state
    for _ in range(STEPS):
        expected = LOOPS[name](expected, **numbers)
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert array.dtype == dtype
        assert np.array_equal(found[key], array), key
    assert any(not np.array_equal(found[key], before[key]) for key in before)
    assert all(np.array_equal(state[key], before[key]) for key in before)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", ["numpy", "planes", "simt"])
@each_example
def test_all_executors_agree_on_the_examples_in_python(name: str, executor: Executor):
    model, state, numbers = started(name, "float32")
    model = model.on(cache=False, depth=1 if name == "lattice_boltzmann" else None)
    expected = model.on(executor="cpu").advance(state, steps=3, **numbers)
    found = model.on(executor=executor).advance(state, steps=3, **numbers)
    for key, array in expected.items():
        assert np.array_equal(found[key], array), key


@each_example
def test_a_continued_state_equals_the_state_of_one_run(name: str):
    model, state, numbers = started(name, "float64")
    model = model.on(executor="cpu", cache=False)
    once = model.advance(state, steps=5, **numbers)
    twice = model.advance(model.advance(state, steps=3, **numbers), steps=2, **numbers)
    assert all(np.array_equal(once[key], twice[key]) for key in once)


def test_an_example_runs_by_itself(own_cache: Path, capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(FOLDER / "heat.py"), run_name="__main__")
    assert capsys.readouterr().out == "u: from 0 to 1\n"


def test_every_example_is_short_and_has_a_picture():
    assert sorted(LOOPS) == NAMES
    pictures = EXAMPLES / "pictures" / "python"
    assert sorted(path.stem for path in pictures.glob("*.png")) == NAMES
    assert all(path.stat().st_size < 150_000 for path in pictures.glob("*.png"))
    for name in NAMES:
        assert 10 <= len((FOLDER / f"{name}.py").read_text().splitlines()) <= 40


def test_the_pictures_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["draw.py", "heat", "--steps", "2", "--size", "20",
                                      "--executor", "cpu", "--out", str(tmp_path)])  # fmt: skip
    monkeypatch.setenv("MPLBACKEND", "agg")
    import_module("draw").main()
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
