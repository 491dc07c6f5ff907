"""
Run coupled systems and steps with layers on a GPU at their chosen schedules, on small domains of
odd extents, and compare every buffer with the unfused program, bit for bit, from two starts.

    compute-sanitizer --tool racecheck --error-exitcode 9 \
        python benchmarks/check_systems.py iso_regions f32 yee3_cpml f64

Kernels are kept in `build/`: a run without the tool makes the kernels, and runs with a tool are
short. Exits with 1 if any program differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from real_programs import DTYPES, PinnedSchedule, domain_of, has_equal_bits, model_of, time_loop

import timetile
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.runtime.cache.store import Cache


def pinned_schedule(program: str, element: str) -> PinnedSchedule:
    """The schedule chosen for a program on its domain."""
    module = model_of(program).module(domain_of(program, element), DTYPES[element])
    cache = Cache(Path("build/real-programs-cache"))
    made = timetile.compile(module, executor="gpu", halos="common", cache=cache)
    loop, _ = time_loop(made)
    inside = "" if loop.inside is None else str(loop.inside)
    return PinnedSchedule(str(ScheduleAttr(loop.decisions)), max(loop.depth_list), inside)


def main() -> None:
    differ = 0
    for program, element in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        cache = Cache(Path("build/check-systems-cache"))
        same = has_equal_bits(program, element, pinned_schedule(program, element), cache)
        differ += not same
        print(f"{'same bits' if same else 'DIFFERENT'}  {program} {element}", flush=True)
    raise SystemExit(differ > 0)


if __name__ == "__main__":
    main()
