"""Imports cuda-python. The package has no types: this file gives its modules the type Any."""

from __future__ import annotations

import importlib
from typing import Any


def cuda_module(name: str) -> Any:
    """The module `cuda.<name>`; ImportError where cuda-python is not installed."""
    return importlib.import_module(f"cuda.{name}")
