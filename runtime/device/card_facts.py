"""Facts of a GPU by its driver, and the speed of a device copy, measured once for a card.

The measurement takes about 10 ms and is kept in the cache, by the card and its driver.
`TIMETILE_MEASURE=0` does without: copies are then as fast as the table or the memory's clock says.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import Any

from timetile.passes.targets.facts import Facts, is_same
from timetile.passes.targets.isa import ISAS
from timetile.passes.targets.part import LOADED_SHARE, Part
from timetile.runtime.cache.keys import key_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu_memory import GpuMemory
from timetile.runtime.machine.driver import checked

SWITCH = "TIMETILE_MEASURE"

MEASURING_SECONDS = 5e-3
"""Seconds of copies, at least; the fastest counts."""

LEAST_BYTES = 64 << 20
"""Bytes of a measured copy, at least, and four times the bytes of L2."""

KEPT = "copy.txt"
"""The part of a cache entry with a measured copy, in 10^12 bytes a second."""

MEASURED: dict[str, float] = {}
"""The copies measured in this process, by card and driver."""


def card_text(there: GpuMemory) -> str:
    """A GPU and its driver, as a part of the key of what was measured there."""
    version = checked(there.cuda.cuDriverGetVersion())
    count = there.attribute("MULTIPROCESSOR_COUNT")
    cuda = f"CUDA {version // 1000}.{version % 100 // 10}"
    return f"{there.name}, {count} multiprocessors, driver of {cuda}"


@contextmanager
def two_buffers(there: GpuMemory, size: int) -> Any:
    """The addresses of two buffers of the device."""
    first = there.allocate(size)
    try:
        second = there.allocate(size)
        try:
            yield first, second
        finally:
            there.free(second)
    finally:
        there.free(first)


def fastest_copy(there: GpuMemory, size: int, stream: int) -> float:
    """The seconds that the fastest of several copies takes, from buffer to buffer on the device."""
    cuda, fastest = there.cuda, float("inf")
    before, after = checked(cuda.cuEventCreate(0)), checked(cuda.cuEventCreate(0))
    try:
        with two_buffers(there, size) as (source, target):
            end = time.perf_counter() + MEASURING_SECONDS
            rounds = 0
            while rounds < 3 or time.perf_counter() < end:
                rounds += 1
                checked(cuda.cuEventRecord(before, stream))
                there.copy(source, target, size, stream)
                checked(cuda.cuEventRecord(after, stream))
                checked(cuda.cuEventSynchronize(after))
                fastest = min(fastest, checked(cuda.cuEventElapsedTime(before, after)) / 1e3)
    finally:
        checked(cuda.cuEventDestroy(before))
        checked(cuda.cuEventDestroy(after))
    return fastest


def measured_copy(there: GpuMemory) -> float | None:
    """
    The speed of a device copy, bytes read plus bytes written (10^12 bytes a second), measured now.
    None where the memory is full.
    """
    size = max(LEAST_BYTES, 4 * there.attribute("L2_CACHE_SIZE"))
    with there.giving_back():
        stream = there.new_stream()
        try:
            return 2 * size / fastest_copy(there, size, stream) / 1e12
        except MemoryError:
            return None
        finally:
            there.destroy_stream(stream)


def copy_of_card(there: GpuMemory, cache: Cache | None) -> float | None:
    """
    The speed of a device copy on a card: as kept, else measured and kept. None where measuring is
    switched off or the memory is full.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    card = card_text(there)
    key = key_of("a device copy", card)
    if card not in MEASURED and cache is not None:
        kept = cache.decoded(key, lambda parts: float(parts[KEPT]))
        if kept is not None:
            MEASURED[card] = kept
    if card not in MEASURED:
        found = measured_copy(there)
        if found is None:
            return None
        # Two digits: measurements of two cards of a kind agree, and schedules do not tell more.
        MEASURED[card] = float(f"{found:.2g}")
        if cache is not None:
            cache.write(key, {KEPT: repr(MEASURED[card]).encode()})
    return MEASURED[card]


def clocks_of_card(there: GpuMemory, cache: Cache | None) -> tuple[int, int]:
    """
    The highest clocks of a card and of its memory, in kilohertz, as kept: the driver asks the
    card, for up to 0.08 s in each process.
    """
    bits, l2 = (there.attribute(name) for name in ("GLOBAL_MEMORY_BUS_WIDTH", "L2_CACHE_SIZE"))
    key = key_of("clocks", card_text(there), bits, l2)
    kept = None if cache is None else cache.decoded(key, lambda parts: clocks_in(parts[KEPT]))
    if kept is not None:
        return kept
    found = there.attribute("CLOCK_RATE"), there.attribute("MEMORY_CLOCK_RATE")
    if cache is not None:
        cache.write(key, {KEPT: f"{found[0]} {found[1]}".encode()})
    return found


def clocks_in(text: bytes) -> tuple[int, int]:
    """Two clocks as kept. Raises ValueError for other text."""
    own, memory = map(int, text.split())
    return own, memory


def memory_tb_per_s(there: GpuMemory, kilohertz: int) -> float | None:
    """
    Bandwidth of a GPU's memory by clock and bus, in 10^12 bytes a second; None if the driver knows
    neither.
    """
    bits = there.attribute("GLOBAL_MEMORY_BUS_WIDTH")
    # Each cycle makes two transfers, each as wide as the bus.
    return 2 * kilohertz * 1e3 * bits / 8 / 1e12 or None


def facts_of_card(there: GpuMemory, part: Part, is_known: bool, cache: Cache | None) -> Facts:
    """
    The facts of a GPU that differ from a part's numbers, besides the number of multiprocessors.
    `is_known`: the part is the GPU's own, and its clock was seen under load: the driver's highest
    clock counts where lower. Otherwise all facts are the driver's.
    """
    isa, found = ISAS[part.isa], dict[str, float]()
    kilohertz, memory_kilohertz = clocks_of_card(there, cache)
    clock = LOADED_SHARE * kilohertz / 1e6
    if clock and not is_same(clock, part.clock_ghz) and (clock < part.clock_ghz or not is_known):
        found["clock"] = float(f"{clock:.3g}")
    memory = memory_tb_per_s(there, memory_kilohertz)
    if memory is not None and not is_same(memory, part.memory_tb_per_s):
        found["memory"] = float(f"{memory:.3g}")
    l2 = there.attribute("L2_CACHE_SIZE")
    if l2 and not is_same(l2, part.l2_bytes):
        found["l2"] = l2
    for word, name, most in (
        ("shared", "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", isa.shared_per_multiprocessor),
        ("block", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", isa.shared_per_block),
    ):
        if 0 < (size := there.attribute(name)) < most:
            found[word] = size
    expected = part.copy_tb_per_s * found.get("memory", part.memory_tb_per_s) / part.memory_tb_per_s
    copy = copy_of_card(there, cache)
    if copy is not None and not is_same(copy, expected):
        found["copy"] = copy
    return found
