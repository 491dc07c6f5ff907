"""Ranks as processes of MPI, through mpi4py."""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from timetile.runtime.ranks.near_processes import NearProcesses, keep_alive, place_of_process
from timetile.runtime.ranks.peers import (
    TIMEOUT_VARIABLE,
    WORD_BYTES,
    Bytes,
    RankError,
    as_word,
    died,
    failed,
    missing,
    text_of_word,
    words_of_all,
)

if TYPE_CHECKING:
    from mpi4py import MPI

DATA, FAILURE, END = 1, 2, 3
"""The tags of messages, on copies of the communicator."""

IMPATIENT_POLLS = 200
"""Polls before a waiting rank sleeps between two: neighbours are often ready at once."""

NAP_SECONDS = 100e-6
GRACE_SECONDS = 5.0
"""Seconds for other ranks to report a failure, before all processes end."""

DEATH_SECONDS = 2.0
"""Seconds between the first error of MPI and the end of a dying process, at most."""


class MpiPeers:
    """
    The ranks of a communicator, as seen by a rank. Messages travel on a copy of the
    communicator, and reports of failures on another: ranks learn of a copy that fails. After a
    failure, the end of the process ends all processes of the communicator. Raises RankError if
    another rank does not come in time, or if the communicator fails.
    """

    def __init__(self, communicator: MPI.Comm, timeout: float):
        self.rank, self.count = communicator.Get_rank(), communicator.Get_size()
        self.timeout, self.is_broken = timeout, False
        self.told: list[MPI.Request] = []
        """Messages on the way about a failure of the rank."""
        keep_alive()
        self.near: NearProcesses | None = None
        self.reports, self.communicator = self.copied(communicator), self.copied(communicator)
        self.near = NearProcesses(words_of_all(self, place_of_process()), self.rank)

    def copied(self, communicator: MPI.Comm) -> MPI.Comm:
        """A copy of a communicator, once all ranks ask for it."""
        from mpi4py import MPI

        try:
            made, request = communicator.Idup()
        except MPI.Exception as error:
            raise RankError(self.broken(error)) from error
        made.Set_errhandler(MPI.ERRORS_RETURN)
        end = time.monotonic() + self.timeout
        while not request.Test():
            if time.monotonic() > end:
                raise RankError(
                    f"rank {self.rank} of {self.count} waited {self.timeout:g} s for the others to "
                    f"begin: a process died, hangs, or compiles longer; {TIMEOUT_VARIABLE} sets "
                    "the seconds to wait"
                )
            time.sleep(NAP_SECONDS)
        return made

    @property
    def ranks_beside(self) -> list[int]:
        """The ranks on the machine, the own rank among them, in order."""
        assert self.near is not None
        return self.near.ranks

    def exchange(self, sent: Mapping[int, Bytes], received: Mapping[int, Bytes]) -> None:
        """Send and receive messages; see `Peers`."""
        from mpi4py import MPI

        try:
            self.move(sent, received)
        except MPI.Exception as error:
            raise self.why_broken(error) from error

    def why_broken(self, error: MPI.Exception) -> RankError:
        """
        The cause of an error of MPI, told to the other ranks: the death of a rank, of which MPI may
        learn before the process has ended, or else the communicator.
        """
        end = time.monotonic() + DEATH_SECONDS
        while time.monotonic() < end:
            self.raise_death()
            time.sleep(NAP_SECONDS)
        self.tell(said := self.broken(error))
        return RankError(f"rank {self.rank} of {self.count} failed: {said}")

    def broken(self, error: MPI.Exception) -> str:
        """What a communicator that fails says."""
        said = f"{error}".splitlines()[0].removesuffix(", error stack:")
        return f"its communicator fails, as MPI says: {said}"

    def move(self, sent: Mapping[int, Bytes], received: Mapping[int, Bytes]) -> None:
        """Send and receive messages. Raises MPI's exception if the communicator fails."""
        waiting: dict[int, MPI.Request] = {
            rank: self.communicator.Irecv(message, rank, DATA) for rank, message in received.items()
        }
        sending = {
            rank: self.communicator.Isend(message, rank, DATA) for rank, message in sent.items()
        }
        polls, end = 0, time.monotonic() + self.timeout
        while waiting or sending:
            for requests in (waiting, sending):
                for rank in [rank for rank, request in requests.items() if request.Test()]:
                    del requests[rank]
            polls += 1
            if polls > IMPATIENT_POLLS:
                self.look()
                if time.monotonic() > end:
                    self.break_off()
                    raise missing({*waiting, *sending}, self.count, self.timeout)
                time.sleep(NAP_SECONDS)

    def look(self) -> None:
        """Raise RankError if another rank died or told of a failure, or if MPI fails."""
        from mpi4py import MPI

        self.raise_death()
        try:
            self.raise_failure()
        except MPI.Exception as error:
            raise self.why_broken(error) from error

    def raise_death(self) -> None:
        """Raise RankError if the process of another rank has ended, and tell the other ranks."""
        dead = [] if self.near is None else self.near.dead()
        if self.near is None or not dead:
            return
        error = died(dead[0], self.count, self.near.said(dead[0]))
        self.tell(f"{error}", without=dead)
        raise error

    def raise_failure(self) -> None:
        """Raise RankError if another rank told of a failure."""
        from mpi4py import MPI

        status = MPI.Status()
        if not self.reports.Iprobe(MPI.ANY_SOURCE, FAILURE, status):
            return
        word = np.zeros(WORD_BYTES, np.uint8)
        rank = status.Get_source()
        self.reports.Recv(word, rank, FAILURE)
        self.break_off()
        raise failed(rank, self.count, text_of_word(word))

    def tell(self, cause: str, without: Sequence[int] = ()) -> None:
        """Tell all other ranks of a failure here, `without` some."""
        from mpi4py import MPI

        if self.is_broken:
            return
        self.break_off()
        others = [rank for rank in range(self.count) if rank not in (self.rank, *without)]
        word = as_word(cause)
        with suppress(MPI.Exception):
            # Where nobody can be told, others see the end of the process.
            self.told = [self.reports.Isend(word, rank, FAILURE) for rank in others]

    def break_off(self) -> None:
        """Let the end of the process end all processes: some messages stay under way."""
        if not self.is_broken:
            self.is_broken = True
            # Before the end of MPI: MPI would wait for the other processes.
            atexit.register(self.end)

    def end(self) -> None:
        """End all processes, once other ranks have reported the failure, died, or had time."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        from mpi4py import MPI

        try:
            self.wait_for_reports()
            self.reports.Abort(1)
        except MPI.Exception:
            MPI.COMM_WORLD.Abort(1)

    def wait_for_reports(self) -> None:
        """Wait until other ranks have reported the failure, died, or had time."""
        others = [rank for rank in range(self.count) if rank != self.rank]
        word, end = np.zeros(1, np.uint8), time.monotonic() + GRACE_SECONDS
        requests = [self.reports.Isend(word, rank, END) for rank in others]
        waiting = {rank: self.reports.Irecv(word.copy(), rank, END) for rank in others}
        while waiting and time.monotonic() < end:
            dead = [] if self.near is None else self.near.dead()
            for rank in [each for each, got in waiting.items() if each in dead or got.Test()]:
                del waiting[rank]
            for request in (*requests, *self.told):
                request.Test()
            time.sleep(NAP_SECONDS)


def peers_of(communicator: object, timeout: float) -> MpiPeers:
    """
    The ranks of a communicator of mpi4py. Raises TypeError for another object, ModuleNotFoundError
    without mpi4py.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ModuleNotFoundError(
            "comm= needs mpi4py and an MPI library; install timetile[mpi]"
        ) from error
    if not isinstance(communicator, MPI.Intracomm):
        raise TypeError(
            f"comm is a communicator of mpi4py, got {communicator!r}; pass MPI.COMM_WORLD"
        )
    if not MPI.Is_initialized():
        # Packages as Devito tell mpi4py to leave MPI alone.
        MPI.Init()
        atexit.register(MPI.Finalize)
    return MpiPeers(communicator, timeout)
