"""Settings of benchmarks: they measure kernels of chosen schedules, and no run begins before."""

from __future__ import annotations

import os

from timetile.runtime.kernels.beside import VARIABLE


def wait_for_choices() -> None:
    """Let runs of this process wait for their schedules, unless the environment says otherwise."""
    os.environ.setdefault(VARIABLE, "1")
