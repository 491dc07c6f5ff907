"""Imports cuda-python, which has no types: its modules are Any outside of here."""

from __future__ import annotations

import importlib
from typing import Any


def cuda_module(name: str) -> Any:
    """The module `cuda.<name>`; ImportError where cuda-python is not installed."""
    return importlib.import_module(f"cuda.{name}")
