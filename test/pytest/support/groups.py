"""
The workers of tests. A worker runs a file's tests one after the other: tests of a file share texts,
fixtures and results. Tests of few files, and tests of `make nightly`, run where a worker is free.
Files of a group share a worker: pytest-xdist 3.8 appends a test's group to the test's name, and
pytest 9.2 drops the appendix, so that the group is read from the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from support.sizes import is_nightly

GROUP = re.compile(r'xdist_group\("(\w+)"\)')


@cache
def group_of(path: Path) -> str | None:
    """The group of a file of tests, from the file's mark `xdist_group`; None without a mark."""
    found = GROUP.search(path.read_text(encoding="utf-8"))
    return None if found is None else found[1]


FEW = 8
"""Files named to pytest, below which the tests of a file are spread over the workers."""


def in_whole_files(arguments: Sequence[str]) -> bool:
    """Whether a worker runs all tests of a file, for the files and folders named to pytest."""
    of_files = all(".py" in argument for argument in arguments)
    return not is_nightly() and not (of_files and len(arguments) < FEW)


def scheduler_of_groups(config: pytest.Config, log: object) -> object:
    """
    A scheduler of pytest-xdist, which has no types: one worker runs all tests of a file or of a
    group, in order of their names.
    """
    whole = in_whole_files(config.args)

    @cache
    def scope(nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return group_of(config.rootpath / file) or (file if whole else nodeid)

    config.option.loadscopereorder = False
    scheduler = import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler
