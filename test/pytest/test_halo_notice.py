"""Rotating buffers with different halos cause one warning, if steps read the halos."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import HEAT, run
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.program.compiled_program import Executor

SHAPE = (16, 21)
SAID = (
    "temporal.loop in @heat (<program>:7): %u and %v take turns, and differ outside [0, 14) x [0, "
    "19), where successive steps read different buffers; fill the halo of each, or confirm the "
    "difference with --halos apart (halos='apart' in Python)"
)

EXECUTORS: tuple[Executor, ...] = ("cpu", "numpy", "planes", "simt")


def fields() -> list[Any]:
    """A filled buffer, and an allocated buffer."""
    return [np.random.default_rng(1).random(SHAPE), np.zeros(SHAPE)]


def program(executor: Executor, text: str = HEAT, **options: Any) -> timetile.CompiledProgram:
    depth = None if executor in ("cpu", "numpy") else 2
    return timetile.compile(text, executor=executor, depth=depth, cache=False, **options)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_halos_that_differ_are_a_warning_once(executor: Executor, caplog: pytest.LogCaptureFixture):
    compiled = program(executor)
    for _ in range(3):
        compiled(*fields(), 0.1, 4)
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [SAID]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_nothing_is_said_where_all_is_well(executor: Executor, caplog: pytest.LogCaptureFixture):
    """Equal halos, a single step, and halos meant to differ."""
    filled = fields()[0]
    program(executor)(filled, filled.copy(), 0.1, 4)
    program(executor)(*fields(), 0.1, 1)
    program(executor, halos="apart")(*fields(), 0.1, 4)
    assert SAID not in caplog.messages


@pytest.mark.parametrize("executor", EXECUTORS)
def test_halos_that_nobody_reads_may_differ(executor: Executor, caplog: pytest.LogCaptureFixture):
    text = (
        HEAT.replace("[-1, 0]", "[0, 0]").replace("[0, -1]", "[0, 0]").replace("[0, 1]", "[0, 0]")
    )
    program(executor, text)(*fields(), 0.1, 4)
    assert not any("take turns, and differ" in message for message in caplog.messages)


def test_the_command_line_gives_the_halo_notice_for_arrays_of_files(
    heat: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]
):
    u, v = fields()
    np.savez(tmp_path / "in.npz", u=u, v=v)
    line = f"run {heat} --executor planes --depth 2 --set k=0.1 --steps 4"
    assert run(f"{line} --args {tmp_path / 'in.npz'}") == 0
    assert "%u and %v take turns, and differ outside" in capsys.readouterr().err
    for option in (f"--args {tmp_path / 'in.npz'} --halos apart", "--random 1"):
        assert run(f"{line} {option}") == 0
        assert capsys.readouterr().err == ""


def test_words_of_very_long_rows_have_numbers_of_32_bits():
    """A row of FP64 with 2^31 cells has whole cells for words."""
    size = 1 << 31
    for cell_bytes in (4, 8):
        frame = HaloFrame((size,), (1,), (size - 1,), cell_bytes)
        assert frame.word_bytes == cell_bytes and frame.words()[-1] == (size, 1, size - 1)
    assert HaloFrame((1 << 30,), (1,), (2,), 8).word_bytes == 4
