"""The size of the cache of a processor core."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""The description of the first core's caches by Linux, a folder for each cache."""

USUAL_BYTES = 1 << 20
"""The size if the system has no description: most cores have as much, or more."""

UNITS = {"K": 1 << 10, "M": 1 << 20}


@cache
def core_cache_bytes() -> int:
    """The bytes of the second-level cache, divided by the number of cores sharing the cache."""
    found = of_macos() if sys.platform == "darwin" else of_linux(CACHES)
    return found or USUAL_BYTES


def of_linux(caches: Path) -> int | None:
    """The size by a folder of Linux; None if the folder does not describe the cache."""
    for folder in sorted(caches.glob("index*")):
        try:
            level, size, shared = (
                (folder / name).read_text().strip() for name in ("level", "size", "shared_cpu_list")
            )
            if level == "2":
                return int(size[:-1]) * UNITS[size[-1]] // cores_in(shared)
        except (OSError, ValueError, KeyError):
            # Containers and other systems hide parts of the description.
            return None
    return None


def cores_in(ranges: str) -> int:
    """How many cores a list of ranges names: `0-3,8` names 5."""
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def of_macos() -> int | None:
    """The size by macOS, of the fastest cores; None if macOS does not describe the cache."""
    size = system_fact("hw.perflevel0.l2cachesize") or system_fact("hw.l2cachesize")
    return size and size // (system_fact("hw.perflevel0.cpusperl2") or 1)


def system_fact(name: str) -> int | None:
    """A fact of macOS by name; None for an unknown name."""
    library = ctypes.CDLL(None)
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    failed: int = library.sysctlbyname(
        name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return None if failed else value.value
