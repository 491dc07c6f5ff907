"""
Profile the call of a program with its kernels in the cache: what takes the time to a first result.

    python benchmarks/profile_first.py "yee3 f32" "elastic_3d_so4 f32"

The first call of each program fills the cache of the user; a process of its own then makes the
call again under Python's profiler.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import time

from first_programs import Way, make_of

from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.choosing_process import wait_for_schedules
from timetile.runtime.machine.driver import gpu_is_available

MOST_LINES = 40


def shown(name: str, executor: str) -> None:
    """Print the profile of a call in this process."""
    make = make_of(name, Way(executor))
    if executor == "gpu":
        device(0)
    profile, start = cProfile.Profile(), time.perf_counter()
    profile.runcall(lambda: make()())
    print(f"{name}: {time.perf_counter() - start:.3f} s under the profiler", flush=True)
    for order in ("cumulative", "tottime"):
        pstats.Stats(profile).sort_stats(order).print_stats(MOST_LINES)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", help="programs of first_result.py")
    parser.add_argument("--executor", help="gpu where there is one, else kernels")
    parser.add_argument("--part", choices=("fill", "show"), help="one of the two processes")
    options = parser.parse_args()
    executor = options.executor or ("gpu" if gpu_is_available() else "kernels")
    for name in options.names:
        if options.part == "show":
            shown(name, executor)
        elif options.part == "fill":
            make_of(name, Way(executor))()()
            wait_for_schedules()
        else:
            for part in ("fill", "show"):
                again = [sys.executable, __file__, name, "--executor", executor, "--part", part]
                subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
