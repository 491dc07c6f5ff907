"""The command line on the cache, on the machine, and in colours."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.command_line import run
from timetile.lowering.ptx.functions import nvrtc_version
from timetile.runtime.cache.store import SAID, Cache
from timetile.runtime.cli import doctor
from timetile.runtime.cli.terminal import answer_console
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.machine.driver import Unavailable, gpu_is_available

pytestmark = pytest.mark.usefixtures("own_cache")


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
            f"timetile: {folder} is no cache of timetile's and is left alone; set "
            "TIMETILE_CACHE_DIR to another folder\n"
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
    """The bindings used by `doctor`."""

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13010

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 2

    def cuDeviceTotalMem(self, handle: int) -> tuple[int, int]:
        return 0, (80 + handle) << 30


class FakeDevice:
    """Two GPUs; one has an unknown architecture."""

    def __init__(self, number: int):
        self.cuda, self.handle = FakeDriver(), number
        self.name = "A GPU"
        self.arch = ("sm_90", "sm_103")[number]


def test_doctor_lists_the_gpus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "driver", FakeDriver)
    monkeypatch.setattr(doctor, "Device", FakeDevice)
    monkeypatch.setattr(doctor, "part_text", "facts of {}".format)
    found = {finding.what: finding.text for finding in doctor.gpus()}
    assert found == {
        "driver": "for CUDA 13.1",
        "GPU 0": "A GPU, sm_90, 80 GiB",
        "part 0": "facts of 0",
        "GPU 1": "A GPU, sm_103, 81 GiB; kernels are made for sm_100",
        "part 1": "facts of 1",
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
def test_colours_go_only_to_terminals_with_colours(
    forced: str | None,
    styled: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """
    Answers in a pipe are plain text; NO_COLOR leaves no colours where a terminal is pretended.
    """
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
