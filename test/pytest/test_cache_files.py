"""
The files of the disk cache: entries appear whole or not at all, other files stay untouched, and
failures are no errors.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timetile.runtime.cache import entry as entries
from timetile.runtime.cache import folder, store
from timetile.runtime.cache.entry import packed, unpacked
from timetile.runtime.cache.folder import MARK, TAG
from timetile.runtime.cache.keys import key_of
from timetile.runtime.cache.store import Cache

pytestmark = pytest.mark.usefixtures("new_process")

FILES = {"kernel.ptx": b"ld.global\n\n", "kernel.cubin": bytes(range(256)), "nothing": b""}
KEY = key_of("a", "kernel")


def test_a_written_entry_is_read(cache: Cache):
    assert cache.read(KEY) is None
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES
    assert cache.keys() == [KEY]
    assert cache.damaged() == []


def test_a_second_write_replaces_the_first(cache: Cache):
    cache.write(KEY, FILES)
    cache.write(KEY, {"kernel.ptx": b"other"})
    assert cache.read(KEY) == {"kernel.ptx": b"other"}


def test_a_writer_that_dies_leaves_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    def die(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    cache.write(key_of("first"), FILES)
    before = sorted(cache.directory.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            cache.write(KEY, FILES)
    assert cache.read(KEY) is None
    assert sorted(cache.directory.iterdir()) == before
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES


def test_readers_never_see_half_an_entry(cache: Cache):
    """Writers replace one entry over and over; a reader finds one of the versions, whole."""
    versions = [{"a": bytes([n]) * 2000, "b": bytes([n]) * 3000} for n in range(4)]
    cache.write(KEY, versions[0])

    def write(files: dict[str, bytes]) -> None:
        for _ in range(50):
            cache.write(KEY, files)

    writers = [threading.Thread(target=write, args=(files,)) for files in versions]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert cache.read(KEY) in versions
    assert cache.read(KEY) in versions
    assert cache.keys() == [KEY]


# Damage.


def every_way_to_damage() -> Iterator[bytes]:
    """An entry with each byte changed, and cut at every place."""
    whole = packed(KEY, {"a": b"12", "b": b"3"})
    for k in range(len(whole)):
        yield whole[:k]
        yield whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :]
    yield whole + b"4"
    yield b"[" * 100_000
    yield packed(key_of("another"), {"a": b"12"})


def test_an_entry_that_is_damaged_anywhere_is_a_miss(cache: Cache):
    cache.write(KEY, FILES)
    for data in every_way_to_damage():
        cache.entry(KEY).write_bytes(data)
        assert unpacked(KEY, data) is None
        assert cache.read(KEY) is None
        assert cache.damaged() == [KEY]
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    """Appended bytes after a whole entry."""
    other = path.parent.parent / "planted"
    other.write_bytes(packed(KEY, FILES))
    path.symlink_to(other)


def loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [pipe, link, loop], ids=lambda f: f.__name__)
def test_an_entry_other_than_a_plain_file_is_a_miss_and_is_replaced(
    make: Callable[[Path], None], cache: Cache
):
    cache.write(key_of("first"), FILES)
    make(cache.entry(KEY))
    assert cache.read(KEY) is None
    assert cache.damaged() == [KEY]
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES


def test_a_folder_in_an_entrys_place_is_a_warning(cache: Cache, caplog: pytest.LogCaptureFixture):
    cache.write(key_of("first"), FILES)
    cache.entry(KEY).mkdir()
    assert cache.read(KEY) is None
    cache.write(KEY, FILES)
    assert "cannot be used (Is a directory)" in caplog.text


# Ownership.


def test_entries_of_another_user_are_not_loaded(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    cache.write(KEY, FILES)
    monkeypatch.setattr(entries, "user", lambda: os.geteuid() + 1)
    assert cache.read(KEY) is None


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o777])
def test_entries_that_others_may_write_are_not_loaded(mode: int, cache: Cache):
    cache.write(KEY, FILES)
    cache.entry(KEY).chmod(mode)
    assert cache.read(KEY) is None


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_entries_are_readable_as_the_users_mask_says_and_writable_for_nobody_else(
    mask: int, cache: Cache
):
    before = os.umask(mask)
    try:
        cache.write(KEY, FILES)
    finally:
        os.umask(before)
    assert cache.entry(KEY).stat().st_mode & 0o777 == 0o644 & ~mask
    assert cache.read(KEY) == FILES


def test_users_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path))
    mine = folder.default_directory()
    monkeypatch.setattr(folder, "user", lambda: 7)
    assert folder.default_directory() != mine
    assert folder.default_directory().parent == mine.parent == tmp_path


# Foreign files.


def foreign(tmp_path: Path) -> dict[Path, str]:
    """Files of another owner, some with names like the cache's."""
    names = ("go/src/notes.txt", f"ab/{KEY}/manifest.json", f"{KEY}.entry", "CACHEDIR.TAG.txt")
    found = {tmp_path / name: f"of {name}" for name in names}
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return found


