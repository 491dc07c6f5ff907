"""A program's text is read from a file, from standard input, and after a byte order mark."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import timetile
from timetile.runtime.cli import main

TEXT = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()
MARKED = "\ufeff" + TEXT
RUN = ("run", "--steps", "2", "--init", "discs", "--executor", "numpy", "--no-cache")


def started(text: str, words: Sequence[str]) -> int:
    """The status of a command in a process of its own."""
    line = [str(Path(sys.executable).with_name("timetile")), *words]
    return subprocess.run(line, input=text, text=True, check=False).returncode


def run_here(text: str, words: Sequence[str]) -> int:
    """The status of a command in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(text))
        return main(words)


@pytest.mark.parametrize(
    ("text", "run"), [(TEXT, run_here), (MARKED, started)], ids=["plain", "marked"]
)
def test_standard_input_is_a_program(
    text: str, run: Callable[[str, Sequence[str]], int], tmp_path: Path
):
    assert run(text, [*RUN, "-", "--out", str(tmp_path / "piped.npz")]) == 0
    (tmp_path / "heat2d.mlir").write_text(text)
    out = str(tmp_path / "read.npz")
    assert main([*RUN, str(tmp_path / "heat2d.mlir"), "--out", out]) == 0
    with np.load(tmp_path / "piped.npz") as one, np.load(out) as other:
        assert set(one) == set(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_a_byte_order_mark_is_no_part_of_a_program():
    plain = timetile.compile(TEXT, executor="numpy", cache=False)
    marked = timetile.compile(MARKED, executor="numpy", cache=False)
    assert str(marked.module) == str(plain.module)
