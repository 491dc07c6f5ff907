"""
Processes with a GPU each: bits and speed with buffers opened by other processes, and without.

    python benchmarks/gpu_ranks.py --gpus 2
    python benchmarks/gpu_ranks.py --processes 1
    python benchmarks/gpu_ranks.py --arch h200

A single process sends rims of whole rows, and of columns, to itself through NCCL. Processes talk
through pipes, in place of MPI. Each program runs on all processes; the arrays of all are compared
with one GPU's. Ghosts are pulled from the other GPU's memory, behind meetings of the GPUs
(`opened`) or of the hosts (`messages`), go through NCCL as between hosts (`nccl`), or through the
host's memory (`host`). The seconds leave out the transfers of whole
fields. In the ways `death` and `shared_death` a process ends within a run, through NCCL and behind
meetings of the GPUs: the others have to say so after `SHORT_TIMEOUT` seconds.

`shared` is as `opened`, for processes that share GPUs, which otherwise exchange by messages: a GPU
gives each process its turn, and a wait takes milliseconds. Bits are checked; speeds say nothing.

`long` is `large` for more steps: the difference is what a run costs once (buffers opened, graphs
recorded). `paced` programs have an exchange after each launch, or after some, as asked for.
Processes and the GPUs of one process run equal kernels: the difference is what processes add to an
exchange. With `--arch` all kernels are made for a part by name, and nothing runs.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any
from unittest.mock import patch

import numpy as np
from check_several_gpus import arguments_for, have_equal_bits, texts
from placed_runs import make_all, make_further_kernels
from rows import described, source

import timetile
from timetile.dialects.boxes import CellBox
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.targets.links import NEAR_PROCESSES
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.guard import PARENT_DEATH_SIGNAL
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.ranked_gpu_program import RankedGpuProgram
from timetile.runtime.program.ranked_program import on_ranks
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.layout import slab_layout
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.peers import TIMEOUT_VARIABLE, Bytes, failed, missing
from timetile.runtime.ranks.rims import box_copy
from timetile.runtime.ranks.sites import RimMessage

TIMEOUT = 30.0
"""Seconds for a process to wait for another."""

SHORT_TIMEOUT = 3.0
"""Seconds for a process to wait for rims of a dead process."""


class PipePeers:
    """The processes of a run, with a pipe between each two; see `Peers`."""

    def __init__(self, rank: int, pipes: Mapping[int, Connection]):
        self.rank, self.count, self.pipes = rank, len(pipes) + 1, pipes

    @property
    def ranks_beside(self) -> list[int]:
        """All ranks."""
        return list(range(self.count))

    def exchange(self, sent: Mapping[int, Bytes], received: Mapping[int, Bytes]) -> None:
        """Send, and receive, messages."""
        # A pipe holds little, and both ends send first.
        senders = [
            Thread(target=self.pipes[rank].send, args=(message.tobytes(),))
            for rank, message in sent.items()
        ]
        for sender in senders:
            sender.start()
        for rank, into in received.items():
            if not self.pipes[rank].poll(TIMEOUT):
                raise missing([rank], self.count, TIMEOUT)
            message = self.pipes[rank].recv()
            if isinstance(message, str):
                raise failed(rank, self.count, message)
            into[:] = np.frombuffer(message, np.uint8)
        for sender in senders:
            sender.join()

    def look(self) -> None:
        """Nothing is known of the others but by messages."""

    def tell(self, cause: str) -> None:
        """Tell the other processes of a failure."""
        for pipe in self.pipes.values():
            pipe.send(cause)


def check_link() -> bool:
    """Whether a process that sends rims to itself through NCCL gets them."""
    site, peers = GpuSite(device(0)), PipePeers(0, {})
    print("why no NCCL:", site.why_no_link() or "there is NCCL", flush=True)
    start = time.monotonic()
    link = site.link(peers, site.link_name())
    print(f"NCCL begins in {time.monotonic() - start:.1f} s", flush=True)
    field, kind = CellBox((0, 0), (600, 500)), np.dtype(np.float64)
    cells = np.random.default_rng(0).random((600, 500))
    source, target = site.new(cells.shape, kind), site.new(cells.shape, kind)
    site.upload(source, cells)
    site.upload(target, np.zeros_like(cells))
    rims = [CellBox((7, 0), (19, 500)), CellBox((30, 5), (600, 11))]
    for number in range(100):
        start = time.monotonic()
        link.exchange(
            [RimMessage(0, source, box_copy(field, rim, rim, rim, 8)) for rim in rims],
            [RimMessage(0, target, box_copy(rim, rim, field, rim, 8)) for rim in rims],
        )
        if number in (0, 99):
            print(f"exchange {number}: {(time.monotonic() - start) * 1e6:.0f} us", flush=True)
    found, right = np.empty_like(cells), np.zeros_like(cells)
    site.download(found, target, 0)
    for rim in rims:
        place = tuple(slice(a, b) for a, b in zip(rim.lower, rim.upper))
        right[place] = cells[place]
    link.close()
    site.close()
    return found.tobytes() == right.tobytes()


def not_shared(*_: Any) -> bytes:
    """No handle."""
    return b""


def no_side(*_: Any) -> None:
    """No meetings of GPUs."""


def no_link(*_: Any) -> str:
    """Why there is no link."""
    return "the memory of the host is measured"


def ends_now(done: int, total: int) -> None:
    """End the process within a run."""
    if 2 * done > total:
        os.kill(os.getpid(), signal.SIGKILL)


def runs() -> dict[str, tuple[str, int]]:
    """Programs and steps: those that are checked, and one that is timed."""
    known = texts()
    checked = {name: (known[name][0], 101) for name in ("j2d5pt", "channel", "yee3")}
    large = source("j3d7pt", (384, 512, 512), "f32")[0]
    return {**checked, "large": (large, 240), "long": (large, 4800)}


PACES = {f"paced {every}": every for every in (12, 48)}
"""Steps between exchanges of a program with launches of few microseconds, by name."""

PACED_STEPS = 24000


def all_runs() -> dict[str, tuple[str, int, int | None]]:
    """Programs, steps, and the steps between two exchanges that are asked for."""
    found: dict[str, tuple[str, int, int | None]] = {}
    for name, (text, steps) in runs().items():
        found[name] = text, steps, None
    plate = source("j2d5pt", (2048, 2048), "f32")[0]
    for name, every in PACES.items():
        found[name] = plate, PACED_STEPS, every
    return found


def make_kernels(text: str, every: int | None, arch: str, count: int) -> None:
    """Make the kernels of one GPU, and those of all ranks, for a part by name."""
    alone = timetile.compile(text, executor="simt", arch=arch)
    make_all([alone.kernels])
    domain = Domain.of(alone.module)
    assert domain is not None
    layout, options, cache = slab_layout(domain, count), alone.kernels.options, alone.kernels.cache
    for rank in range(count):
        link = NEAR_PROCESSES
        parts = PartKernels(alone.module, layout, options, cache, every, (rank,), link)
        make_all(parts.of_parts(common=True))
        make_further_kernels(parts, common=True)


def seconds_in_one_process(text: str, steps: int, every: int, gpus: Sequence[int]) -> float:
    """The seconds of a run on the GPUs of one process."""
    with timetile.compile(text, gpus=list(gpus), exchange_every=every) as program:
        own = arguments_with(program, steps)
        return min(program(*own).seconds or 0.0 for _ in range(3))


def arguments_with(program: CompiledProgram, steps: int) -> list[Any]:
    """Arguments drawn at random, with a number of steps."""
    drawn = arguments_for(program, same=True)
    return [steps if isinstance(each, int) else each for each in drawn]


def work(
    rank: int,
    gpus: int,
    pipes: Mapping[int, Connection],
    way: str,
    only: Sequence[str] | None,
    said: Callable[..., None],
) -> None:
    """Run all programs on a process, which dies with its parent."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    is_shared, dies = way.startswith("shared"), way.endswith("death")
    if way == "messages":
        patch.object(GpuSite, "side_of_meetings", no_side).start()
    elif is_shared:
        patch.object(GpuSite, "place", f"{rank}").start()
    elif way != "opened":
        patch.object(GpuSite, "shared", not_shared).start()
    if way == "host":
        patch.object(GpuSite, "why_no_link", no_link).start()
    if dies:
        os.environ[TIMEOUT_VARIABLE] = f"{SHORT_TIMEOUT}"
    peers = PipePeers(rank, pipes)
    for name, (text, steps, every) in all_runs().items():
        if only and name not in only:
            continue
        try:
            compiled = partial(timetile.compile, text, executor="gpu", gpu=rank % gpus)
            program = on_ranks(peers, compiled, None, every, RankedGpuProgram)
            own = arguments_with(program, steps)
            if dies:
                start = time.monotonic()
                try:
                    program(*own, progress=ends_now if rank == 1 else None)
                finally:
                    said(name, way, rank, f"ended after {time.monotonic() - start:.1f} s")
            seconds = min(program(*own).seconds or 0.0 for _ in range(2))
            if rank == 0:
                one = timetile.compile(text, executor="gpu")
                right = arguments_with(one, steps)
                alone = min(one(*right).seconds or 0.0 for _ in range(2))
                same = "equal" if have_equal_bits(own, right) else "different"
                cells = prod(program.parameters[0].shape) * steps / 1e9
                speeds = [round(cells / max(each, 1e-9), 1) for each in (seconds, alone)]
                said(name, way, same, "GPts/s of all and of one", speeds, flush=True)
            if rank == 0 and every is not None and not is_shared:
                near = seconds_in_one_process(text, steps, every, range(peers.count))
                micros = [round(1e6 * each / steps * every, 1) for each in (seconds, near)]
                said(name, way, "us an exchange: processes, one process", micros, flush=True)
            program.close()
        except Exception as error:
            said(name, way, rank, described(error), flush=True)
            raise


