"""What the command line explains: what became of a program and why, the cache, the machine."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.catalogue import entry, star, sum_program
from support.command_line import HEAT, run
from support.programs import program_text
from timetile.dialects.tile import LaunchOp
from timetile.lowering.ptx.functions import nvrtc_version
from timetile.passes.targets.isa import ISAS
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.store import SAID, Cache
from timetile.runtime.cli import compiled, doctor, main
from timetile.runtime.cli.terminal import answer_console
from timetile.runtime.explain.figures import launch_counts, loop_flops, occupancy, reach, redundancy
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.of_program import Kernel, loops_of
from timetile.runtime.kernels.planning import planned_function
from timetile.runtime.machine.driver import Unavailable, gpu_is_available

pytestmark = pytest.mark.usefixtures("own_cache")


# timetile explain.


def test_explain_says_what_was_recognised(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 4 --steps 30 --all") == 0
    said = " ".join(capsys.readouterr().out.split())
    for expected in (
        "0 %u f64 [-1, 15) x [-1, 20) buffer",
        "2 %k f64 scalar",
        "3 %steps index number of steps",
        "rotation %a <- %b, %b <- %a",
        "live before a step %a",
        "coefficient fields none",
        "scalars %k",
        "%b = heat_cell0 in [0, 14) x [0, 19): 3 reads of %a; 1 mulf, 2 fma = 5 flops",
        "offsets that are read [-1, +0] x [-1, +1]",
        "8 bytes read, 8 written, 5 flops",
        "steps of a launch 4, 2, 1",
        "streaming axis none",
        "shared memory 4 accesses a cell with all levels there, 4 with planes in registers too",
        "shared memory limits from",
        "Predicted on sm_90 kernel GCells/s steps ns a step pipe issue shared not hidden computing "
        "waiting memory",
        "@heat_d4",
        "Queues of @heat_d4",
        "load of %a",
        "30 steps",
    ):
        assert expected in said
    assert ("limited by" in said) == (assembler_version() is not None)
    assert ("unknown without the assembler" in said) == (assembler_version() is None)


def test_explain_says_along_which_axis_planes_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "large.mlir"
    path.write_text(program_text(entry("heat-2d").make((2500, 2500))))
    assert run(f"explain {path} --depth 3 --all") == 0
    assert re.search(r"streaming axis +axis 0\n", capsys.readouterr().out)


def test_explain_shows_the_schedules_that_lost(heat: Path, capsys: pytest.CaptureFixture[str]):
    """The chosen schedule is the first of those that the model compares; nothing was compared by hand."""
    assert run(f"explain {heat} --all") == 0
    said = capsys.readouterr().out
    depth = re.search(r"steps of a launch +(\d+)", said)
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) ", said)
    assert depth is not None
    assert best is not None
    assert depth.group(1) == best.group(1)
    # Of so small a plate the tiles may stay.
    assert re.search(r"each level that may hold a tile\n.*\n.*\nblock, stays ", said)
    assert re.search(r"^warp ", said, re.MULTILINE)
    passes = "temporal-fusion{depths=2},device-tiling,multi-queue-buffering,peel-boundaries"
    assert main(["explain", str(heat), "--all", "--pipeline", passes]) == 0
    assert "schedules" not in capsys.readouterr().out


def test_explain_compares_the_levels_that_may_hold_a_tile(
    heat: Path, capsys: pytest.CaptureFixture[str]
):
    """For a star in 3D: each larger level overlaps less, and waits longer; a block need not wait at all."""
    heat.write_text(program_text(sum_program("f64", star(3, 1))((512, 512, 512))))
    assert run(f"explain {heat} --all") == 0
    said = capsys.readouterr().out
    title = "The best of each level that may hold a tile\n"
    columns, _, *lines = said.partition(title)[2].splitlines()
    assert re.split(" {2,}", columns.strip()) == [
        "tile", "depth", "cells", "blocks", "sync", "GCells/s", "valid", "steps", "ns a step", "waiting"
    ]  # fmt: skip
    rows = {row[0]: row[1:] for row in (re.split(" {2,}", line.strip()) for line in lines[:4])}
    assert list(rows) == ["block", "cluster", "device", "device, stays"]
    assert [row[3] for row in rows.values()] == ["mbarrier", "mbarrier", "flags", "grid"]
    staying = rows.pop("device, stays")
    assert re.fullmatch(r"\d+ x 1 x 1", staying[2])
    assert rows["block"][2] == "1"
    assert rows["cluster"][2] == "2 x 1"
    assert re.fullmatch(r"\d+ x 1", rows["device"][2])
    valid = [int(row[5].removesuffix("%")) for row in rows.values()]
    waiting = [int(row[8]) for row in rows.values()]
    assert valid == sorted(valid) and valid[-1] <= 100
    assert waiting == sorted(waiting) and waiting[0] == 0 < waiting[1]
    assert int(staying[8]) > waiting[-1]
    # The first row is what was chosen.
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) +([\dx ]+?) {2,}", said)
    assert best is not None
    assert list(best.groups()) == rows["block"][:2]
    # What the columns mean is said below.
    assert [line.split()[0] for line in lines[4:9]] == [
        "blocks",
        "sync",
        "valid",
        "steps",
        "waiting",
    ]
    columns, *lines = said.partition("Schedules that were left out\n")[2].splitlines()
    assert re.split(" {2,}", columns.strip()) == ["schedules", "at depth", "why"]
    rows_of_reasons = [re.split(" {2,}", line.strip()) for line in lines[1:4]]
    left_out = {why: int(count) for count, _, why in rows_of_reasons}
    assert left_out["planes do not fit the registers of a thread"] > 10
    assert left_out == dict(sorted(left_out.items(), key=lambda item: -item[1]))


def test_explain_says_what_was_not_done(heat: Path, capsys: pytest.CaptureFixture[str]):
    """A depth whose overlap is wider than any tile."""
    assert run(f"explain {heat} --depth 200 --function heat") == 0
    captured = capsys.readouterr()
    assert "Not done, and why" in captured.out
    assert (
        "no tile holds 200 steps at once, as their overlap, planes or fields are too many"
        in captured.out
    )
    # Said once, in the answer.
    assert captured.err == ""


def test_explain_says_why_a_loop_runs_step_by_step(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text(HEAT.replace("scf.yield %b, %a", "scf.yield %b, %b"))
    assert run(f"explain {heat} --all") == 0
    captured = capsys.readouterr()
    line = HEAT.splitlines().index("    scf.yield %b, %a : !field, !field") + 1
    assert (
        f"scf.yield in @heat ({heat}:{line}): the time loop runs a step at a time: it yields a field "
        "twice; yield each carried field once\n"
    ) in captured.out


@pytest.mark.parametrize("steps", [0, 1, 7, 100])
def test_launch_counts_are_those_of_the_plan(steps: int):
    program = timetile.compile(HEAT, executor="cpu", depth=4, cache=False)
    (loop,) = loops_of(program.module)
    kernels = program.kernels.facts_of(loop)
    counts = launch_counts(loop, kernels, steps)
    depths = {kernel.name: kernel.steps for kernel in kernels}
    assert sum(depths[name] * n for name, n in counts.launches.items()) == steps
    launches = [
        op for op in planned_function(loop, kernels, steps).walk() if isinstance(op, LaunchOp)
    ]
    assert set(counts.launches) == {launch.kernel.string_value() for launch in launches}


def test_facts_of_a_step():
    program = timetile.compile(HEAT, executor="cpu", depth=3, cache=False)
    (loop,) = loops_of(program.module)
    assert loop_flops(loop) == 5
    assert reach(loop.updates) == [(-1, 0), (-1, 1)]


def test_more_overlap_is_more_redundancy():
    """A deeper kernel computes more of its tile twice; nothing computes less than what is useful."""
    totals: list[float] = []
    text = program_text(sum_program("f64", star(2, 1))((5000, 5000)))
    for depth in (2, 6):
        program = timetile.compile(text, executor="cpu", depth=depth, cache=False)
        (deepest,) = (k for k in compiled.placed_kernels(program) if k.steps.data == depth)
        found = redundancy(deepest)
        assert found.plane >= 1 and found.stream >= 1
        totals.append(found.total)
    assert totals[0] < totals[1]


@pytest.mark.parametrize(
    ("registers", "shared", "blocks", "limit"),
    [(128, 0, 4, "registers"), (121, 0, 4, "registers"), (32, 100_000, 2, "shared memory"),
     (16, 0, 16, "warps")],
)  # fmt: skip
def test_occupancy(registers: int, shared: int, blocks: int, limit: str):
    kernel = Kernel(
        "k", "", None, "sm_90", grid=1, block=128, cluster=1, blocks_per_tile=1, message_words=0, bound_waits=False,
        shared_bytes=shared, registers=registers, spill_bytes=0,
    )  # fmt: skip
    found = occupancy(kernel, target_named("sm_90"))
    assert (found.blocks, found.warps, found.limit) == (blocks, 4, limit)


def test_verbose_says_what_is_being_done(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 1 --verbose") == 0
    said = capsys.readouterr().err
    assert "info: compiling @heat_step\n" in said
    assert re.search(r"^info: @heat for the executor \w+, target sm_\d+$", said, re.MULTILINE)
    assert "info: time loop 0: kernels of 1 steps\n" in said
    assert run(f"explain {heat} --depth 1") == 0
    assert capsys.readouterr().err == ""


# timetile cache and doctor.


def test_cache_is_shown_verified_rebuilt_and_cleared(
    heat: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
):
    def said(line: str, code: int = 0) -> str:
        assert run(line) == code
        return capsys.readouterr().out

    folder = Cache.default().directory
    assert folder.parent == own_cache
    assert said("cache path") == f"{folder}\n"
    assert said("cache verify") == f"0 entries in {folder}, 0 damaged\n"
    explained = said(f"explain {heat} --depth 2 --all")
    keys = Cache.default().keys()
    assert said("cache verify") == f"{len(keys)} entries in {folder}, 0 damaged\n"
    for path in sorted(folder.glob("*.entry"))[:2]:
        path.write_text("damaged")
    damaged = said("cache verify", 1)
    assert damaged.count("damaged: ") == 2
    assert f"{len(keys)} entries in {folder}, 2 damaged\n" in damaged
    assert said(f"explain {heat} --depth 2 --all") == explained
    assert said("cache verify") == f"{len(keys)} entries in {folder}, 0 damaged\n"
    assert said("cache clear") == f"removed {len(keys)} entries from {folder}\n"
    assert Cache.default().keys() == []


def test_a_folder_that_is_no_cache_is_left_alone(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
):
    folder = Cache.default().directory
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("keep")
    for action in ("clear", "verify"):
        assert run(f"cache {action}") == 2
        assert capsys.readouterr().err == (
            f"timetile: {folder} is no cache of timetile's and is left alone; set TIMETILE_CACHE_DIR to another folder\n"
        )
    assert (folder / "notes.txt").read_text() == "keep"
    assert run("doctor") == 0
    assert f"{folder} is no cache of timetile, as it holds 'notes.txt'" in capsys.readouterr().out


def test_without_a_cache_nothing_is_read_or_kept(
    heat: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
):
    for line in ("explain", "compile", "run --executor simt --random 1 --steps 3"):
        command, *others = line.split(maxsplit=1)
        assert run(f"{command} {heat} --depth 2 --no-cache {' '.join(others)} --set k=0.1") in (
            0,
            2,
        )
    assert not own_cache.exists()


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nothing/here"])
def test_every_command_works_without_a_folder_for_the_cache(
    place: str, heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", place)
    for line in (f"compile {heat} --depth 2", f"explain {heat} --depth 2"):
        SAID.clear()
        assert run(line) == 0
        shown = capsys.readouterr()
        assert (shown.out + shown.err).count("cannot be used (") == 1
    assert run("doctor") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cache")]
    assert line.startswith(f"cache        none   {place}/")


def test_doctor_names_everything(own_cache: Path, capsys: pytest.CaptureFixture[str]):
    assert run("doctor") == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line[:12].strip(): line[13:] for line in lines}
    assert found["timetile"] == f"found  {timetile.__version__}"
    assert found["numpy"] == f"found  {np.__version__}"
    folder = Cache.default().directory
    assert found["cache"] == f"found  {folder}, 0 entries, 0.0 of 1024 MiB"
    assert found["driver"].startswith("found" if gpu_is_available() else "none")
    assert found["assembler"].startswith("none" if assembler_version() is None else "found")
    assert found["functions"].startswith("none" if nvrtc_version() is None else "found  NVRTC ")


class FakeDriver:
    """What `doctor` asks of the driver's bindings."""

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13010

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 2

    def cuDeviceTotalMem(self, handle: int) -> tuple[int, int]:
        return 0, (80 + handle) << 30


