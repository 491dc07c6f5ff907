"""A program's text is read from a file, from standard input, and after a byte order mark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import timetile
from timetile.runtime.cli import main

TEXT = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()
MARKED = "\ufeff" + TEXT
RUN = ("run", "--steps", "2", "--init", "discs", "--executor", "numpy", "--no-cache")


def command(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """A finished command."""
    line = [str(Path(sys.executable).with_name("timetile")), *words]
    return subprocess.run(line, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", [TEXT, MARKED], ids=["plain", "marked"])
def test_standard_input_is_a_program(text: str, tmp_path: Path):
    piped = command(*RUN, "-", "--out", str(tmp_path / "piped.npz"), text=text)
    assert piped.returncode == 0, piped.stderr
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
