"""Raised programs are remembered by their text, with the places of their operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.cell_values import CELL_TYPES
from timetile.passes.diagnostics import CompileError
from timetile.runtime import raising
from timetile.runtime.arithmetic import DTYPES
from timetile.runtime.cache import Cache
from timetile.runtime.kernels import Options

HEAT = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()


def never(*_: object) -> None:
    raise AssertionError("the program was parsed again")


def test_a_text_is_raised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = Cache(tmp_path)
    first = raising.raised(HEAT, Options(), cache)
    monkeypatch.setattr(raising, "load_text", never)
    again = raising.raised(HEAT, Options(), cache)
    assert str(again) == str(first)
    places = [[op.location for op in module.walk()] for module in (first, again)]
    assert places[0] == places[1]
    (loop,) = [op for op in again.walk() if isinstance(op, LoopOp)]
    assert isinstance(loop.location, FileLineColLoc)
    with pytest.raises(AssertionError, match="parsed again"):
        raising.raised(HEAT, Options(fp_contract="off"), cache)
    with pytest.raises(AssertionError, match="parsed again"):
        raising.raised(HEAT + " ", Options(), cache)


def test_a_damaged_entry_is_raised_again(tmp_path: Path):
    cache = Cache(tmp_path)
    first = raising.raised(HEAT, Options(), cache)
    (entry,) = cache.keys()
    (cache.entry(entry) / "temporal.mlir").write_text("builtin.module {}")
    assert str(raising.raised(HEAT, Options(), cache)) == str(first)
    assert cache.damaged() == []


def test_what_is_refused_or_left_with_a_remark_is_not_remembered(tmp_path: Path):
    cache = Cache(tmp_path)
    with pytest.raises(CompileError):
        raising.raised("func.func @nothing() { func.return }", Options(), cache)
    assert cache.keys() == []
    loop = "scf.for %i = %zero to %steps step %one {\n  }\n  func.return"
    raising.raised(HEAT.replace("func.return", loop), Options(), cache)
    assert cache.keys() == []


def test_the_executors_compute_with_all_types_of_a_cell():
    assert set(DTYPES) == set(CELL_TYPES)
