"""The Python of docs/devito.md runs, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "devito.md"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert abs(names["u"].data).max() > 0
    assert (names["w"].data[1] != 0).any()
