"""The files of results: what was measured, with which versions, and the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("xdsl", "numpy", "cuda-bindings")
"""Packages whose versions are written into every file."""


def versions() -> dict[str, str]:
    """The versions of packages."""
    return {package: version(package) for package in PACKAGES}


def write_report(path: Path, about: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write facts about a run, versions and rows."""
    text = json.dumps({**about, **versions(), "rows": list(rows)}, indent=1)
    path.write_text(text + "\n")
