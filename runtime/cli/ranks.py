"""`mpiexec -n 4 timetile run PROGRAM`: the ranks of a run, of which rank 0 speaks and writes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from timetile.runtime.cli.options import Options
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.machine.guard import started_processes
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.ranked_program import RankedProgram
from timetile.runtime.ranks.peers import RankError


def communicator() -> object:
    """
    The communicator of all processes of mpiexec; None for a single process. Raises UsageError
    without mpi4py, or for an mpi4py of another MPI library.
    """
    count = started_processes()
    if count < 2:
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"mpiexec started {count} processes, and mpi4py cannot be used ({error}); install "
            "timetile[mpi] and an MPI library, or run without mpiexec"
        ) from error
    size = MPI.COMM_WORLD.Get_size()
    if size != count:
        raise UsageError(
            f"mpiexec started {count} processes, and mpi4py knows {size}: mpiexec and mpi4py are "
            "of different MPI libraries; use the mpiexec beside the library of mpi4py"
        )
    return MPI.COMM_WORLD


def check_options_of_ranks(comm: object, options: Options) -> None:
    """UsageError for options of parts without parts, and for several ranks with several GPUs."""
    if options.gpus is not None:
        if comm is not None:
            raise UsageError("--gpus is for one process; leave out --gpus, or mpiexec")
        if options.device is not None:
            raise UsageError("--device names one GPU, and --gpus several; leave out one of both")
        return
    for name, value in (("--parts", options.parts), ("--exchange-every", options.exchange_every)):
        if comm is None and value is not None:
            raise UsageError(
                f"{name} has no effect on a single process and a single GPU; start several "
                "processes with mpiexec -n 4 timetile run, or give --gpus 2"
            )


def parts_of(text: str | None) -> Sequence[int] | None:
    """The numbers of parts along the axes, as `2x2`. Raises UsageError for another text."""
    if text is None:
        return None
    words = text.split("x")
    if not all(word.isdecimal() and int(word) for word in words):
        raise UsageError(f"--parts is a number of parts for each axis, as 2x2, got {text!r}")
    return tuple(map(int, words))


def is_speaker(program: CompiledProgram) -> bool:
    """Whether the process says and writes results: one process, or rank 0 of several."""
    return not isinstance(program, RankedProgram) or program.peers.rank == 0


@contextmanager
def failing_together(program: CompiledProgram) -> Generator[None]:
    """A failure of a rank in the block is told to all ranks, which then fail, too."""
    try:
        yield
    except RankError:
        raise
    except BaseException as error:
        if isinstance(program, RankedProgram) and not program.was_told:
            program.peers.tell(" ".join(f"{error}".split()) or type(error).__name__)
        raise
