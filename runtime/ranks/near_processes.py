"""
Processes of other ranks in reach: a death is known at once, without a limit on waiting.

The operating system hands out a descriptor of a process, which becomes readable at the end of the
process (Linux). Processes of other machines, and of other containers, are not in reach: their ranks
are missed after some time.
"""

from __future__ import annotations

import os
import platform
import select
import signal
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

NAMES_OF_PROCESSES = Path("/proc/self/ns/pid")
"""Names the container in which numbers of processes are valid."""


def place_of_process() -> str:
    """The machine and the container of the process, and the number of the process."""
    container = "-"
    with suppress(OSError):
        container = str(NAMES_OF_PROCESSES.readlink())
    return f"{platform.node()} {container} {os.getpid()}"


def keep_alive() -> None:
    """
    Let the process outlive the death of another: MPICH's mpiexec, told to leave the others alone,
    sends a signal (SIGUSR1) that ends a process unless the process says otherwise.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if sys.platform != "win32" and is_main:
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


class NearProcesses:
    """
    The processes of ranks in reach. `places`: the place of each rank's process, by
    `place_of_process`.
    """

    def __init__(self, places: Sequence[str], own: int):
        self.places = places
        machine = places[own].rpartition(" ")[0]
        self.ranks = [r for r, place in enumerate(places) if place.rpartition(" ")[0] == machine]
        """The ranks in reach, the own rank among them."""
        others = [(rank, self.number(rank)) for rank in self.ranks if rank != own]
        self.known = dict(opened_processes(dict(others)))
        """Ranks by descriptor."""
        self.poll = select.poll() if self.known else None
        for descriptor in self.known:
            assert self.poll is not None
            self.poll.register(descriptor, select.POLLIN)
        weakref.finalize(self, close_all, list(self.known))

    def number(self, rank: int) -> int:
        """The number of the process of a rank."""
        return int(self.places[rank].rpartition(" ")[2])

    def dead(self) -> list[int]:
        """The ranks in reach with a process that has ended."""
        if self.poll is None:
            return []
        return sorted(self.known[descriptor] for descriptor, _ in self.poll.poll(0))

    def said(self, rank: int) -> str:
        """The process of a rank in words."""
        return f"process {self.number(rank)} on {self.places[rank].split()[0]}"


def opened_processes(numbers: Mapping[int, int]) -> list[tuple[int, int]]:
    """Descriptors of processes, with the rank of each; none where the system has none."""
    found: list[tuple[int, int]] = []
    if not hasattr(os, "pidfd_open"):
        return found
    for rank, number in numbers.items():
        with suppress(OSError):
            found.append((os.pidfd_open(number), rank))
    return found
