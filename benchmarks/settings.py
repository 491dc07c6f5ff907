"""
Settings of benchmarks: they measure kernels of chosen schedules. No run begins before the choice,
and no run tries others.
"""

from __future__ import annotations

import os

from timetile.runtime.kernels.beside import VARIABLE
from timetile.runtime.kernels.rivals import TRIALS


def wait_for_choices() -> None:
    """
    Let runs of this process wait for their schedules, and keep them, unless the environment says
    otherwise.
    """
    os.environ.setdefault(VARIABLE, "1")
    os.environ.setdefault(TRIALS, "0")
