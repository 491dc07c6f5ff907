"""
Processes of MPI with a GPU each, as started by a user: bits, speed, and ends of runs.

    python benchmarks/gpu_mpi.py --processes 2
    python benchmarks/gpu_mpi.py --processes 2 --shared --only programs death

`--mpiexec`, or the one beside Python or on the path, starts the processes. Programs run on all
processes, four and more also in parts along two axes, and on one GPU, with equal bits; then, in the
middle of a run, process 1 dies, raises, or hangs: all processes end, with a sentence. At last the
command line runs a program on one GPU, on `--processes` GPUs of a process where there are as many,
and on processes. Without a driver, cores compute. Processes that share a GPU exchange by messages;
`--shared`: by counts, as with a GPU each. Lines of processes are printed as they come, and the exit
status is 1 if anything ended otherwise.
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
from contextlib import ExitStack
from math import prod
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np
from check_several_gpus import have_equal_bits
from gpu_ranks import arguments_with, runs
from rows import source

import timetile
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked, gpu_is_available
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.peers import TIMEOUT_VARIABLE

ROOT = Path(__file__).parents[1]

SHORT_TIMEOUT = 5.0
"""Seconds of waiting for a hanging process."""

CLI = "import sys; from timetile.runtime.cli import main; sys.exit(main())"
"""The command line, without an installed script."""

FEWER = (48, 64, 64)
"""The domain of the large program on cores, on a shared GPU, and with `--fewer`."""

FEWER_VARIABLE = "TIMETILE_BENCHMARK_FEWER"
"""Set for the processes by `--fewer`."""


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

PARTS = ("programs", *ENDS, "line")
"""The parts of the check: programs, ends, and the command line."""


def say(text: str) -> None:
    """Print a line at once: lines of several processes do not mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def programs(comm: Any) -> dict[str, tuple[str, int]]:
    """The programs and their steps, the large one of fewer cells without a GPU for each process."""
    known = runs()
    if gpu_count() < comm.size or FEWER_VARIABLE in os.environ:
        known["large"] = source("j3d7pt", FEWER, "f32")[0], known["large"][1]
    return known


