"""
The sign of zero outlives the assembler. NVIDIA's folds `selp.f32` of 1.0 and -0.0, and tests of a
negated choice's bits, as if -0.0 were 0.0; so a choice of two literals of FP32 is one of words.
Judged by the PTX, and by the numbers of the PTX executor.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from timetile.runtime.kernels.assembler import assemble, assembler_version

pytestmark = pytest.mark.usefixtures("chosen_among_few")

CELLS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "choice of 1 and -0": (
        lambda u, w: timetile.where(u[0] > 0.5, 1.0, -0.0),
        lambda u, w: np.where(u > 0.5, 1.0, -0.0),
    ),
    "choice of -0 and -1": (
        lambda u, w: timetile.where(u[0] > 0.5, -0.0, -1.0),
        lambda u, w: np.where(u > 0.5, -0.0, -1.0),
    ),
    "quotient of a negated choice": (
        lambda u, w: -timetile.where(u[0] > 0.5, 1.0, 0.0) / w[0],
        lambda u, w: -np.where(u > 0.5, 1.0, 0.0) / w,
    ),
    "root of a negated choice": (
        lambda u, w: np.sqrt(-timetile.where(u[0] > 2.0, 1.0, 0.0)),
        lambda u, w: np.sqrt(-np.where(u > 2.0, 1.0, 0.0)),
    ),
    "a condition times -1": (
        lambda u, w: -1.0 * timetile.where(u[0] > 0.5, 1.0, 0.0),
        lambda u, w: -1.0 * np.where(u > 0.5, 1.0, 0.0),
    ),
}


def model_of_cell(of_cell: Callable[[Any, Any], Any]) -> timetile.Model:
    """A step with a cell function."""

    @timetile.stencil
    def stepped(u: timetile.Field, w: timetile.Field) -> None:
        u.next = of_cell(u, w)
        w.next = w[0]

    return stepped


TWO_LITERALS = re.compile(r"selp\.f32 %f\d+, 0f[0-9A-F]{8}, 0f[0-9A-F]{8}")


@pytest.mark.parametrize("name", CELLS)
def test_the_sign_of_zero_is_numpys(name: str):
    of_cell, of_array = CELLS[name]

    u = np.array([0.0, 1.0, 0.2, 0.9] * 16, np.float32)
    w = np.full(64, 1.5, np.float32)
    model = model_of_cell(of_cell).on(executor="ptx", arch="sm_90")
    run = model.advance({"u": u, "w": w})["u"]
    wanted = of_array(u, w).astype(np.float32)
    np.testing.assert_array_equal(run.view(np.uint32), wanted.view(np.uint32))
    kernels = model.program((64,), "float32").kernels
    for fact in (fact for loop in kernels.facts for fact in loop):
        assert not TWO_LITERALS.search(kernels.kernel(fact.name).ptx)


# Conversions of a number that the assembler knows to be 1 or 0.

CONVERSIONS = {
    "arith.select, 32 bits": "%i = arith.select %c, %one, %none : i32",
    "a sum of a condition and 0": (
        "%j = arith.extui %c : i1 to i32\n      %i = arith.addi %j, %none : i32"
    ),
}


def negated_conversion(conversion: str, kind: str) -> str:
    """A quotient, and a root, of a negated conversion of 1 or 0."""
    field = f"!stencil.field<[0,64]x{kind}>"
    temp = f"!stencil.temp<?x{kind}>"
    return f"""
