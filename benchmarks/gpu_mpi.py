"""
Processes of MPI with a GPU each, as started by a user: bits, speed, and ends of runs.

    python benchmarks/gpu_mpi.py --processes 2

`mpiexec` beside Python, or on the path, starts the processes. Programs run on all processes and on
one GPU, with equal bits; then, in the middle of a run, process 1 dies, raises, or hangs: all
processes end, with a sentence. At last the command line runs a program on one GPU, on `--processes`
GPUs of a process, and on processes. Without a driver, cores compute.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from check_several_gpus import have_equal_bits
from gpu_ranks import arguments_with, runs

import timetile
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.ranks.peers import TIMEOUT_VARIABLE

ROOT = Path(__file__).parents[1]

SHORT_TIMEOUT = 5.0
"""Seconds of waiting for a hanging process."""

CLI = "import sys; from timetile.runtime.cli import main; sys.exit(main())"
"""The command line, without an installed script."""

LONGEST = 100.0
"""Seconds after which processes are killed."""


def dies() -> None:
    """End the process."""
    os.kill(os.getpid(), signal.SIGKILL)


def fails() -> None:
    """Raise."""
    raise MemoryError("no more cells")


def hangs() -> None:
    """Send nothing for long."""
    time.sleep(SHORT_TIMEOUT + 10)


ENDS: dict[str, Callable[[], None]] = {"death": dies, "failure": fails, "silence": hangs}
"""Ends of process 1 in the middle of a run."""


def say(text: str) -> None:
    """Print a line at once: lines of several processes do not mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_programs(comm: Any) -> None:
    """Run all programs, and compare results with one GPU's."""
    for name, (text, steps) in runs().items():
        program = timetile.compile(text, comm=comm)
        own = arguments_with(program, steps)
        seconds = [program(*own).seconds or 0.0 for _ in range(2)]
        if comm.rank == 0:
            one = timetile.compile(text, executor=program.executor)
            right = arguments_with(one, steps)
            alone = [one(*right).seconds or 0.0 for _ in range(2)]
            cells = prod(program.parameters[0].shape) * steps / 1e9
            same = "equal" if have_equal_bits(own, right) else "different"
            speeds = [f"{cells / max(min(each), 1e-9):.1f}" for each in (seconds, alone)]
            say(f"{name} {program.executor}: {same}, GPts/s of all and of one {speeds}")
        program.close()


def run_to_an_end(comm: Any, end: str) -> None:
    """Run half of the steps of the large program; process 1 then ends, raises or hangs."""
    text, steps = runs()["large"]
    program = timetile.compile(text, comm=comm)

    def progress(done: int, total: int) -> None:
        if comm.rank == 1 and 2 * done > total:
            ENDS[end]()

    start = time.monotonic()
    try:
        program(*arguments_with(program, steps), progress=progress)
    except Exception as error:
        after = time.monotonic() - start
        say(f"{end} [{comm.rank}] after {after:.1f} s: {type(error).__name__}: {error}")
        raise SystemExit(3) from None
    say(f"{end} [{comm.rank}]: nothing was noticed")


def started(processes: int, *command: str) -> None:
    """Run a command on processes, and print output and exit status."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert mpiexec is not None, "mpiexec is missing: install mpich"
    line, start = [mpiexec, "-n", str(processes), *command], time.monotonic()
    limits = {TIMEOUT_VARIABLE: f"{SHORT_TIMEOUT}"} if "silence" in command else {}
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=LONGEST, env={**os.environ, **limits}
        )
        said = f"{done.stdout}{done.stderr[-1500:]}".rstrip()
        ended = f"exit status {done.returncode}"
    except subprocess.TimeoutExpired as late:
        said, ended = str(late), f"killed after {LONGEST:g} s"
    say(f"{said}\n-- {' '.join(command[1:])}: {ended}, {time.monotonic() - start:.1f} s")


def run_command_line(processes: int) -> None:
    """The command line on one GPU, on several of a process, and on processes."""
    program = str(ROOT / "examples" / "heat2d.mlir")
    line = ("-c", CLI, "run", program, "--steps", "500", "--random", "1")
    gpus = ["--gpus", str(processes), "--parts", f"{processes}x1"]
    gpus = gpus if gpu_is_available() else list[str]()
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, f"{number}.npz")) for number in range(3)]
        for file, more in zip(files, (list[str](), gpus)):
            subprocess.run([sys.executable, *line, *more, "--out", file], check=True)
        started(processes, sys.executable, *line, "--out", files[2])
        one, *others = (np.load(file) for file in files)
        for other in others:
            same = all(one[name].tobytes() == other[name].tobytes() for name in one.files)
            say("the command line: " + ("equal" if same else "different"))


def main() -> None:
    """Start processes for all parts of the check; within a process, run one."""
    parser = argparse.ArgumentParser(description="Processes of MPI with a GPU each.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--part", choices=("programs", *ENDS), help="run a part, in a process")
    given = parser.parse_args()
    if given.part is not None:
        from mpi4py import MPI

        if given.part == "programs":
            run_programs(MPI.COMM_WORLD)
        else:
            run_to_an_end(MPI.COMM_WORLD, given.part)
        return
    for part in ("programs", *ENDS):
        # Guards keep mpiexec from killing processes that have to find a death.
        line = (sys.executable, "-m", "timetile.ranks", __file__)
        started(given.processes, *line, "--part", part)
    run_command_line(given.processes)


if __name__ == "__main__":
    main()
