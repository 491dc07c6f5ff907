"""What programs of the benchmarks found once, kept in a cache beside their kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.compiled_program import CompiledProgram

PART = "found.json"
"""The part of a cache entry."""

Found = TypeVar("Found")


def kept(cache: Cache, find: Callable[[], Found], *about: object) -> Found:
    """What was found before about something, in JSON, by equal sources; else found now."""
    key = key_of("benchmarks", sources_key(), *about)
    known: dict[str, Found] | None = cache.decoded(key, lambda parts: json.loads(parts[PART]))
    if known is None:
        known = {"found": find()}
        cache.write(key, {PART: json.dumps(known).encode()})
    return known["found"]


def with_cache(made: CompiledProgram, cache: Cache) -> CompiledProgram:
    """A program whose kernels are cached, also kernels by passes that the benchmarks define."""
    kernels = ProgramKernels(made.kernels.source, made.kernels.options, cache)
    return CompiledProgram(kernels.source, kernels, made.executor, made.gpu)
