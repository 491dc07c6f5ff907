"""
Messages of the workers of pytest-xdist. A worker tells five times about a test, and the process
that reads takes a core from the workers: of a test that passes, the result is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

ABOUT_THE_COURSE = ("logstart", "logfinish")
"""Messages that a test begins, and that a test has ended."""


def is_needed(name: str, values: Mapping[str, Any]) -> bool:
    """Whether the reading process is told."""
    if name in ABOUT_THE_COURSE:
        return False
    if name != "testreport":
        return True
    report = values["data"]
    return report["when"] == "call" or report["outcome"] != "passed"


def telling_results(send: Callable[..., None]) -> Callable[..., None]:
    """A worker's way to send messages, without those that nobody needs."""

    def tell(name: str, **values: Any) -> None:
        if is_needed(name, values):
            send(name, **values)

    return tell


def send_results_alone(config: pytest.Config) -> None:
    """Tell little about tests that pass, from now on; nothing changes where no worker runs."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            worker: Any = plugin
            worker.sendevent = telling_results(worker.sendevent)
