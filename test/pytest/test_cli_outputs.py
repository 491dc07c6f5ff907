"""Files written by commands appear whole; otherwise earlier files stay."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from support.command_line import run
from timetile.runtime.cli import outputs
from timetile.runtime.cli.outputs import check_output, written
from timetile.runtime.cli.usage import UsageError


def test_an_existing_file_is_replaced_after_a_complete_write(tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("before")
    path.chmod(0o640)
    with written(path) as file:
        file.write(b"half")
        assert path.read_text() == "before"
    assert path.read_text() == "half"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_a_failed_write_leaves_the_earlier_file(error: BaseException, tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(type(error)) as caught, written(path) as file:
        file.write(b"half")
        raise error
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_text("before")
    link.symlink_to(path)
    with written(link) as file:
        file.write(b"after")
    assert link.is_symlink() and path.read_text() == "after"


def test_a_device_file_is_written_in_place():
    check_output(Path(os.devnull), 1 << 60)
    with written(Path(os.devnull)) as file:
        file.write(b"nothing")
    assert not Path(os.devnull).is_file()


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def disk_of(monkeypatch: pytest.MonkeyPatch, found: Disk) -> None:
    """Every folder lies on a disk with a given number of free bytes."""

    def usage(folder: Path) -> Disk:
        return found

    monkeypatch.setattr(outputs.shutil, "disk_usage", usage)


def test_a_disk_without_room_is_known_before_the_run(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out.npz"
    disk_of(monkeypatch, Disk(10_000, 9_900, 100))
    assert run(f"run {heat} --executor cpu --random 1 --steps 1 --set k=0.1 --out {out}") == 2
    size = 2 * 16 * 21 * 8
    assert capsys.readouterr() == (
        "",
        f"timetile: {out} takes {size} bytes, and its disk has 100; free some, or write "
        "elsewhere\n",
    )
    assert not out.exists()
    disk_of(monkeypatch, Disk(0, 0, 0))
    check_output(out, size)


def test_a_full_disk_is_one_sentence_with_the_files_name(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(file: Any, **arrays: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "out.npz"
    monkeypatch.setattr(np, "savez", full)
    assert run(f"run {heat} --executor cpu --random 1 --steps 1 --set k=0.1 --out {out}") == 2
    said = capsys.readouterr().err
    assert said == f"timetile: cannot open {out}: No space left on device\n"
    assert not out.exists()


def test_a_missing_folder_is_known_before_the_run(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        check_output(tmp_path / "nowhere" / "out")
    assert caught.value.filename == str(tmp_path / "nowhere" / "out")
    with pytest.raises(IsADirectoryError):
        check_output(tmp_path)
    with pytest.raises(UsageError):
        check_output(tmp_path / "out", 1 << 60)
    assert list(tmp_path.iterdir()) == []
