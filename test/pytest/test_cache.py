"""
The disk cache of programs: no second compilation, wrong entries rebuilt, and different keys for
different programs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.runtime.cache.folder import default_directory
from timetile.runtime.cache.keys import FOUND, key_of, sources_key
from timetile.runtime.cache.sources import find_sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels import options as kernel_options
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.of_program import ProgramKernels, raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load

TEXT = program_text(entry("heat-1d").make((37,)))


def kernels(cache: Cache, text: str = TEXT, options: Options | None = None) -> ProgramKernels:
    """The kernels of a program in a new process."""
    options = options or Options(depth=2)
    return ProgramKernels(raise_program(load(text), options), options, cache)


# Programs.


def test_a_cached_kernel_is_not_compiled_again(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    made = kernels(cache).kernel("run_d2")

    def refuse(self: ProgramKernels, name: str) -> Kernel:
        raise AssertionError(f"{name} is compiled again")

    monkeypatch.setattr(ProgramKernels, "make", refuse)
    assert kernels(cache).kernel("run_d2") == made
    with pytest.raises(AssertionError, match="run_step is compiled again"):
        kernels(cache).kernel("run_step")


def test_a_run_with_cached_kernels_verifies_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    made, again = kernels(cache).common, kernels(cache)
    assert made.facts and made.kernel("run_d2")

    def refuse(*_: object) -> None:
        raise AssertionError("verified again")

    monkeypatch.setattr(kernel_options, "apply_verified", refuse)
    assert again.common.kernel("run_d2") == made.kernel("run_d2")
    assert again.common.facts == made.facts


def test_nothing_is_cached_where_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path))
    compiled = timetile.compile(TEXT, executor="simt", depth=2, cache=False)
    compiled.kernels.kernel("run_d2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.covering
@pytest.mark.parametrize(
    "part", ["launch facts", "run_d2"], ids=["what plans need to know", "a kernel"]
)
@pytest.mark.parametrize(
    "facts",
    [b"", b"{}", b"[]", b"null", b"[[[1, 2, 3]]]", b'{"name": 1}', b"[" * 100_000, b"\xff"],
    ids=["empty", "no-fields", "no-rows", "null", "numbers", "wrong", "nested", "binary"],
)
def test_an_entry_that_is_whole_and_wrong_is_rebuilt(part: str, facts: bytes, cache: Cache):
    first = kernels(cache)
    made, known = first.kernel("run_d2"), first.facts
    key = key_of(first.key, part)
    for parts in ({"facts.json": facts, "kernel.ptx": b"ret;"}, {"other": facts}):
        cache.write(key, parts)
        assert kernels(cache).kernel("run_d2") == made
        assert kernels(cache).facts == known
        assert cache.read(key) != parts


def test_an_entry_of_another_kernel_is_rebuilt(cache: Cache):
    first = kernels(cache)
    made = first.kernel("run_d2")
    other = cache.read(key_of(first.key, first.kernel("run_step").name))
    assert other is not None
    cache.write(key_of(first.key, "run_d2"), other)
    assert kernels(cache).kernel("run_d2") == made


def test_a_kernels_numbers_are_numbers(cache: Cache):
    first = kernels(cache)
    made, key = first.kernel("run_d2"), key_of(first.key, "run_d2")
    parts = cache.read(key)
    assert parts is not None
    facts = json.loads(parts["facts.json"])
    wrong: list[dict[str, object]] = [
        facts | {"grid": "7"},
        facts | {"block": True},
        facts | {"surprise": 1},
        {**facts, "grid": None},
    ]
    for each in wrong:
        cache.write(key, {**parts, "facts.json": json.dumps(each).encode()})
        assert kernels(cache).kernel("run_d2") == made


def test_the_environment_says_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The cache lies in a separate folder below the named folder."""
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert default_directory().parent == tmp_path / "elsewhere"
    compiled = timetile.compile(TEXT, executor="simt", depth=2)
    compiled.kernels.kernel("run_d2")
    assert len(Cache.default().keys()) >= 1
    assert Cache.default().directory == default_directory()
    monkeypatch.delenv("TIMETILE_CACHE_DIR")
    assert default_directory().parent.name == "timetile"


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TIMETILE_CACHE_DIR", raising=False)

    def without_home(name: str) -> str:
        return f"~/.cache/{name}"

    monkeypatch.setattr("platformdirs.user_cache_dir", without_home)
    assert default_directory().is_absolute()


