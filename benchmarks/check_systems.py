"""
Run coupled systems and steps with layers on a GPU at their chosen schedules, on small domains of
odd extents, and compare every buffer with the unfused program, bit for bit, from two starts.

    compute-sanitizer --tool memcheck --error-exitcode 9 \
        python benchmarks/check_systems.py "iso_regions f32" "yee3_cpml f64"
    compute-sanitizer --tool racecheck --error-exitcode 9 \
        python benchmarks/check_systems.py --domain 20,20,20 --steps 4 \
        "wave_3d_so2 f32 2 2,1 4,1 ahead=2 sync=mbarrier"

Each argument is a program and its element, and the depth and schedule (`program_schedules.py`) in
place of the chosen ones, if given. Racecheck takes a hundred times as long: give it a domain of few
cells, a number of steps, and a schedule, and programs begin from random cells alone. Kernels are
kept in `build/`: a run without the tool makes the kernels, and runs with a tool are short. Exits
with 1 if any program differs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from pinned_programs import schedule_of
from real_rows import time_loop
from small_domains import DTYPES, PinnedSchedule, SmallProgram, domain_of, model_of

import timetile
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.runtime.cache.store import Cache


def chosen_schedule(program: str, element: str) -> PinnedSchedule:
    """The schedule chosen for a program on its domain."""
    module = model_of(program).module(domain_of(program, element), DTYPES[element])
    cache = Cache(Path("build/real-programs-cache"))
    made = timetile.compile(module, executor="gpu", halos="common", cache=cache)
    loop, _ = time_loop(made)
    inside = "" if loop.inside is None else str(loop.inside)
    return PinnedSchedule(str(ScheduleAttr(loop.decisions)), max(loop.depth_list), inside)


def small(text: str, domain: tuple[int, ...], steps: int | None) -> SmallProgram:
    """The program of an argument on its small domain."""
    program, element, *given = text.split()
    if given:
        pinned = PinnedSchedule(schedule_of(*given[1:]), int(given[0]))
    else:
        pinned = chosen_schedule(program, element)
    if steps is None:
        return SmallProgram(program, element, pinned, domain=domain)
    return SmallProgram(program, element, pinned, domain=domain, steps=steps, starts=("random",))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("programs", nargs="+", help="program element [depth cells warps parts]")
    parser.add_argument("--domain", default="", help="cells along each axis, as 20,20,20")
    parser.add_argument("--steps", type=int, help="steps, from random cells alone")
    options = parser.parse_args()
    given: str = options.domain
    domain = tuple(int(cells) for cells in given.split(",") if cells)
    cache, differ = Cache(Path("build/check-systems-cache")), 0
    for text in options.programs:
        began = time.perf_counter()
        same = small(text, domain, options.steps).has_equal_bits(cache)
        differ += not same
        took = time.perf_counter() - began
        print(f"{'same bits' if same else 'DIFFERENT'}  {text}  {took:.1f} s", flush=True)
    raise SystemExit(differ > 0)


if __name__ == "__main__":
    main()
