"""
A guard of a rank: the process known to `mpiexec`, with the rank as a child.

MPICH's `mpiexec` kills all processes of a machine once a signal ended one of its own, even if told
to leave the others alone, at the next output of any process: ranks about to name the dead rank may
never do so. A guard ends by no signal of its rank:

1. The guard forks, early in the process. The child is the rank, in a process group of its own, and
   dies with the guard.
2. The guard hands signals on to the rank, and waits.
3. If another signal ends the rank, the guard says so, leaves other ranks some seconds to say the
   same and to end, and ends by the signal, too: `mpiexec` then ends all ranks that wait elsewhere,
   as for the start of MPI. Any other status is the guard's, too.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
"""Variables with the number of processes, set by the `mpiexec` of Open MPI and of MPICH."""

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Variables with the number of the own process."""

HANDED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGCONT", "SIGUSR1", "SIGUSR2")
"""Signals that are the rank's."""

PARENT_DEATH_SIGNAL = 1
"""The number of Linux's request for a signal at the death of the parent (PR_SET_PDEATHSIG)."""

GRACE_SECONDS = 20.0
"""Seconds for other ranks to find the death and to end, before `mpiexec` learns of it."""


def started_processes() -> int:
    """The number of processes started together by mpiexec; 1 without mpiexec."""
    return max(numbers_said(SIZES), default=1)


def numbers_said(names: tuple[str, ...]) -> list[int]:
    """The numbers in variables of the environment."""
    said = [os.environ.get(name, "") for name in names]
    return [int(text) for text in said if text.isdecimal()]


def become_rank() -> None:
    """
    Return in a child, as a rank with a guard. Without `mpiexec`, and on systems other than Linux,
    the process itself goes on.
    """
    if started_processes() < 2 or sys.platform != "linux":
        return
    own = os.getpid()
    # No signal gets lost between the fork and the guard's handlers.
    known = [getattr(signal, name) for name in HANDED_ON]
    signal.pthread_sigmask(signal.SIG_BLOCK, known)
    rank = os.fork()
    if rank:
        os._exit(status_of(rank, known))
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != own:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, known)


def status_of(rank: int, handed_on: list[signal.Signals]) -> int:
    """Wait for the end of a rank's process, and return the exit status for the guard."""
    asked = set[int]()

    def hand_on(number: int, frame: FrameType | None) -> None:
        asked.add(number)
        os.kill(rank, number)

    for each in handed_on:
        signal.signal(each, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handed_on)
    # The number of the process stays taken until no signal is handed on.
    os.waitid(os.P_PID, rank, os.WEXITED | os.WNOWAIT)
    for each in handed_on:
        signal.signal(each, signal.SIG_IGN)
    _, ended = os.waitpid(rank, 0)
    if not os.WIFSIGNALED(ended):
        return os.waitstatus_to_exitcode(ended)
    number = os.WTERMSIG(ended)
    if number in asked:
        return 128 + number
    who = f"rank {max(numbers_said(RANKS), default=0)} of {started_processes()}"
    what = signal.strsignal(number) or "no name"
    said = f"{who} died: signal {number} ({what}) ended process {rank} on {platform.node()}\n"
    os.write(sys.stderr.fileno(), f"timetile: {said}".encode())
    time.sleep(GRACE_SECONDS)
    with suppress(OSError):
        # The handler of SIGKILL is the system's.
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
