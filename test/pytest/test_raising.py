"""Raised programs are stored with the places of their operations, and found by their text."""

from __future__ import annotations

import pickle
from dataclasses import replace
from enum import Enum
from pathlib import Path, PurePosixPath

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition

from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import CompileError, Remark, collected_remarks, where
from timetile.runtime.cache.keys import sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels import raising
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.packed import packed_module, unpacked_module

HEAT = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()


@pytest.fixture(autouse=True)
def known_compiler():
    """A cache keeps the key of the compiler's files, too, where a process does not know it yet."""
    sources_key()


def never(*_: object) -> None:
    raise AssertionError("the program was parsed again")


def test_a_text_is_raised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = Cache(tmp_path / "cache")
    first = raising.raised(HEAT, Options(), cache)
    monkeypatch.setattr(raising, "load_text", never)
    again = raising.raised(HEAT, Options(), cache)
    assert str(again) == str(first)
    places = [[op.location for op in module.walk()] for module in (first, again)]
    assert places[0] == places[1]
    (loop,) = [op for op in again.walk() if isinstance(op, LoopOp)]
    assert isinstance(loop.location, FileLineColLoc)
    with pytest.raises(AssertionError, match="parsed again"):
        raising.raised(HEAT, Options(fp_contract="off"), cache)
    with pytest.raises(AssertionError, match="parsed again"):
        raising.raised(HEAT + " ", Options(), cache)


def test_a_damaged_entry_is_raised_again(tmp_path: Path):
    cache = Cache(tmp_path / "cache")
    first = raising.raised(HEAT, Options(), cache)
    (entry,) = cache.keys()
    cache.entry(entry).write_text("builtin.module {}")
    assert str(raising.raised(HEAT, Options(), cache)) == str(first)
    assert cache.damaged() == []


OTHER = pickle.dumps(PurePosixPath("a"), protocol=5)
"""An object of another package."""


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xff",
        OTHER,
        pickle.dumps(7),
        pickle.dumps((ModuleOp, [3], [], {}, {}, [], None)),
        pickle.dumps((ModuleOp, [], [], {}, {}, [7], None)),
        pickle.dumps((ReturnOp, [], [], {}, {}, [], None)),
        b"(" * 100_000,
    ],
)
def test_an_entry_that_is_whole_and_wrong_is_raised_again(packed: bytes, tmp_path: Path):
    cache = Cache(tmp_path / "cache")
    first = raising.raised(HEAT, Options(), cache)
    (entry,) = cache.keys()
    for parts in ({raising.MODULE: packed, raising.REMARKS: b"[]"}, {raising.MODULE: packed}):
        cache.write(entry, parts)
        assert str(raising.raised(HEAT, Options(), cache)) == str(first)


STORE = b"timetile.runtime.cache.store"
"""A module of ours that imports another."""


@irdl_op_definition
class ForeignOp(IRDLOperation):
    """An operation of another package."""

    name = "elsewhere.nothing"


def by_getattr(member: Enum, _: int) -> tuple[object, ...]:
    """How Python 3.11.0 to 3.11.3 pickles a member of an enumeration."""
    return getattr, (type(member), member.name)


def test_members_of_enumerations_name_no_other_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Enum, "__reduce_ex__", by_getattr)
    module = raising.raised(HEAT, Options(), None)
    packed = packed_module(module, "<program>")
    assert packed is not None
    assert str(unpacked_module(packed, "<program>")) == str(module)


def test_a_module_of_other_packages_has_no_bytes():
    assert packed_module(ModuleOp([ForeignOp()]), "<program>") is None
    with pytest.raises(ValueError, match=r"os\.system is no class of"):
        unpacked_module(b"\x80\x04\x8c\x1c%s\x8c\x09os.system\x93." % STORE, "<program>")


def test_a_file_is_known_by_its_text_and_named_by_the_present_path(tmp_path: Path):
    """
    Machines and folders share raised programs, and messages about a program name the given file.
    """
    cache = Cache(tmp_path / "cache")
    for name in ("first.mlir", "second.mlir"):
        path = tmp_path / name
        path.write_text(HEAT)
        module = raising.raised(path, Options(), cache)
        (loop,) = [op for op in module.walk() if isinstance(op, LoopOp)]
        assert where(loop) == f"temporal.loop in @heat2d ({path}:{line_of_loop()})"
        assert len(cache.keys()) == 1
    again = raising.raised(HEAT, Options(), cache)
    assert {file_of(op) for op in again.walk()} <= {"<program>", None}
    assert len(cache.keys()) == 1


def test_places_named_in_the_text_are_kept(tmp_path: Path):
    cache = Cache(tmp_path / "cache")
    text = "\n".join(
        line + ' loc("frontend.py":7:3)' if "stencil.store" in line else line
        for line in HEAT.splitlines()
    )
    first, again = (raising.raised(text, Options(), cache) for _ in range(2))
    places = [[op.location for op in module.walk()] for module in (first, again)]
    assert places[0] == places[1]
    assert len(cache.keys()) == 1


def line_of_loop() -> int:
    """The line of the time loop in the program's text."""
    lines = HEAT.splitlines()
    return next(k for k, line in enumerate(lines, 1) if "scf.for" in line)


def file_of(op: Operation) -> str | None:
    """The stated file of an operation."""
    return op.location.filename.data if isinstance(op.location, FileLineColLoc) else None


def test_a_refusal_is_not_remembered(tmp_path: Path):
    cache = Cache(tmp_path / "cache")
    with pytest.raises(CompileError):
        raising.raised("func.func @nothing() { func.return }", Options(), cache)
    assert cache.keys() == []


def test_remarks_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = Cache(tmp_path / "cache")
    text = (Path(__file__).parents[1] / "programs" / "carried_number.mlir").read_text()
    made: list[list[Remark]] = []
    for name in ("first.mlir", "second.mlir"):
        path = tmp_path / name
        path.write_text(text)
        with collected_remarks() as remarks:
            raising.raised(path, Options(), cache)
        monkeypatch.setattr(raising, "load_text", never)
        assert {remark.place.file for remark in remarks} == {str(path)}
        made.append([replace(each, place=replace(each.place, file=None)) for each in remarks])
    assert made[0] and made[0] == made[1]
