"""Tests that share results run on one worker, by the mark of their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.groups import group_of

MARKED = {
    "the only mark": 'pytestmark = pytest.mark.xdist_group("plates")\n',
    "one of several marks": (
        'pytestmark = [\n    pytest.mark.covering,\n    pytest.mark.xdist_group("plates"),\n]\n'
    ),
}


@pytest.mark.parametrize("marks", MARKED)
def test_the_group_of_a_file_is_in_its_mark(marks: str, tmp_path: Path):
    file = tmp_path / "test_plates.py"
    file.write_text(f"import pytest\n\n{MARKED[marks]}")
    assert group_of(file) == "plates"


def test_a_file_without_a_mark_has_no_group(tmp_path: Path):
    file = tmp_path / "test_alone.py"
    file.write_text("def test_nothing():\n    pass\n")
    assert group_of(file) is None


def test_files_that_share_kernels_share_a_worker():
    here = Path(__file__).parent
    shared = ("code_content", "code_of_halos")
    assert {group_of(here / f"test_{name}.py") for name in shared} == {"code_content"}
