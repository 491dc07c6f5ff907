"""Texts of programs in spellings that xDSL does not read: made into ones that it reads, a line for a line."""

from __future__ import annotations

from timetile.runtime.spellings.earth import is_earth, modern_earth
from timetile.runtime.spellings.older import modern_older


def modern(text: str) -> str:
    """The program in the spelling that xDSL reads; the text itself where nothing in it is known to be older."""
    return modern_earth(text) if is_earth(text) else modern_older(text)
