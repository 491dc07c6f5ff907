"""
Checks programs on the GPUs of a host against a single GPU, bit for bit.

    python benchmarks/check_several_gpus.py --gpus 2
    python benchmarks/check_several_gpus.py --gpus 1 --counts
    python benchmarks/check_several_gpus.py --arch h200

Every program runs with cuts along each axis, in as many parts as GPUs and in twice as many, and in
two parts along two axes each, with equal and with different halos, and with exchanges as chosen and
every few steps; long programs run with rims first and with launches in pieces, too. GPUs with a
part each meet by counts, others by events; `--counts`: parts of a GPU meet by counts, too, in
graphs of their own. Blocks of `messages` wait for each other: their cooperative launches are in
graphs. A line is printed for each run; the exit status is 1 if some differ. With `--arch` all
kernels are made for a part by name, in processes, and nothing runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np
from placed_runs import make_all, make_further_kernels, no_sites
from real_steps import PROGRAMS
from rows import described, source
from xdsl.passes import ModulePass

import timetile
from timetile import Field, Points, Scalar
from timetile.dialects.tile.kinds import TileLevel
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import cycles, part_kernels, split_kernels
from timetile.runtime.ranks.gpu_meetings import GpuMeetings
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.peers import as_bytes

STEPS = 101

EVERY = (None, 4)
"""Steps between two exchanges: as chosen, and so few that rims may go first."""


@timetile.stencil(boundary=("periodic", ("mirror", timetile.value(0.5))))
def channel(u: Field, w: Field, k: Scalar):
    """A boundary for each side, periodic along one axis."""
    u.next = u[0, 0] + k * (u[-1, -2] - 2 * u[1, 2] + u[0, 1])
    w.next = w[0, 0] + k * u.next[1, -1]


@timetile.stencil
def shot(u: Field, source: Points, heard: Points, k: Scalar):
    """A source, and receivers, of a step with kernels of several steps."""
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])
    source.add(u)
    heard.read(u)


def checked_points(numbers: Sequence[int], parts: Sequence[int]) -> str:
    """The outcome of a check of sources and receivers next to cuts and elsewhere."""
    random = np.random.default_rng(5)
    places = [random.uniform((2, 2), (120, 200), (count, 2)) for count in (3, 40)]
    given: dict[str, Any] = {
        "source": Points(places[0], random.random((STEPS, 3))), "heard": Points(places[1]), "k": 0.2
    }  # fmt: skip
    start = {"u": random.random((129, 203))}
    try:
        one = shot.on(executor="gpu").advance(start, STEPS, **given)
        many = shot.on(gpus=tuple(numbers), parts=tuple(parts)).advance(start, STEPS, **given)
    except Exception as error:
        return f"error: {described(error)}"
    pairs = ((one["u"], many["u"]), (one.samples["heard"], many.samples["heard"]))
    return " ".join("equal" if a.tobytes() == b.tobytes() else "different" for a, b in pairs)


def texts() -> dict[str, tuple[str, int]]:
    """The programs and their numbers of axes."""
    return {
        "j2d5pt": (source("j2d5pt", (129, 203), "f64")[0], 2),
        "j3d7pt": (source("j3d7pt", (37, 41, 50), "f32")[0], 3),
        "channel": (str(channel.module((61, 83))), 2),
        "long": (source("j3d7pt", (150, 41, 50), "f32")[0], 3),
        "messages": (source("j3d7pt", (60, 141, 67), "f64")[0], 3),
        "yee3": (str(PROGRAMS["yee3"].module((30, 31, 40), "float32")), 3),
    }


def messages() -> tuple[ModulePass, ...]:
    """Passes for tiles of several blocks, which send each other messages."""
    tiling = DeviceTilingPass(
        tile=TileLevel.DEVICE, cells=(4, 2), lanes=(1, 32), warps=(8, 1), blocks=(5, 1),
        occupancy=1,
    )  # fmt: skip
    return tuple(
        tiling if isinstance(each, DeviceTilingPass) else each
        for each in tile_passes(depth=4)
        if not isinstance(each, ChooseSchedulePass)
    )


def layouts(axes: int, gpus: int) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """The GPUs of the parts, and the parts along each axis."""
    for axis in range(axes):
        for count in (gpus, 2 * gpus):
            parts = [1] * axes
            parts[axis] = count
            yield [part % gpus for part in range(count)], tuple(parts)
    for axis in range(1, axes):
        yield [part % gpus for part in range(4)], (2, *(1 + (k == axis) for k in range(1, axes)))


def counted(site: GpuSite, sites: Sequence[GpuSite]) -> GpuMeetings | None:
    """Meetings by counts, also of parts of one GPU."""
    if len(sites) < 2:
        return None
    return GpuMeetings([each.device for each in sites], [each.stream for each in sites])


def have_equal_bits(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether all arrays have equal bits."""
    fields = [(as_bytes(a), as_bytes(b)) for a, b in zip(one, other) if is_numpy_array(a)]
    return all(np.array_equal(a, b) for a, b in fields)