def main() -> None:
    """Run in all ways."""
    parser = argparse.ArgumentParser(description="Processes with a GPU each.")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    ways = ["opened", "messages", "nccl", "host", "death"]
    others = ["shared", "shared_death"]
    parser.add_argument("--ways", nargs="*", choices=[*ways, *others], default=ways)
    parser.add_argument("--only", nargs="*", help="programs by name")
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    given, spawn = parser.parse_args(), get_context("spawn")
    if given.arch:
        for name, (text, _, every) in all_runs().items():
            if not given.only or name in given.only:
                make_kernels(text, every, given.arch, given.processes)
                print(name, "compiled", flush=True)
        return
    if given.processes == 1:
        print("equal" if check_link() else "different")
        return
    for way in given.ways:
        pipes: list[dict[int, Connection]] = [{} for _ in range(given.processes)]
        for one in range(given.processes):
            for other in range(one):
                pipes[one][other], pipes[other][one] = spawn.Pipe()
        start = time.monotonic()
        made = [
            spawn.Process(target=work, args=(rank, given.gpus, pipes[rank], way, given.only, print))
            for rank in range(given.processes)
        ]
        for process in made:
            process.start()
        for process in made:
            process.join(60)
            if process.is_alive():
                process.kill()
        codes = [process.exitcode for process in made]
        print(way, "exit codes", codes, f"{time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
