"""Texts of programs in spellings foreign to xDSL, translated line by line."""

from __future__ import annotations

from timetile.runtime.loading.spellings.earth import is_earth, modern_earth
from timetile.runtime.loading.spellings.older import modern_older


def modern(text: str) -> str:
    """The program in xDSL's spelling; the text itself if not known to be older."""
    return modern_earth(text) if is_earth(text) else modern_older(text)
