"""Work of a program is marked for profilers, where NVIDIA's package for marks is installed."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

from support.driver import BookKeeper
from support.gpu_programs import SHAPE, program
from timetile.runtime.machine import ranges

pytestmark = pytest.mark.usefixtures("cache_of_file")


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of ranges, in the order of their beginnings."""
    begun: list[str] = []

    @contextmanager
    def annotate(name: str, *, domain: str) -> Generator[None]:
        assert domain == "timetile"
        begun.append(name)
        yield

    module = ModuleType("nvtx")
    module.__dict__["annotate"] = annotate
    module.__spec__ = ModuleSpec("nvtx", None)
    monkeypatch.setitem(sys.modules, "nvtx", module)
    ranges.annotation.cache_clear()
    yield begun
    ranges.annotation.cache_clear()


def test_compiling_copies_and_launches_have_ranges(driver: BookKeeper, marks: list[str]):
    compiled = program(cache=False)
    compiled(np.zeros(SHAPE), np.zeros(SHAPE), steps=9)
    kinds = [name.partition("@")[0] for name in marks]
    assert kinds[:2] == ["copy to the GPU"] * 2 and kinds[-2:] == ["copy from the GPU"] * 2
    assert "launch 9 steps" in marks and "compile " in kinds


def test_without_the_package_nothing_is_marked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    ranges.annotation.cache_clear()
    try:
        with ranges.profiled("nothing") as mark:
            assert mark is None
    finally:
        ranges.annotation.cache_clear()