def layouts_of(text: str, processes: int) -> list[tuple[int, ...] | None]:
    """Parts along each axis: as chosen, and along two axes for an even number of processes."""
    if processes < 4 or processes % 2:
        return [None]
    one = timetile.compile(text, executor="numpy")
    others = (1,) * (len(one.parameters[0].shape) - 2)
    return [None, (processes // 2, 2, *others)]


def run_programs(comm: Any) -> None:
    """Run all programs, in parts as chosen and along two axes, and compare with one GPU's."""
    different = False
    wanted = [
        (name, text, steps, parts)
        for name, (text, steps) in programs(comm).items()
        for parts in layouts_of(text, comm.size)
    ]
    for name, text, steps, parts in wanted:
        program = timetile.compile(text, comm=comm, parts=parts)
        own = arguments_with(program, steps)
        seconds = [program(*own).seconds or 0.0 for _ in range(2)]
        if comm.rank == 0:
            one = timetile.compile(text, executor=program.executor)
            right = arguments_with(one, steps)
            alone = [one(*right).seconds or 0.0 for _ in range(2)]
            cells = prod(program.parameters[0].shape) * steps / 1e9
            same = have_equal_bits(own, right)
            different |= not same
            speeds = [f"{cells / max(min(each), 1e-9):.1f}" for each in (seconds, alone)]
            said = f"{'equal' if same else 'different'}, GPts/s of all and of one {speeds}"
            say(f"{name} {program.executor} {parts or ''}: {said}")
        program.close()
    if different:
        raise SystemExit(1)


def run_to_an_end(comm: Any, end: str) -> None:
    """Run half of the steps of the large program; process 1 then ends, raises or hangs."""
    text, steps = programs(comm)["large"]
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


def started(given: argparse.Namespace, *command: str) -> int | None:
    """
    Run a command on processes, print lines as they come, and the exit status. Returns the status;
    None for processes killed after `--limit` seconds.
    """
    start, late = time.monotonic(), list[bool]()
    limits = {TIMEOUT_VARIABLE: f"{SHORT_TIMEOUT}"} if "silence" in command else {}
    line = [given.mpiexec or known_mpiexec(), "-n", str(given.processes), *command]
    run = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **limits, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip

    def kill() -> None:
        late.append(True)
        run.kill()

    timer = Timer(given.limit, kill)
    timer.start()
    assert run.stdout is not None
    for said in run.stdout:
        say(said.rstrip())
    status = run.wait()
    timer.cancel()
    ended = f"killed after {given.limit:g} s" if late else f"exit status {status}"
    say(f"-- {' '.join(command[1:])}: {ended}, {time.monotonic() - start:.1f} s")
    return None if late else status


def gpu_count() -> int:
    """The number of GPUs; 0 without a driver."""
    return int(checked(device(0).cuda.cuDeviceGetCount())) if gpu_is_available() else 0


def known_mpiexec() -> str:
    """The program that starts processes, unless one is named. Ends with a sentence without one."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        sys.exit("gpu_mpi: no mpiexec beside Python or on the path; install mpich")
    return found


def run_command_line(given: argparse.Namespace) -> bool:
    """The command line on one GPU, on several of a process, and on processes: equal bits?"""
    program = str(ROOT / "examples" / "heat2d.mlir")
    line = ("-c", CLI, "run", program, "--steps", "500", "--random", "1")
    gpus = ["--gpus", str(given.processes), "--parts", f"{given.processes}x1"]
    ways = (list[str](), gpus) if gpu_count() >= given.processes else (list[str](),)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, f"{number}.npz")) for number in range(len(ways) + 1)]
        for file, more in zip(files, ways):
            subprocess.run([sys.executable, *line, *more, "--out", file], check=True)
        status = started(given, sys.executable, *line, "--out", files[-1])
        if status != 0:
            return False
        one, *others = (np.load(file) for file in files)
        same = [all(one[n].tobytes() == each[n].tobytes() for n in one.files) for each in others]
        say(f"the command line: {['equal' if each else 'different' for each in same]}")
        return all(same)


def run_part(part: str, *, shared: bool) -> None:
    """A part of the check, in a process."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    with ExitStack() as patched:
        if shared:
            # A place of its own for each process: as with a GPU each.
            place = PropertyMock(return_value=str(comm.Get_rank()))
            patched.enter_context(patch.object(GpuSite, "place", place))
        if part == "programs":
            run_programs(comm)
        else:
            run_to_an_end(comm, part)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Processes of MPI with a GPU each.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shared", action="store_true", help="meet by counts on a shared GPU")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="parts by name")
    parser.add_argument("--fewer", action="store_true", help="let the large program have few cells")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of a part's processes")
    parser.add_argument("--mpiexec", default="", metavar="PATH", help="starts the processes")
    parser.add_argument("--part", choices=("programs", *ENDS), help="run a part, in a process")
    return parser.parse_args()


def main() -> None:
    """Start processes for all parts of the check; within a process, run one."""
    given, wrong = options(), list[str]()
    shared = ["--shared"] if given.shared else []
    if given.fewer:
        os.environ[FEWER_VARIABLE] = "1"
    if given.part is not None:
        run_part(given.part, shared=given.shared)
        return
    for part in given.only:
        if part == "line":
            right = run_command_line(given)
        else:
            # Guards keep mpiexec from killing processes that have to find a death.
            line = (sys.executable, "-m", "timetile.ranks", __file__, "--part", part, *shared)
            status = started(given, *line)
            right = status == 0 if part == "programs" else status not in (None, 0)
        wrong += [] if right else [part]
    say(f"parts that ended otherwise: {', '.join(wrong) or 'none'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
