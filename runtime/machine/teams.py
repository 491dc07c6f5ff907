"""Teams of threads running compiled code together, and their barriers."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from queue import SimpleQueue
from typing import Any

from timetile.runtime.machine.floating_point import standard_modes
from timetile.runtime.machine.whole_numbers import whole_number

VARIABLE = "TIMETILE_NUM_THREADS"

BARRIER_BYTES = 256
"""More than any C library's barrier takes."""


def available_threads() -> int:
    """The number of processor cores open to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def stated_number(variable: str) -> int | None:
    """
    The number in a variable of the environment; None where it is not set. Raises ValueError for no
    number from 1 on.
    """
    said = os.environ.get(variable)
    if not said:
        return None
    if not said.isdecimal() or int(said) < 1:
        raise ValueError(
            f"{variable} is a number from 1 on, got {said!r}; unset it, or set it to one"
        )
    return int(said)


def thread_count(asked: int | None) -> int:
    """
    The number of threads: as asked for, or as in TIMETILE_NUM_THREADS, or all cores. Raises
    ValueError for no number from 1 on.
    """
    if asked is not None:
        count = whole_number(asked)
        if count is None or count < 1:
            raise ValueError(f"threads is a number from 1 on, got {asked!r}")
        return count
    return stated_number(VARIABLE) or available_threads()


# Barriers.


@cache
def c_library() -> Any:
    """The C library of this process, if it has barriers; otherwise None (on macOS)."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "pthread_barrier_wait") else None


class CBarrier:
    """A barrier of the C library: threads wait without Python."""

    def __init__(self, threads: int):
        self.memory = ctypes.create_string_buffer(BARRIER_BYTES)
        self.address = ctypes.addressof(self.memory)
        c_library().pthread_barrier_init(ctypes.c_void_p(self.address), None, threads)

    def close(self) -> None:
        """Free the library's resources."""
        c_library().pthread_barrier_destroy(ctypes.c_void_p(self.address))


class PythonBarrier:
    """A barrier in Python, for systems without barriers in the C library."""

    known: dict[int, threading.Barrier] = {}

    def __init__(self, threads: int):
        barrier = threading.Barrier(threads)
        self.address = id(barrier)
        self.known[self.address] = barrier

    def close(self) -> None:
        """Forget the barrier."""
        del self.known[self.address]


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
def wait_in_python(address: int) -> int:
    """Called by compiled code."""
    return PythonBarrier.known[address].wait()


def barrier_function() -> int:
    """The address of the function called by compiled code to wait."""
    library = c_library()
    wait = wait_in_python if library is None else library.pthread_barrier_wait
    # A function of ctypes holds the function's address.
    return ctypes.c_size_t.from_buffer(wait).value


def make_barrier(threads: int) -> CBarrier | PythonBarrier:
    """A barrier for a team, for waits with `barrier_function`."""
    return PythonBarrier(threads) if c_library() is None else CBarrier(threads)


# Teams.

Job = Callable[[], None]


class Team:
    """Threads that live as long as the `with` statement, the caller among them."""

    def __init__(self, size: int):
        self.size = size
        self.barrier = make_barrier(size)
        self.jobs = [SimpleQueue[Job | None]() for _ in range(size - 1)]
        self.done = SimpleQueue[BaseException | None]()
        self.threads = [
            threading.Thread(target=self.work, args=(jobs,), daemon=True) for jobs in self.jobs
        ]

    def __enter__(self) -> Team:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        for jobs in self.jobs:
            jobs.put(None)
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()
        self.barrier.close()

    def work(self, jobs: SimpleQueue[Job | None]) -> None:
        """Do the jobs of a thread, until the last."""
        while (job := jobs.get()) is not None:
            try:
                with standard_modes():
                    job()
            except BaseException as error:
                self.done.put(error)
            else:
                self.done.put(None)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run one job on each thread, the first on the caller's."""
        first, *others = jobs
        for queue, job in zip(self.jobs, others, strict=True):
            queue.put(job)
        first()
        for error in [self.done.get() for _ in others]:
            if error is not None:
                raise error