class FakeDevice:
    """Two GPUs, one of an architecture that is not known."""

    def __init__(self, number: int):
        self.cuda, self.handle = FakeDriver(), number
        self.name = "A GPU"
        self.arch = ("sm_90", "sm_100")[number]


def test_doctor_lists_the_gpus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "driver", FakeDriver)
    monkeypatch.setattr(doctor, "Device", FakeDevice)
    found = {finding.what: finding.text for finding in doctor.gpus()}
    assert found == {
        "driver": "for CUDA 13.1",
        "GPU 0": "A GPU, sm_90, 80 GiB",
        "GPU 1": f"A GPU, sm_100, 81 GiB; kernels are tuned for {', '.join(ISAS)}",
    }


def test_doctor_says_why_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "driver", lambda: Unavailable("no NVIDIA driver was found"))
    monkeypatch.setattr(doctor, "assembler_version", lambda: None)
    monkeypatch.setattr(doctor, "nvrtc_version", lambda: None)
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    found = {finding.what: finding for finding in doctor.examine()}
    assert not found["driver"].found
    assert found["driver"].text == "no NVIDIA driver was found"
    assert not found["GPU"].found
    assert 'pip install "timetile[assembler]"' in found["assembler"].text
    assert 'pip install "timetile[functions]"' in found["functions"].text
    assert found["no-such-package"].text == (
        'not installed, so timetile does not run; pip install "no-such-package"'
    )


