"""Devito and SymPy, whose types are not checked: their modules enter here, and are Any from then on."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str) -> Any:
    """A module of Devito or SymPy by its full name; ImportError says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"timetile.devito needs {name}; install it with: pip install 'timetile[devito]'"
        ) from error


sympy = module("sympy")


class NotCovered(Exception):
    """An equation that has no translation; the text is one sentence that says why."""
