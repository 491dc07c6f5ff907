"""The key of the compiler's own files, without reading the files again.

Reading some 800 files takes as long as a fifth of a first call with a full cache. A cache keeps the
key under the files' place, sizes and times of the last change: any change of a file changes its
time.
"""

from __future__ import annotations

import time

from timetile.runtime.cache.keys import FOUND, compiler_folder, key_of, source_files, sources_key
from timetile.runtime.cache.store import Cache

LEAST_AGE_NS = 2_000_000_000
"""Files changed later may change again in one tick of the system's clock, in nanoseconds."""


def find_sources_key(cache: Cache) -> None:
    """Find the key of the compiler's own files for `sources_key`, once in a process."""
    if FOUND:
        return
    files = source_files()
    newest = max(each.st_ctime_ns for each in files.values())
    if time.time_ns() - newest < LEAST_AGE_NS:
        return
    stamps = (part for n, s in files.items() for part in (n, s.st_ctime_ns, s.st_size, s.st_ino))
    key = key_of("sources", compiler_folder(), *stamps)
    kept = cache.decoded(key, lambda parts: parts["key"].decode())
    if kept is not None:
        FOUND.append(kept)
        return
    cache.write(key, {"key": sources_key().encode()})
