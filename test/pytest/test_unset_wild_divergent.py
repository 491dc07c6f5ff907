"""
Faults other than races, found by the SIMT interpreter: unset values, wild and misaligned accesses,
and forbidden divergence of threads. Each kernel is written by hand, and has a corrected twin
without a report.
"""

from __future__ import annotations

import pytest

from support.kernels import (
    BARRIER,
    COMMIT,
    COPY,
    WARP_SYNC,
    WRITE_SHARED,
    Case,
    by_threads_below,
    check,
    wait,
)

LATER_COPY = f"simt.copy_async %s[%t + 64], %f[%t + 64] bytes 8\n{COMMIT}"

UNSET = [
    Case(
        "shared-memory-starts-unset",
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 0",
        WRITE_SHARED + "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
    ),
    Case(
        "what-is-made-of-unset-values",
        "%u = simt.unset : f64\n%w = arith.addf %u, %x : f64\nsimt.store %w to %f[%t + 64]",
        "simt.store %w to %f[%t + 64]: stores a value that was never set to cell 64",
        "%u = simt.unset : f64\n%w = arith.addf %u, %x : f64\n%all = arith.cmpi slt, %t, %full : "
        "i32\n%v = arith.select %all, %w, %x : f64\nsimt.store %v to %f[%t + 64]",
    ),
    Case(
        "a-load-whose-mask-is-off",
        "%low = arith.cmpi slt, %t, %two : i32\n%w = simt.load %f[%t + 0] mask %low : f64\n"
        "simt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 2",
        "%low = arith.cmpi slt, %t, %two : i32\n%w = simt.load %f[%t + 0] mask %low : f64\n"
        "simt.store %w to %f[%t + 0] mask %low",
    ),
    Case(
        "a-shuffle-from-beyond-the-warp",
        "%v = simt.load %f[%t + 0] : f64\n%w = simt.shuffle %v delta -1 : f64\n"
        "simt.store %w to %f[%t + 64]",
        "simt.store %w to %f[%t + 64]: stores a value that was never set to cell 64",
        "%v = simt.load %f[%t + 0] : f64\n%w = simt.shuffle %v delta -1 : f64\n"
        "%lane = arith.remui %t, %two : i32\n%odd = arith.cmpi eq, %lane, %one : i32\n"
        "simt.store %w to %f[%t + 64] mask %odd",
    ),
    Case(
        "a-mask-that-is-unset",
        "%u = simt.unset : f64\n%m = arith.cmpf olt, %u, %x : f64\n"
        "simt.store %x to %f[%t + 0] mask %m",
        "simt.store %x to %f[%t + 0] mask %m: its mask depends on an unset value",
        "%m = arith.cmpf olt, %x, %x : f64\nsimt.store %x to %f[%t + 0] mask %m",
    ),
    Case(
        "a-copy-read-too-early",
        COPY
        + LATER_COPY
        + wait(1)
        + "%w = simt.load %s[%t + 64] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 0",
        COPY
        + LATER_COPY
        + wait(0)
        + "%w = simt.load %s[%t + 64] : f64\nsimt.store %w to %f[%t + 0]",
    ),
    Case(
        "a-copy-whose-mask-is-off",
        "%low = arith.cmpi slt, %t, %two : i32\n"
        f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8 mask %low\n{COMMIT}{wait(0)}"
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 2",
        "%low = arith.cmpi slt, %t, %two : i32\n"
        f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8 mask %low\n{COMMIT}{wait(0)}"
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0] mask %low",
    ),
]

WILD = [
    Case(
        "a-load-beyond-the-end",
        "%w = simt.load %f[%t + 65] : f64",
        "%w = simt.load %f[%t + 65] : f64: accesses cell 128 of a buffer of 128",
        "%w = simt.load %f[%t + 64] : f64",
    ),
    Case(
        "a-store-before-the-start",
        "simt.store %x to %f[%t + -1]",
        "simt.store %x to %f[%t + -1]: accesses cell -1 of a buffer of 128",
        "%m = arith.cmpi sge, %t, %one : i32\nsimt.store %x to %f[%t + -1] mask %m",
    ),
    Case(
        "the-shared-memory-of-another-block",
        "simt.store %x to %s[%t + 128]",
        "simt.store %x to %s[%t + 128]: accesses cell 128 of a buffer of 128",
        "simt.store %x to %s[%t + 0]",
        grid=2,
    ),
    Case(
        "a-copy-from-beyond-the-end",
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8",
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8: accesses cell 128 of a buffer of 128",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8 mask %m",
    ),
    Case(
        "a-misaligned-load",
        "%v, %w = simt.load %f[%zero + 1] : f64, f64",
        "%v, %w = simt.load %f[%zero + 1] : f64, f64: an access of 2 cells is not aligned",
        "%v, %w = simt.load %f[%double + 0] : f64, f64",
    ),
    Case(
        "a-misaligned-store",
        "%m = arith.cmpi slt, %t, %two : i32\nsimt.store %x, %x to %f[%double + 3] mask %m",
        "simt.store %x, %x to %f[%double + 3] mask %m: an access of 2 cells is not aligned",
        "%m = arith.cmpi slt, %t, %two : i32\nsimt.store %x, %x to %f[%double + 2] mask %m",
    ),
    Case(
        "a-misaligned-copy",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%double + 0], %f[%double + 1] bytes 16 mask %m",
        "simt.copy_async %s[%double + 0], %f[%double + 1] bytes 16 mask %m: "
        "a copy of 16 bytes is not aligned",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%double + 0], %f[%double + 2] bytes 16 mask %m",
    ),
]

LOOP = """
%turns = arith.addi {bound}, %one : i32
scf.for %i = %zero to %turns step %one : i32 {{
  {body}
}}
"""

DIVERGENT = [
    Case(
        "a-barrier-for-some-warps",
        by_threads_below(32, BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        by_threads_below(64, BARRIER),
    ),
    Case(
        "a-barrier-for-some-lanes",
        by_threads_below(7, BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        by_threads_below(7, "%y = arith.addf %x, %x : f64") + BARRIER,
    ),
    Case(
        "a-barrier-in-loops-of-unequal-length",
        LOOP.format(bound="%warp", body=BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        LOOP.format(bound="%b", body=BARRIER),
    ),
    Case(
        "a-warp-sync-for-some-lanes",
        by_threads_below(40, WARP_SYNC),
        '"nvvm.bar.warp.sync"(%full) : (i32) -> (): only some lanes of a warp reach it',
        by_threads_below(32, WARP_SYNC),
    ),
    Case(
        "a-shuffle-for-some-lanes",
        by_threads_below(40, "%w = simt.shuffle %x delta 1 : f64"),
        "%w = simt.shuffle %x delta 1 : f64: only some lanes of a warp reach it",
        by_threads_below(32, "%w = simt.shuffle %x delta 1 : f64"),
    ),
    Case(
        "what-is-not-uniform",
        "%u = simt.uniform %t : i32",
        "%u = simt.uniform %t : i32: the lanes of a warp differ",
        "%u = simt.uniform %warp : i32",
    ),
]


@pytest.mark.parametrize("case", [*UNSET, *WILD, *DIVERGENT], ids=lambda case: case.name)
def test_unset_values_and_wild_accesses_are_found_and_correct_twins_pass(case: Case):
    check(case)