def arguments_for(program: CompiledProgram, *, same: bool) -> list[Any]:
    """Arguments drawn at random; `same`: fields of a shape are equal."""
    random, made = np.random.default_rng(3), list[Any]()
    for parameter in program.parameters:
        if parameter.bounds is not None:
            draw = np.random.default_rng(3) if same else random
            array = draw.uniform(0.5, 1.0, parameter.shape)
            made.append(array.astype(np.float32 if "32" in str(parameter.kind) else np.float64))
        else:
            made.append(STEPS if parameter.is_steps else 0.1)
    return made


def checked(
    text: str,
    numbers: Sequence[int],
    parts: Sequence[int],
    every: int | None,
    passes: Sequence[ModulePass] | None,
) -> str:
    """The outcome of a check: equal, different, or an error."""
    try:
        one = timetile.compile(text, executor="gpu")
        said: list[str] = []
        places: dict[str, Any] = {"gpus": list(numbers), "parts": parts, "exchange_every": every}
        with timetile.compile(text, passes=passes, **places) as many:
            for same in (True, False):
                right, own = arguments_for(one, same=same), arguments_for(one, same=same)
                one(*right)
                many(*own)
                said.append("equal" if have_equal_bits(right, own) else "different")
        return " ".join(said)
    except Exception as error:
        return f"error: {described(error)}"


def let_small_be_large() -> None:
    """Domains of few cells run in the ways of large ones."""
    # The few blocks of small domains are split, too.
    split_kernels.LEAST_WAVES, part_kernels.MOST_LONGER = 0.0, 1e9
    # Few launches are a graph.
    cycles.LAUNCHES_OF_A_GRAPH, cycles.LAUNCHES_AHEAD, cycles.FEWEST_LAUNCHES = 2, 0, 4


Case = tuple[str, str, list[int], tuple[int, ...], int | None]
"""A program's name and text, the GPUs of the parts, the parts, and steps between two exchanges."""


def cases(gpus: int, only: Sequence[str] | None, parts: Sequence[str] | None) -> list[Case]:
    """All programs in all layouts; in `parts` with exchanges as chosen alone, if given."""
    return [
        (name, text, *layout, every)
        for name, (text, axes) in texts().items()
        if not only or name in only
        for every in (EVERY[:1] if parts else EVERY)
        for layout in layouts(axes, gpus)
        if not parts or "x".join(map(str, layout[1])) in parts
    ]


def made(case: Case, arch: str) -> str:
    """Make all kernels of a case for a part by name, in a process. Returns an error's text."""
    name, text, homes, parts, every = case
    passes = messages() if name == "messages" else None
    let_small_be_large()
    try:
        make_all([timetile.compile(text, executor="simt", arch=arch).kernels])
        alone = timetile.compile(text, executor="simt", arch=arch, passes=passes)
        many = PartedProgram(alone, len(homes), no_sites, parts, every)
        for common in (True, False):
            make_all(many.parts.of_parts(common=common))
            make_further_kernels(many.parts, common=common)
    except Exception as error:
        return described(error)
    return ""


def make_ahead(wanted: Sequence[Case], arch: str) -> None:
    """Make the kernels of all cases."""
    count = max(2, (os.cpu_count() or 2) * 3 // 4)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        for case, problem in zip(wanted, pool.map(made, wanted, [arch] * len(wanted))):
            print(case[0], *case[2:], problem or "compiled", flush=True)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Programs on several GPUs against one.")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="programs by name")
    parser.add_argument(
        "--parts", nargs="*", help="parts along each axis, as 1x2x1, chosen exchanges"
    )
    parser.add_argument("--counts", action="store_true", help="parts of a GPU meet by counts")
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    return parser.parse_args()


def main() -> None:
    """Check all programs."""
    given, failed, start = options(), 0, time.monotonic()
    runs = cases(given.gpus, given.only, given.parts)
    if given.arch:
        make_ahead(runs, given.arch)
        return
    let_small_be_large()
    if given.counts:
        patch.object(GpuSite, "meetings", counted).start()
    for layout in layouts(2, given.gpus) if not given.only or "shot" in given.only else ():
        outcome = checked_points(*layout)
        failed += outcome != "equal equal"
        print(f"shot parts {layout[1]} on GPUs {layout[0]}: {outcome}", flush=True)
    for name, text, numbers, parts, every in runs:
        outcome = checked(text, numbers, parts, every, messages() if name == "messages" else None)
        failed += outcome != "equal equal"
        where = f"{name} parts {parts} on GPUs {numbers} every {every}"
        print(f"{where}: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
