"""Refusals of steps written in Python."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from timetile import StencilError


def refusal(tmp_path: Path, text: str) -> StencilError:
    """The refusal of a program."""
    path = tmp_path / "step.py"
    path.write_text(text)
    with pytest.raises(StencilError) as caught:
        runpy.run_path(str(path))
    assert caught.value.file == str(path)
    return caught.value