def package(folder: Path) -> Path:
    """A small package with a folder behind a link."""
    (folder / "package").mkdir(parents=True)
    (folder / "passes").mkdir()
    (folder / "package" / "passes").symlink_to(folder / "passes")
    (folder / "package" / "__init__.py").write_text("")
    (folder / "passes" / "cost.py").write_text("weight = 1.4")
    return folder / "package"


@pytest.fixture
def key_of_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], str]]:
    """The key of a package's sources."""

    def key(folder: Path) -> str:
        monkeypatch.setattr(timetile, "__file__", str(folder / "__init__.py"))
        FOUND.clear()
        return sources_key()

    yield key
    FOUND.clear()


def test_sources_without_a_change_are_not_read_again(
    tmp_path: Path,
    key_of_package: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
):
    """A key kept in a cache is found by sizes and times of change; of young files none is kept."""
    here, kept = package(tmp_path), Cache(tmp_path / "kept")
    first = key_of_package(here)

    def found(least_age: int) -> list[str]:
        monkeypatch.setattr("timetile.runtime.cache.sources.LEAST_AGE_NS", least_age)
        FOUND.clear()
        find_sources_key(kept)
        return [*FOUND]

    assert found(1 << 60) == [] and found(0) == [first]
    with monkeypatch.context() as without_reading:
        without_reading.setattr("timetile.runtime.cache.keys.digest_of_source", None)
        assert found(0) == [first]
    (tmp_path / "passes" / "cost.py").write_text("weight = 1.5")
    assert found(0) == [key_of_package(here)] != [first]


def test_another_state_of_the_sources_has_another_key(
    tmp_path: Path, key_of_package: Callable[[Path], str]
):
    """
    A changed file of the compiler with unchanged size and time, a new file, and a renamed file.
    """
    here = package(tmp_path)
    cost = tmp_path / "passes" / "cost.py"
    keys = [key_of_package(here)]
    times = cost.stat().st_atime_ns, cost.stat().st_mtime_ns
    cost.write_text("weight = 1.5")
    os.utime(cost, ns=times)
    keys.append(key_of_package(here))
    (tmp_path / "passes" / "more.py").write_text("")
    keys.append(key_of_package(here))
    cost.rename(tmp_path / "passes" / "price.py")
    keys.append(key_of_package(here))
    assert len(set(keys)) == len(keys)
    (tmp_path / "passes" / "notes.txt").write_text("not compiled")
    assert key_of_package(here) == keys[-1]


def test_the_same_sources_elsewhere_and_later_have_the_same_key(
    tmp_path: Path, key_of_package: Callable[[Path], str]
):
    """Machines with a shared cache share entries."""
    here, there = package(tmp_path / "a"), package(tmp_path / "b")
    os.utime(tmp_path / "b" / "passes" / "cost.py", (1, 1))
    assert key_of_package(here) == key_of_package(there)


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
                Options(depth=2, fp_division="fast"),
                Options(depth=2, function="run"),
                Options(depth=2, bound_waits=True),
                Options(depth=2, multiprocessors=8),
                Options(depth=2, arch="sm_80", passes=(TemporalFusionPass((2,)),)),
                Options(depth=2, bound_waits=True, passes=(TemporalFusionPass((2,)),)),
                Options(depth=2, passes=(TemporalFusionPass((2,)),)),
                Options(depth=2, passes=(TemporalFusionPass((3,)),)),
            )
        ),
    ]
    monkeypatch.setattr(timetile, "__version__", "another")
    keys.append(kernels(cache).key)
    monkeypatch.setattr("timetile.runtime.kernels.of_program.sources_key", lambda: "another")
    keys.append(kernels(cache).key)
    monkeypatch.setattr("timetile.runtime.kernels.of_program.assembler_key", lambda: "another")
    keys.append(kernels(cache).key)
    assert len(set(keys)) == len(keys)


@timetile.stencil
def decay(u: timetile.Field):
    u.next = np.exp(-u[0])


def test_only_programs_that_call_functions_depend_on_nvrtc(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
):
    calling = str(decay.module((37,), "float32"))
    nvrtc = "timetile.runtime.kernels.of_program.nvrtc_version"
    changed: list[bool] = []
    foreign = Options(depth=2, passes=(TemporalFusionPass((2,)),))
    for text, options in ((TEXT, None), (calling, None), (TEXT, foreign)):
        keys: list[str] = []
        for version in ("13.0", "13.1"):
            monkeypatch.setattr(nvrtc, lambda version=version: version)
            keys.append(kernels(cache, text, options).key)
        changed.append(keys[0] != keys[1])
    assert changed == [False, True, True]
