"""Pyright knows the types in programs that use `timetile.stencil`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RIGHT = """\
import numpy as np
import timetile

def number_of_steps() -> int:
    return 2

@timetile.stencil
def step(u: timetile.Field, k: timetile.Scalar):
    u.next = u[0, 0] + k * np.exp(u[-1, 0]) + timetile.where(u[0, 0] > 1, 2.0, u[0, 1])
    u.next[0:1, :] = 2 * u[1, 0]

state = step.advance({"u": np.ones((3, 3))}, steps=3, k=0.2)
state["u"].sum()
for number, state in step.snapshots(state, steps=3, every=number_of_steps(), k=0.2):
    np.save(f"u-{number + 1}.npy", state["u"])
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
step.snapshots({"u": np.ones(3)}, steps=3)
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
    assert lines == {6, 7, 8, 10, 11, 12}, done.stdout
