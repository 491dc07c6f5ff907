"""The disk cache: entries appear whole or not at all, damaged ones are rebuilt, and keys tell apart."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.passes.temporal_fusion import TemporalFusionPass
from timetile.runtime.cache import MANIFEST, Cache, default_directory, key_of, sources_key
from timetile.runtime.kernels import Kernel, Options, ProgramKernels, raise_program
from timetile.runtime.loading import load

TEXT = program_text(entry("heat-1d").make((37,)))
FILES = {"kernel.ptx": b"ld.global", "kernel.cubin": bytes(range(256))}
KEY = key_of("a", "kernel")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def kernels(cache: Cache, text: str = TEXT, options: Options | None = None) -> ProgramKernels:
    """The kernels of a program, as a process that has just started sees them."""
    options = options or Options(depth=2)
    return ProgramKernels(raise_program(load(text), options), options, cache)


# Entries.


def test_what_was_written_is_read(cache: Cache):
    assert cache.read(KEY) is None
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES
    assert cache.keys() == [KEY]
    assert cache.damaged() == []


def test_a_second_write_replaces_the_first(cache: Cache):
    cache.write(KEY, FILES)
    cache.write(KEY, {"kernel.ptx": b"other"})
    assert cache.read(KEY) == {"kernel.ptx": b"other"}


def test_clear_removes_everything(cache: Cache):
    cache.write(KEY, FILES)
    cache.write(key_of("another"), FILES)
    assert cache.clear() == 2
    assert cache.keys() == [] and cache.read(KEY) is None
    assert cache.clear() == 0


def test_a_writer_that_dies_leaves_no_entry(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    def die(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            cache.write(KEY, FILES)
    assert cache.read(KEY) is None
    assert cache.keys() == []
    cache.write(KEY, FILES)
    assert cache.read(KEY) == FILES


def test_readers_never_see_half_an_entry(cache: Cache):
    """Writers replace one entry over and over; a reader finds one of the versions, whole, or nothing."""
    versions = [{"a": bytes([n]) * 2000, "b": bytes([n]) * 3000} for n in range(4)]
    cache.write(KEY, versions[0])

    def write(files: dict[str, bytes]) -> None:
        for _ in range(50):
            cache.write(KEY, files)

    writers = [threading.Thread(target=write, args=(files,)) for files in versions]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = cache.read(KEY)
        assert found is None or found in versions
    assert cache.read(KEY) in versions
    assert cache.keys() == [KEY]


def flip(folder: Path) -> None:
    data = bytearray((folder / "kernel.cubin").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "kernel.cubin").write_bytes(data)


def shorten(folder: Path) -> None:
    data = (folder / "kernel.ptx").read_bytes()
    (folder / "kernel.ptx").write_bytes(data[:-1])


def remove(folder: Path) -> None:
    (folder / "kernel.ptx").unlink()


def cut_manifest(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text[: len(text) // 2])


def empty_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("{}")


def other_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text(json.dumps(["kernel.ptx"]))


def no_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


DAMAGES = [flip, shorten, remove, cut_manifest, empty_manifest, other_manifest, no_manifest]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_a_damaged_entry_is_rebuilt(damage: object, cache: Cache):
    assert callable(damage)
    made = kernels(cache).kernel("run_d2")
    (key,) = [path.parent.name for path in cache.directory.glob("??/*/kernel.cubin")]
    damage(cache.entry(key))
    assert cache.read(key) is None
    assert cache.damaged() == [key]
    assert kernels(cache).kernel("run_d2") == made
    assert cache.damaged() == []


# Programs.


def test_a_cached_kernel_is_not_compiled_again(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    made = kernels(cache).kernel("run_d2")

    def refuse(self: ProgramKernels, name: str) -> Kernel:
        raise AssertionError(f"{name} is compiled again")

    monkeypatch.setattr(ProgramKernels, "make", refuse)
    assert kernels(cache).kernel("run_d2") == made
    with pytest.raises(AssertionError, match="run_step is compiled again"):
        kernels(cache).kernel("run_step")


def test_nothing_is_cached_where_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path))
    compiled = timetile.compile(TEXT, executor="simt", depth=2, cache=False)
    compiled.kernels.kernel("run_d2")
    assert list(tmp_path.iterdir()) == []


def test_the_environment_says_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert default_directory() == tmp_path / "elsewhere"
    compiled = timetile.compile(TEXT, executor="simt", depth=2)
    compiled.kernels.kernel("run_d2")
    assert len(Cache.default().keys()) >= 1
    assert Cache.default().directory == tmp_path / "elsewhere"
    monkeypatch.delenv("TIMETILE_CACHE_DIR")
    assert default_directory().name == "timetile"


def test_another_state_of_the_sources_has_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A file of the compiler that changes, and one that is new, also behind a link."""
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "passes").mkdir()
    (package / "passes").symlink_to(tmp_path / "passes")
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(timetile, "__file__", str(package / "__init__.py"))

    def key() -> str:
        sources_key.cache_clear()
        return sources_key()

    try:
        keys = [key()]
        (tmp_path / "passes" / "cost.py").write_text("weight = 1.4")
        keys.append(key())
        (tmp_path / "passes" / "cost.py").write_text("weight = 1.15")
        keys.append(key())
        (tmp_path / "passes" / "notes.txt").write_text("not compiled")
        assert key() == keys[-1]
        assert len(set(keys)) == len(keys)
    finally:
        sources_key.cache_clear()


def test_keys_differ_by_everything_that_a_kernel_depends_on(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
):
    base = kernels(cache).key
    assert kernels(cache).key == base
    other_text = program_text(entry("heat-1d").make((38,)))
    keys = [
        base,
        kernels(cache, text=other_text).key,
        *(
            kernels(cache, options=options).key
            for options in (
                Options(depth=3),
                Options(depth=2, arch="sm_80"),
                Options(depth=2, fp_contract="off"),
                Options(depth=2, fp_contract="on"),
                Options(depth=2, function="run"),
                Options(depth=2, passes=(TemporalFusionPass((2,)),)),
                Options(depth=2, passes=(TemporalFusionPass((3,)),)),
            )
        ),
    ]
    monkeypatch.setattr(timetile, "__version__", "another")
    keys.append(kernels(cache).key)
    monkeypatch.setattr("timetile.runtime.kernels.sources_key", lambda: "another")
    keys.append(kernels(cache).key)
    monkeypatch.setattr("timetile.runtime.kernels.assembler_version", lambda: "another")
    keys.append(kernels(cache).key)
    assert len(set(keys)) == len(keys)
