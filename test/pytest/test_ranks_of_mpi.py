"""
Programs on processes of MPI: the bits of one process, and an end with a sentence where a process
fails, dies or differs. Processes take seconds to start: each test starts as few as can show its
statement.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.transforms.experimental.dmp.stencil_global_to_local import DistributeStencilPass

import timetile
from support.sizes import is_nightly
from timetile.runtime.cli import main
from timetile.runtime.loading import load

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")

pytestmark = [
    pytest.mark.skipif(MPIEXEC is None, reason="mpiexec is missing: install mpich or Open MPI"),
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None, reason="mpi4py is missing: timetile[mpi]"
    ),
    # Processes of MPI wait for each other: two tests at once would take the cores from both.
    pytest.mark.xdist_group("mpi"),
]

LONGEST = 100
"""Seconds after which a run of a test hangs."""


def started(
    count: int, *command: str, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command on several processes."""
    assert MPIEXEC is not None
    return subprocess.run(
        [MPIEXEC, *options, "-n", str(count), *command],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env={**os.environ, "TIMETILE_NUM_THREADS": "1", **environment},
    )


def script(
    count: int, text: str, *, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Python code on several processes, after imports and a program of a plate."""
    return started(count, sys.executable, "-c", PLATE + text, options=options, **environment)


@timetile.stencil(boundary=("periodic", ("mirror", "keep")))
def plate(u: timetile.Field, k: timetile.Scalar):
    """The step of `PLATE`."""
    u.next = u[0, 0] + k * (u[-1, -1] - 2 * u[1, 0] + u[0, 1])


START = {"u": np.random.default_rng(1).random((17, 13))}

PLATE = """
import os, sys, time
import numpy as np
import timetile
from mpi4py import MPI
from timetile.runtime.machine import llvm

llvm.SPEED = 0
comm = MPI.COMM_WORLD
@timetile.stencil(boundary=("periodic", ("mirror", "keep")))
def plate(u: timetile.Field, k: timetile.Scalar):
    u.next = u[0, 0] + k * (u[-1, -1] - 2 * u[1, 0] + u[0, 1])
start = {"u": np.random.default_rng(1).random((17, 13))}
"""


def test_processes_end_with_the_bits_of_one_or_with_the_cause_of_a_failure(tmp_path: Path):
    """
    Three processes are three ranks, then two and one, and in `make nightly` eight are eight, six
    and two, four, three and one; then all keep snapshots in one file, once; then each has other
    arrays; then one fails.
    """
    groups = ([8], [6, 2], [4, 3, 1]) if is_nightly() else ([3], [2, 1])
    count = sum(groups[0])
    done = script(
        count,
        f"groups = {groups}"
        """
alone = plate.on(executor="numpy").advance(start, steps=7, k=0.1)
for group in groups:
    color = sum(comm.rank >= sum(group[: k + 1]) for k in range(len(group)))
    part = comm.Split(color)
    model = plate.on(comm=part, executor="cpu" if part.size >= 3 else "numpy", exchange_every=2)
    ranked = model.advance(start, steps=7, k=0.1)
    assert alone["u"].tobytes() == ranked["u"].tobytes()
    sys.stdout.write(f"{part.size} ranks are right\\n")
kept = {"steps": 7, "every": 3, "k": 0.1, "keep": os.environ["KEPT"]}
plate.on(comm=comm, executor="numpy").advance(start, **kept)
try:
    plate.on(comm=comm, executor="numpy").advance(start, **kept)
except Exception as error:
    sys.stderr.write(f"[{comm.rank}] {error}\\n")
other = {"u": start["u"].copy()}
other["u"][3, 3] += comm.rank
try:
    plate.on(comm=comm, executor="numpy").advance(other, steps=7, k=0.1)
except Exception as error:
    sys.stderr.write(f"[{comm.rank}] {error}\\n")
program = plate.on(comm=comm, executor="numpy", exchange_every=1).program((17, 13))
def progress(done, total):
    if done == 3 and comm.rank == 1:
        raise MemoryError("no more cells")
try:
    program(start["u"].copy(), start["u"].copy(), 0.1, 9, progress=progress)
except Exception as error:
    sys.stderr.write(f"[{comm.rank}] {error}\\n")
""",
        KEPT=str(tmp_path / "kept.h5"),
    )
    assert done.returncode != 0, "a process that failed ends all"
    sizes = [size for group in groups for size in group]
    assert Counter(done.stdout.splitlines()) == {f"{size} ranks are right": size for size in sizes}
    for rank in range(count):
        assert f"[{rank}] nothing has run, as ranks 0 and 1 of 3 differ in u" in done.stderr
        told = f"rank 0 of {count} failed: " if rank else ""
        assert f"[{rank}] {told}{tmp_path}/kept.h5 exists; remove it" in done.stderr
        told = "" if rank == 1 else f"rank 1 of {count} failed: MemoryError: "
        assert f"[{rank}] {told}no more cells" in done.stderr
    states: list[Any] = []
    plate.on(executor="numpy").advance(START, 7, every=3, k=0.1, keep=states)
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "kept.h5") as file:
        assert file["step"][...].tolist() == [3, 6, 7]
        assert file["u"][...].tobytes() == b"".join(state["u"].tobytes() for state in states)


def test_the_command_line_runs_a_program_of_parts_on_processes(tmp_path: Path):
    """Two processes take a program that xDSL has cut for four, and keep snapshots in one file."""
    program, part = ROOT / "examples" / "heat2d.mlir", tmp_path / "part.mlir"
    files = [tmp_path / "1.npz", tmp_path / "2.npz"]
    module = load(program)
    DistributeStencilPass(slices=(2, 2), strategy="2d-grid").apply(Context(), module)
    part.write_text(str(module))
    line = ["run", str(program), "--steps", "5", "--random", "1", "--executor", "cpu", "--out"]
    kept = ["--snapshot-every", "2", "--keep", str(tmp_path / "kept.h5")]
    cut = ["run", str(part), *line[2:], str(files[1]), "--parts", "2x1", *kept]
    done = started(2, str(BESIDE.parent / "timetile"), *cut)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"wrote {files[1]}") == 1
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "kept.h5") as file:
        assert file["step"][...].tolist() == [2, 4, 5]
    assert main([*line, str(files[0])]) == 0
    alone, ranked = (np.load(file) for file in files)
    for name in alone.files:
        assert alone[name].tobytes() == ranked[name].tobytes()


KILLED = """
from pathlib import Path
program = plate.on(comm=comm, executor="numpy", exchange_every=1).program((17, 13))
def progress(done, total):
    if done == 3 and comm.rank == 1:
        os.kill(os.getpid(), 9)
try:
    program(start["u"].copy(), start["u"].copy(), 0.1, 9, progress=progress)
except Exception as error:
    Path(os.environ["SAID"], str(comm.rank)).write_text(f"{error}")
    raise SystemExit(3)
"""

KILLED_EARLY = """
import os, time
from pathlib import Path
from mpi4py import MPI
from timetile.runtime.ranks.mpi import peers_of
from timetile.runtime.ranks.peers import RankError, words_of_all

peers = peers_of(MPI.COMM_WORLD, 60)
if peers.rank == 0:
    # MPI learns of a death first.
    peers.communicator.Free()
if peers.rank == 1:
    time.sleep(0.2)
    os.kill(os.getpid(), 9)
try:
    words_of_all(peers, "here")
except RankError as error:
    Path(os.environ["SAID"], str(peers.rank)).write_text(f"{error}")
    raise SystemExit(3)
"""


@pytest.mark.parametrize("text", [KILLED_EARLY, PLATE + KILLED])
def test_a_process_that_dies_is_named_by_all(tmp_path: Path, text: str):
    """
    `mpiexec` kills all processes once it learns of a death. Ranks with guards find the death
    before, and the guard of the dead rank tells the signal.
    """
    file, start = tmp_path / "run.py", time.monotonic()
    file.write_text(text)
    line = (sys.executable, "-m", "timetile.ranks", str(file))
    done = started(3, *line, SAID=str(tmp_path), TIMETILE_RANKS_TIMEOUT="60")
    assert done.returncode != 0 and time.monotonic() - start < 50, "nobody waits for the dead"
    who = "rank 1 of 3 died: "
    assert re.search(rf"timetile: {who}signal 9 \(Killed\) ended process \d+ on ", done.stderr)
    for rank in (0, 2) if hasattr(os, "pidfd_open") else ():
        said = (tmp_path / str(rank)).read_text()
        assert re.search(rf"{who}process \d+ on \S+ has ended$", said)


KILLED_BEFORE = """
import os
from timetile.runtime.machine import guard

guard.GRACE_SECONDS = 0.3
guard.become_rank()
if max(guard.numbers_said(guard.RANKS)) == 1:
    os.kill(os.getpid(), 9)
from mpi4py import MPI
"""


def test_a_death_before_mpi_starts_ends_all():
    """The others wait for the start of MPI, and look for nobody."""
    start = time.monotonic()
    done = started(2, sys.executable, "-c", KILLED_BEFORE)
    assert done.returncode != 0 and time.monotonic() - start < 50, "nobody waits for the dead"
    assert "timetile: rank 1 of 2 died: signal 9 (Killed) ended process " in done.stderr


BROKEN = """
import sys
from mpi4py import MPI
from timetile.runtime.ranks import mpi
from timetile.runtime.ranks.mpi import peers_of
from timetile.runtime.ranks.peers import RankError, words_of_all

# No process dies.
mpi.DEATH_SECONDS = 0.1
peers = peers_of(MPI.COMM_WORLD, 60)
if peers.rank == 1:
    peers.communicator.Free()
try:
    words_of_all(peers, "here")
except RankError as error:
    sys.stderr.write(f"[{peers.rank}] {error}\\n")
    raise SystemExit(3)
"""


def test_a_communicator_that_fails_is_named_by_all():
    start = time.monotonic()
    done = started(2, sys.executable, "-c", BROKEN)
    assert done.returncode != 0 and time.monotonic() - start < 50, "nobody waits for the limit"
    for rank in range(2):
        said = f"[{rank}] rank 1 of 2 failed: its communicator fails, as MPI says: "
        assert said in done.stderr


def test_processes_name_a_process_that_sends_nothing():
    done = script(
        2,
        """
import timetile.runtime.ranks.mpi as peers
# Nobody waits long for a process without an answer.
peers.GRACE_SECONDS = 0.3
program = plate.on(comm=comm, executor="numpy", exchange_every=1).program((17, 13))
def progress(done, total):
    if done == 3 and comm.rank == 1:
        time.sleep(60)
try:
    program(start["u"].copy(), start["u"].copy(), 0.1, 9, progress=progress)
except Exception as error:
    sys.stderr.write(f"[{comm.rank}] {error}\\n")
    raise SystemExit(3)
""",
        TIMETILE_RANKS_TIMEOUT="1",
    )
    assert done.returncode != 0
    assert "rank 1 of 2 sent nothing for 1 s: the process died, hangs, or computes longer" in (
        done.stderr
    )


DEVITO = """
import sys
import numpy as np
from devito import Eq, Grid, Operator, TimeFunction, configuration
from mpi4py import MPI
import timetile.devito

configuration["log-level"] = "ERROR"
def advanced(**options):
    u = TimeFunction(name="u", grid=Grid(shape=(12, 14)), space_order=4)
    u.data[:] = np.random.default_rng(0).random(u.data.shape)
    with timetile.devito.backend(**options):
        op = Operator(Eq(u.forward, u + 1e-5 * u.laplace))
    op.apply(time_M=9)
    return np.array(u.data)
ranked, comm = advanced(comm=MPI.COMM_WORLD), MPI.COMM_WORLD
assert (ranked == comm.bcast(advanced(executor="cpu") if comm.rank == 0 else None)).all()
sys.stdout.write("equal\\n")
"""


def test_operators_of_devito_run_on_processes():
    """Devito tells mpi4py not to start MPI: the first program does."""
    done = started(2, sys.executable, "-c", DEVITO)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["equal", "equal"]
