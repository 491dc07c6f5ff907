"""The disk cache holds no more bytes than the limit: least recently used entries make room."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from timetile.runtime.cache import store
from timetile.runtime.cache.keys import key_of
from timetile.runtime.cache.store import Cache

pytestmark = pytest.mark.usefixtures("new_process")

FILES = {"kernel.ptx": b"ld.global"}
KEY = key_of("a", "kernel")


def bytes_of(cache: Cache) -> int:
    return sum(path.stat().st_size for path in cache.directory.glob("*.entry"))


def test_entries_have_no_more_bytes_than_they_may(tmp_path: Path):
    cache = Cache(tmp_path / "cache", 64 * 1024)
    for k in range(100):
        cache.write(key_of(k), {"data": bytes(5000)})
        # A process counts the bytes after writing each 64th of the limit.
        assert bytes_of(cache) <= cache.limit + 5200
    assert bytes_of(cache) > cache.limit // 2
    assert cache.read(key_of(99)) is not None


def test_the_least_recently_used_entries_make_room(tmp_path: Path):
    cache = Cache(tmp_path / "cache", 10 * 1200)
    for k in range(9):
        cache.write(key_of(k), {"data": bytes(1000)})
        used = time.time() - 10_000 + k
        os.utime(cache.entry(key_of(k)), (used, used))
    # The oldest is used again.
    assert cache.read(key_of(0)) is not None
    for k in range(9, 13):
        cache.write(key_of(k), {"data": bytes(1000)})
    assert cache.read(key_of(0)) is not None
    assert cache.read(key_of(1)) is None
    assert cache.read(key_of(12)) is not None


def test_an_entry_above_the_limit_is_not_kept(tmp_path: Path):
    cache = Cache(tmp_path / "cache", 1000)
    cache.write(KEY, {"data": bytes(1000)})
    assert not cache.directory.exists()


def test_drafts_of_writers_that_died_are_removed(cache: Cache):
    cache.write(KEY, FILES)
    dead, alive = (cache.directory / f".draft-{k:016x}" for k in (1, 2))
    dead.write_bytes(b"half")
    alive.write_bytes(b"half")
    os.utime(dead, (1, 1))
    cache.shrink()
    assert not dead.exists() and alive.exists()
    assert cache.keys() == [KEY]


@pytest.mark.parametrize(
    ("text", "limit"),
    [("", 1 << 30), ("5", 5), ("3k", 3 << 10), ("500M", 500 << 20), ("2G", 2 << 30), ("0", 0)],
)
def test_the_environment_says_how_large_the_cache_is(
    text: str, limit: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TIMETILE_CACHE_SIZE", text)
    assert store.default_limit() == limit


def test_a_cache_size_other_than_a_number_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("TIMETILE_CACHE_SIZE", "much")
    assert store.default_limit() == store.default_limit() == 1 << 30
    (record,) = caplog.records
    assert record.getMessage() == (
        "TIMETILE_CACHE_SIZE is 'much', which is no size, and the cache keeps 1G; write a number "
        "of bytes, or a number with K, M or G"
    )
