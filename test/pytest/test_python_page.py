"""The blocks of docs/python.md run one after the other, and pyright knows their types."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("own_cache")
def test_the_blocks_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert len(BLOCKS) >= 9
    path = tmp_path / "page.py"
    path.write_text("\n".join(BLOCKS))
    names = runpy.run_path(str(path))
    assert names["heat"].step.fields == {"u": (0, 1)}
    assert "func.func @heat" in capsys.readouterr().out


RIGHT = """\
import numpy as np
import timetile

@timetile.stencil
def step(u: timetile.Field, k: timetile.Scalar):
    u.next = u[0, 0] + k * np.exp(u[-1, 0]) + timetile.where(u[0, 0] > 1, 2.0, u[0, 1])
    u.next[0:1, :] = 2 * u[1, 0]

state = step.advance({"u": np.ones((3, 3))}, steps=3, k=0.2)
state["u"].sum()
"""

WRONG = """\
import numpy as np
import timetile

@timetile.stencil
def step(u: timetile.Field):
    u.next = u
    u.next = u["a"]
    u.later = u[0]

step.advance({"u": np.ones(3)}, steps="3")
step.on(executor="tpu")
"""


def test_pyright_checks_the_code_of_users(tmp_path: Path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "right.py", "wrong.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "right.py" not in done.stdout, done.stdout
    lines = {int(line) for line in re.findall(r"wrong\.py:(\d+):\d+ - error", done.stdout)}
    assert lines == {6, 7, 8, 10, 11}, done.stdout