def test_clear_removes_all_entries_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    others = foreign(tmp_path)
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path))
    cache = Cache.default()
    assert cache.clear() == 0
    cache.write(KEY, FILES)
    cache.write(key_of("another"), FILES)
    (cache.directory / "notes.txt").write_text("keep")
    assert cache.clear() == 2
    assert cache.keys() == [] and cache.read(KEY) is None
    assert cache.clear() == 0
    assert {path: path.read_text() for path in others} == others
    assert (cache.directory / "notes.txt").read_text() == "keep"


def test_a_folder_that_holds_other_things_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    others = foreign(tmp_path)
    cache = Cache(tmp_path)
    cache.write(KEY, FILES)
    cache.write(key_of("another"), FILES)
    assert cache.keys() == [] and cache.clear() == 0 and cache.is_foreign
    cache.shrink()
    assert {path: path.read_text() for path in others} == others
    assert sorted(tmp_path.rglob("*.entry")) == [tmp_path / f"{KEY}.entry"]
    assert "is no cache of timetile, as it holds " in caplog.text
    assert len(caplog.records) == 1


def test_the_folder_is_marked_as_a_cache(cache: Cache):
    cache.write(KEY, FILES)
    tag = (cache.directory / TAG).read_bytes()
    assert tag == MARK and tag.startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")
    (cache.directory / TAG).unlink()
    assert cache.clear() == 0
    cache.write(key_of("another"), FILES)
    assert cache.clear() == 2


def test_a_folder_of_another_user_is_not_used(
    cache: Cache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    cache.directory.mkdir()
    me = os.geteuid()
    monkeypatch.setattr(folder, "user", lambda: me + 1)
    cache.write(KEY, FILES)
    assert list(cache.directory.iterdir()) == []
    assert f"belongs to user {me}, not to the running user {me + 1}" in caplog.text


# Failures.


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "No space left on device"),
        (errno.EROFS, "Read-only file system"),
        (errno.EACCES, "Permission denied"),
        (errno.EDQUOT, os.strerror(errno.EDQUOT)),
    ],
)
def test_a_folder_without_write_access_is_one_warning(
    number: int,
    said: str,
    cache: Cache,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(folder, "write_whole", refusing(number))
    monkeypatch.setattr(store, "write_whole", refusing(number))
    for name in ("a", "b", "c"):
        cache.write(key_of(name), FILES)
        assert cache.read(key_of(name)) is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"the cache folder {cache.directory} cannot be used ({said}); kernels are compiled anew, "
        "set TIMETILE_CACHE_DIR to a writable folder, or use no cache"
    )
    assert cache.why_unusable() == f"cannot be used ({said})"


def test_a_disk_that_is_full_keeps_no_draft(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    cache.write(KEY, FILES)
    before = sorted(cache.directory.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refusing(errno.ENOSPC))
        cache.write(key_of("another"), FILES)
    assert sorted(cache.directory.iterdir()) == before


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nothing/here"])
def test_a_failure_to_make_a_folder_is_one_warning(place: str, caplog: pytest.LogCaptureFixture):
    cache = Cache(Path(place))
    assert cache.read(KEY) is None
    cache.write(KEY, FILES)
    cache.write(KEY, FILES)
    assert len(caplog.records) == 1
    assert cache.why_unusable() is not None


def test_a_cache_that_works_is_known_to(cache: Cache):
    assert cache.why_unusable() is None
    assert cache.keys() == []


def test_a_folder_deleted_during_use_is_made_again(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    import shutil

    cache.write(KEY, FILES)
    write = store.write_whole

    def deleted_first(path: Path, data: bytes) -> None:
        monkeypatch.setattr(store, "write_whole", write)
        shutil.rmtree(cache.directory)
        write(path, data)

    monkeypatch.setattr(store, "write_whole", deleted_first)
    cache.write(key_of("another"), FILES)
    assert cache.keys() == [key_of("another")]


def test_clearing_while_others_write_breaks_nobody(cache: Cache, caplog: pytest.LogCaptureFixture):
    keys = [key_of(k) for k in range(20)]

    def write() -> None:
        for _ in range(10):
            for key in keys:
                cache.write(key, FILES)
                assert cache.read(key) in (FILES, None)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        cache.clear()
    assert caplog.records == []
