"""Names in PTX: kernels' names in MLIR, in letters allowed by PTX."""

from __future__ import annotations

import re

SHARED_SYMBOL = "dynamic_shared"
"""The name of a block's shared memory."""

FUNCTION_PREFIX = "timetile_"
"""The prefix of names of mathematical functions."""

RESERVED = (SHARED_SYMBOL, "WARP_SZ", "_")
"""Names with another meaning in PTX, or without meaning."""

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def escaped(text: str) -> str:
    """Each character by number: `$2e$`."""
    return "".join(f"${ord(character):x}$" for character in text)


def symbol(name: str) -> str:
    """
    The name of a kernel in PTX. Letters, digits and `_` stay; any other character, a digit ahead,
    and the first letter of a name that means something else are escaped. Different names stay
    different, as `$` is escaped, too.
    """
    head, rest = name[:1], name[1:]
    if name in RESERVED or name.startswith(FUNCTION_PREFIX) or not PLAIN.fullmatch(head):
        head = escaped(head)
    return head + re.sub(r"[^A-Za-z0-9_]", lambda found: escaped(found[0]), rest)


def report_symbol(kernel: str) -> str:
    """
    The word of a kernel's module for a report of a wait in vain, without messages from other
    blocks. No kernel's name has a single `$`.
    """
    return f"{symbol(kernel)}$report"
