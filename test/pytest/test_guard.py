"""The guard of a rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from timetile.runtime.machine import guard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards are for Linux")


def test_a_signal_at_the_end_of_a_rank_is_handed_to_nobody_else(monkeypatch: pytest.MonkeyPatch):
    """mpiexec ends all processes at once: a signal follows the end of the rank."""

    def then_a_signal(wait: Callable[..., Any], *given: Any) -> Any:
        found = wait(*given)
        signal.raise_signal(signal.SIGUSR1)
        return found

    for name in ("waitid", "waitpid"):
        monkeypatch.setattr(os, name, partial(then_a_signal, getattr(os, name)))
    before = signal.getsignal(signal.SIGUSR1)
    try:
        rank = subprocess.Popen(["false"])
        assert guard.status_of(rank.pid, [signal.SIGUSR1]) == 1
        rank.returncode = 1
    finally:
        signal.signal(signal.SIGUSR1, before)
