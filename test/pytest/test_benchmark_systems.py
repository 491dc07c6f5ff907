"""The rows of the table of systems: programs of the papers, chosen by name, kept between runs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.benchmark_scripts import scripts

with scripts("system_rows", "systems_programs", "systems", "system_compiling") as found:
    ROWS, PROGRAMS, SCRIPT, COMPILING = found
CASES = ROWS.system_cases()


def test_rows_have_names_of_their_own():
    keys = [case.key for case in CASES]
    assert len(set(keys)) == len(keys)
    named = {"ebisu", "an5d", "ssam", "dtb", "semi-stencil", "stencilgen"}
    assert {case.system for case in CASES} == named


def test_the_papers_programs_are_all_there():
    """EBISU's nine programs, AN5D's 21 in both types, SSAM's convolutions."""
    programs = {(case.system, case.program) for case in CASES}
    assert sum(system == "ebisu" for system, _ in programs) == 9
    an5d = [case for case in CASES if case.system == "an5d"]
    assert len({(case.program, case.dtype) for case in an5d}) == 42
    assert sum(case.fp_division == "fast" for case in an5d) == 5
    assert {name for system, name in programs if system == "ssam" and "conv" in name} == {
        f"conv{side}x{side}" for side in (3, 5, 7, 9, 13, 20)
    }


def test_a_figure_is_of_the_card_at_hand_where_known():
    case = next(c for c in CASES if c.key.startswith("an5d:star2d1r:f64"))
    assert case.paper(ROWS.H100) == (724, ROWS.H100)
    assert case.paper("another card") == (724, ROWS.H100)
    assert case.paper(ROWS.H200) == (751, ROWS.H200)


def test_beginnings_of_names_choose_rows():
    chosen = SCRIPT.chosen(CASES, "dtb,an5d:star2d1r", everything=False)
    stars = [case for case in CASES if case.system == "an5d" and case.program == "star2d1r"]
    tiles = [case for case in CASES if case.system == "dtb"]
    assert stars and tiles and sorted(map(id, chosen)) == sorted(map(id, stars + tiles))
    main = SCRIPT.chosen(CASES, None, everything=False)
    assert 0 < len(main) < len(SCRIPT.chosen(CASES, None, everything=True)) == len(CASES)


def test_rows_not_measured_anew_stay(tmp_path: Path):
    first, second = (SCRIPT.SystemRow.of(case) for case in CASES[:2])
    first.gcells_per_s = 5.0
    path = tmp_path / "systems.json"
    old = [SCRIPT.asdict(first), SCRIPT.asdict(second)]
    path.write_text(json.dumps({"rows": old}))
    again = SCRIPT.SystemRow.of(CASES[0])
    again.gcells_per_s = 7.0
    kept = SCRIPT.kept_rows(path, [again])
    assert [row["gcells_per_s"] for row in kept] == [7.0, 0.0]
    assert SCRIPT.kept_rows(None, [again]) == [SCRIPT.asdict(again)]
    last = SCRIPT.kept_rows(path, [SCRIPT.SystemRow.of(CASES[-1])])
    assert [row["program"] for row in last] == [CASES[n].program for n in (0, 1, -1)]


def test_a_trial_is_a_row_with_another_pipeline():
    tried = SCRIPT.trial("an5d:j2d5pt-divided:f32:16384x16384:an5d{warps=8}:fast")
    row = next(
        case for case in CASES if case.key == "an5d:j2d5pt-divided:f32:16384x16384:an5d:fast"
    )
    assert tried == replace(row, pipeline="an5d{warps=8}", technique="trial")
    with pytest.raises(ValueError, match="no row of the table begins as 'ssam:star2d1r"):
        SCRIPT.trial("ssam:star2d1r:f32:64x64:ssam{warps=8}")


def test_a_program_is_compiled_once_and_rows_come_when_compiled(tmp_path: Path):
    """Both rows have one default; kernels are in the cache under the key of a compilation."""
    row = replace(CASES[0], domain=(70, 600), default_depth=2)
    rows = [replace(row, pipeline=f"ebisu{{depth={depth}}}") for depth in (2, 3)]
    with ThreadPoolExecutor(1) as pool:
        compiled = COMPILING.Compilations(pool, rows, "h100-sxm+copy=2.9", tmp_path)
        assert len(compiled.begun) == 3
        assert sorted(case.key for case in compiled.as_done()) == [case.key for case in rows]
    made = [compiled.made(job) for case in rows for job in COMPILING.jobs_of(case)]
    assert [each.depth for each in made] == [2, 2, 3, 2] and not any(each.error for each in made)
    again = COMPILING.make(COMPILING.jobs_of(rows[0])[0], "h100-sxm+copy=2.9", tmp_path)
    assert replace(again, seconds=0.0) == replace(made[0], seconds=0.0)


def test_a_program_that_does_not_compile_has_an_error(tmp_path: Path):
    row = replace(CASES[0], pipeline="ssam{warps=0}")
    made = COMPILING.make(COMPILING.jobs_of(row)[0], "h100-sxm", tmp_path)
    assert made.error.startswith("CompileError: ssam: warps") and not made.depth


@pytest.mark.parametrize("name", ["j2d9pt-divided", "conv4x3", "j2d5pt-columns", "2d13pt"])
def test_a_program_is_the_papers_sum(name: str):
    """One step against the weighted sum of moved cells."""
    text = ROWS.text_of(name, "f64", (6, 11))
    compiled = timetile.compile(text, executor="numpy", fp_contract="off", cache=False)
    bounds = compiled.parameters[0].bounds
    assert bounds is not None
    halo = -next(iter(bounds.lb))
    before = np.random.default_rng(1).random((6 + 2 * halo, 11 + 2 * halo))
    after = before.copy()
    compiled(before.copy(), after, 1)
    if name.endswith("-divided"):
        stencil = PROGRAMS.STENCILS["j2d9pt"].scaled()
    else:
        stencil = PROGRAMS.stencil_of(name)
    expected = sum(
        weight * before[halo + y : halo + y + 6, halo + x : halo + x + 11]
        for (y, x), weight in stencil.terms
    )
    inside = after[halo:-halo, halo:-halo]
    np.testing.assert_allclose(inside, expected, rtol=1e-13)