func.func @signs(%u: {field}, %q: {field}, %s: {field}) {{
  %x = stencil.load %u : {field} -> {temp}
  %r, %t = stencil.apply(%a = %x : {temp}) -> ({temp}, {temp}) {{
    %v = stencil.access %a[0] : {temp}
    %half = arith.constant 0.5 : {kind}
    %three = arith.constant 3.0 : {kind}
    %one = arith.constant 1 : i32
    %none = arith.constant 0 : i32
    %c = arith.cmpf ogt, %v, %half : {kind}
    {CONVERSIONS[conversion]}
    %f = arith.uitofp %i : i32 to {kind}
    %g = arith.negf %f : {kind}
    %d = arith.divf %g, %three : {kind}
    %w = math.sqrt %g : {kind}
    stencil.return %d, %w : {kind}, {kind}
  }}
  stencil.store %r to %q(<[0], [64]>) : {temp} to {field}
  stencil.store %t to %s(<[0], [64]>) : {temp} to {field}
  return
}}
"""


@pytest.mark.parametrize("dtype, kind", [("float32", "f32"), ("float64", "f64")])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_negated_conversion_keeps_the_sign_of_zero(conversion: str, kind: str, dtype: str):
    compiled = timetile.compile(
        negated_conversion(conversion, kind), executor="ptx", arch="sm_90", cache=False
    )
    u = np.array([0.0, 1.0, 0.2, 0.9] * 16, dtype)
    quotient, root = np.ones_like(u), np.ones_like(u)
    compiled(u, quotient, root)
    negated = -(u > 0.5).astype(dtype)
    with np.errstate(invalid="ignore"):
        wanted = negated / np.dtype(dtype).type(3.0), np.sqrt(negated)
    for found, right in zip((quotient, root), wanted):
        np.testing.assert_array_equal(found, right)
        is_number = ~np.isnan(right)
        assert np.array_equal(np.signbit(found[is_number]), np.signbit(right[is_number]))
    for fact in (fact for loop in compiled.kernels.facts for fact in loop):
        ptx = compiled.kernels.kernel(fact.name).ptx
        converted = set(re.findall(r"cvt\.rn\.f\d+\.\w+ (%\w+),", ptx))
        assert converted and converted.isdisjoint(re.findall(r"neg\.f\d+ %\w+, (%\w+);", ptx))


# The assembled code.


def nvidia_folders() -> Iterator[Path]:
    """The folders of NVIDIA's packages."""
    found = find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        yield Path(folder)


NVDISASM = next(
    (place for folder in nvidia_folders() for place in folder.glob("*/bin/nvdisasm")), None
)

FOLDED = re.compile(r"\bFSET\.BF|\bDSET\.BF")
"""1.0 where a comparison holds, and else +0.0 even if the PTX says -0.0."""


ENTRY = re.compile(r"\.visible \.entry (\w+)")


def in_one_text(kernels: Sequence[str]) -> str:
    """Kernels as entries of one text, by number: a start of nvdisasm takes a third of a second."""
    head = kernels[0].partition(".visible")[0]
    entries: list[str] = []
    for number, text in enumerate(kernels):
        found = ENTRY.search(text)
        assert found is not None
        entries.append(text[found.start() :].replace(found[1], f"kernel{number}"))
    return head + "\n".join(entries)


def shown_by_nvdisasm(code: bytes, file: Path) -> str:
    """Machine code as text, by way of a file."""
    file.write_bytes(code)
    command = [str(NVDISASM), "-c", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(NVDISASM is None, reason="nvdisasm is not installed")
@pytest.mark.skipif(assembler_version() is None, reason="nvJitLink is not installed")
def test_no_choice_of_minus_zero_is_folded_in_machine_code(tmp_path: Path):
    """PTX of the older architecture is assembled for both architectures."""
    texts = [negated_conversion(name, kind) for name in CONVERSIONS for kind in ("f32", "f64")]
    programs = [timetile.compile(text, executor="planes", arch="sm_80", depth=1) for text in texts]
    for of_cell, _ in CELLS.values():
        model = model_of_cell(of_cell).on(executor="planes", arch="sm_80", depth=1)
        programs.append(model.program((64,), "float32"))
    kernels = [
        compiled.kernels.kernel(fact.name).ptx
        for compiled in programs
        for loop in compiled.kernels.facts
        for fact in loop
    ]
    assert len(kernels) == len(programs)
    for arch in ("sm_80", "sm_90"):
        code = assemble(in_one_text(kernels), arch).cubin
        whole = shown_by_nvdisasm(code, tmp_path / "kernels.cubin")
        assert not FOLDED.search(whole)
        sections = re.split(r"\.section\s+\.text\.kernel(\d+),", whole)
        shown = {int(number): text for number, text in zip(sections[1::2], sections[2::2])}
        assert sorted(shown) == list(range(len(kernels)))
        for number, text in shown.items():
            assert "EXIT" in text
            if number < len(texts):
                assert "0x80000000" in text, "the sign bit is turned by a constant"
