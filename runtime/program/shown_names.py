"""The names of a compiled program that users see in `dir` and in completion."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = (
    "advance", "close", "executor", "explain", "gpu", "module", "name", "parameters", "snapshots",
    "threads", "tune",
)  # fmt: skip
"""The documented attributes and methods of a compiled program."""


class ShownNames:
    """An object that shows documented names alone; all other attributes are parts of timetile."""

    def __dir__(self) -> Iterable[str]:
        """The documented names, and Python's own."""
        own = (name for name in super().__dir__() if name.startswith("__"))
        return [*own, *(name for name in SHOWN if hasattr(type(self), name) or name in vars(self))]
