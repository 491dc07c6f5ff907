"""Running the command line inside a test: a program, arguments, and the printed output."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from timetile.runtime.cli import main

Field = NDArray[np.float64]

ROWS, COLUMNS = 14, 19

HEAT = f"""
!field = !stencil.field<[-1,{ROWS + 1}]x[-1,{COLUMNS + 1}]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @heat(%u: !field, %v: !field, %k: f64, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %u, %b = %v) -> (!field, !field) {{
    %in = stencil.load %a : !field -> !temp
    %out = stencil.apply(%x = %in : !temp, %w = %k : f64) -> (!temp) {{
      %up = stencil.access %x[-1, 0] : !temp
      %left = stencil.access %x[0, -1] : !temp
      %right = stencil.access %x[0, 1] : !temp
      %m0 = arith.mulf %w, %up : f64
      %m1 = arith.mulf %w, %left : f64
      %m2 = arith.mulf %w, %right : f64
      %s1 = arith.addf %m0, %m1 : f64
      %s2 = arith.addf %s1, %m2 : f64
      stencil.return %s2 : f64
    }}
    stencil.store %out to %b(<[0, 0], [{ROWS}, {COLUMNS}]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }}
  func.return
}}
"""
"""With k = 0.25 and small integers every result is exact, and equal with and without fma."""

K = 0.25


def fields() -> tuple[Field, Field]:
    """Two buffers of small integers, halos included."""
    random = np.random.default_rng(5)
    shape = (ROWS + 2, COLUMNS + 2)
    u, v = (random.integers(-8, 9, shape).astype(np.float64) for _ in range(2))
    return u, v


def expected_after(steps: int) -> tuple[Field, Field]:
    """The contents of both buffers after the program."""
    u, v = fields()
    old, new = u, v
    for _ in range(steps):
        new[1:-1, 1:-1] = K * (old[:-2, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        old, new = new, old
    return u, v


def inputs(tmp_path: Path, **arrays: NDArray[np.generic] | float) -> Path:
    """A .npz file; the program's two fields unless others are given."""
    path = tmp_path / "in.npz"
    with path.open("wb") as file:
        given: dict[str, Any] = arrays or dict(zip(("u", "v"), fields(), strict=True))
        np.savez(file, **given)
    return path


def outputs(path: Path) -> dict[str, Field]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def run(line: str) -> int:
    """Run a command line, split like in a shell; argparse leaves by SystemExit."""
    try:
        return main(shlex.split(line))
    except SystemExit as leave:
        assert isinstance(leave.code, int)
        return leave.code


def error_of(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence of a command with a user's error."""
    assert run(line) == 2
    captured = capsys.readouterr()
    *remarks, sentence = captured.err.splitlines()
    assert all(remark.startswith("warning: ") for remark in remarks)
    assert sentence.startswith("timetile: ")
    return sentence.removeprefix("timetile: ")
