"""Imports Devito and SymPy, whose types are not checked: their modules are Any outside of here."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str) -> Any:
    """A module of Devito or SymPy by full name. ImportError says how to install the package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"timetile.devito needs {name}; install Devito with: pip install 'timetile[devito]'"
        ) from error


sympy = module("sympy")


class NotCovered(Exception):
    """An equation without a translation. The text is one sentence with the reason."""
