"""
Profiles for generated tests: `ci` (the default) is small and always draws the same examples; `check` is smaller still;
`pytest --hypothesis-profile=nightly` draws many, and others every time. And what tests
of the command line need: a disk cache of their own, and a program as a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.command_line import HEAT
from support.sizes import EXAMPLES

# The first example of a process pays for imports and caches: time says nothing about an example.
for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        derandomize=name != "nightly",
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("ci")

# There are no wheels of the PTX assembler and of MLIR for macOS.
collect_ignore = ["test_mlir.py", "test_ptx.py"] if sys.platform == "darwin" else []


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk cache that is empty."""
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    """The program of the command line's tests, as a file."""
    path = tmp_path / "heat.mlir"
    path.write_text(HEAT)
    return path
