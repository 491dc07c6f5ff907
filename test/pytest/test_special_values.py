"""
Zeros of both signs, subnormal numbers, infinities, NaN and the ends of types, as a GPU computes
them: every executor has the bits of a record made on a GPU (`test/special_values.py`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.sizes import is_nightly
from support.special_record import SpecialRecord, load_record, save_record
from support.special_values import SpecialProgram, special_programs
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor

PROGRAMS = special_programs()

STRIDE = 1 if is_nightly() else 14
"""Every so many programs run; the first is all operations of two numbers of FP32."""


@cache
def record() -> SpecialRecord:
    return load_record()


def check_results(program: SpecialProgram, executor: Executor, kept: SpecialRecord) -> None:
    """A program's results on an executor are those of a record."""
    found, recorded = program.run(executor), kept.results_of(program)
    assert list(found) == list(recorded)
    for name, bits in recorded.items():
        cells = np.flatnonzero(found[name] != bits)
        assert not cells.size, (
            f"{name} of {[axis[cells[0]] for axis in program.read]}: {executor} makes "
            f"{found[name][cells[0]]:#x}, a GPU {bits[cells[0]]:#x}"
        )


@pytest.mark.parametrize("program", PROGRAMS[::STRIDE], ids=lambda program: program.name)
def test_printed_ptx_makes_of_special_values_what_a_gpu_made(program: SpecialProgram):
    check_results(program, "ptx", record())


@pytest.mark.parametrize("program", PROGRAMS[STRIDE // 2 :: STRIDE], ids=lambda p: p.name)
def test_numpy_makes_of_special_values_what_a_gpu_made(program: SpecialProgram):
    check_results(program, "numpy", record())


@pytest.mark.skipif(not gpu_is_available(), reason="no GPU answers")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_gpu_makes_of_special_values_what_a_gpu_made(program: SpecialProgram):
    check_results(program, "gpu", record())


def test_the_record_has_every_program_and_the_machine():
    for program in PROGRAMS:
        assert list(record().results_of(program)) == list(program.results)
    assert record().facts.keys() == {"device", "driver", "assembler", "numpy"}


def test_a_record_of_other_operands_is_no_judge(tmp_path: Path):
    program = next(p for p in PROGRAMS if p.name == "fields-i1-0")
    results = record().results_of(program)
    save_record(tmp_path / "record.npz", {program.name: (program, results)}, {})
    kept = load_record(tmp_path / "record.npz")
    assert kept.results_of(program).keys() == results.keys()
    changed = SpecialProgram(
        program.name, program.text, program.results, (1 - program.read[0],), program.types
    )
    with pytest.raises(ValueError, match="recorded with other operands: record again"):
        kept.results_of(changed)
    wanted = results[program.results[0]].copy()
    wanted[0] ^= 1
    save_record(
        tmp_path / "wrong.npz",
        {program.name: (program, results | {program.results[0]: wanted})},
        {},
    )
    with pytest.raises(AssertionError, match="numpy makes"):
        check_results(program, "numpy", load_record(tmp_path / "wrong.npz"))