def test_doctor_says_what_a_package_is_for(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", absent)
    assert doctor.package("matplotlib").text == (
        'not installed, so timetile run --plot draws nothing; pip install "timetile[plot]"'
    )
    assert doctor.WANTED_BY.keys() <= set(doctor.PACKAGES)


def test_doctor_counts_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIMETILE_NUM_THREADS", "3")
    assert doctor.threads().text == "programs run on 3 threads"
    monkeypatch.setenv("TIMETILE_NUM_THREADS", "many")
    assert not doctor.threads().found
    assert "is a number from 1 on, got 'many'" in doctor.threads().text


@pytest.mark.parametrize(("forced", "styled"), [(None, False), ("1", True)])
def test_colours_are_of_terminals_that_want_them(
    forced: str | None,
    styled: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Answers in a pipe are plain text; NO_COLOR leaves no colours where a terminal is pretended."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if forced is not None:
        monkeypatch.setenv("FORCE_COLOR", forced)
        monkeypatch.setenv("TERM", "xterm-256color")
    for setting in ("", "1"):
        monkeypatch.setenv("NO_COLOR", setting)
        console = answer_console()
        console.print("[bold red]text[/]")
        said = capsys.readouterr().out
        assert ("\x1b[" in said) is styled
        assert ("31m" in said) is (styled and not setting)
