"""
The workers of tests that share results. pytest-xdist 3.8 appends a test's group to the test's name,
and pytest 9.2 drops the appendix: the group is read from the file instead.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

GROUP = re.compile(r'xdist_group\("(\w+)"\)')


@cache
def group_of(path: Path) -> str | None:
    """The group of a file of tests, from the file's mark `xdist_group`; None without a mark."""
    found = GROUP.search(path.read_text(encoding="utf-8"))
    return None if found is None else found[1]


def scheduler_of_groups(config: pytest.Config, log: object) -> object:
    """
    A scheduler of pytest-xdist, which has no types: one worker runs all tests of a group; each
    other test runs where a worker is free.
    """

    def scope(nodeid: str) -> str:
        return group_of(config.rootpath / nodeid.partition("::")[0]) or nodeid

    scheduler = import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler
