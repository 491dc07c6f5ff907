"""Schedules chosen by measuring: search, record and workers, with made-up benches."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest

import timetile
from timetile import CompileError, Field, Scalar
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.cache.store import Cache
from timetile.runtime.cli import main
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.measured import (
    ChosenSchedule,
    DeviceRecords,
    Measured,
    MeasuredRow,
    best_first,
    decode_record,
    encode_record,
    records,
    written_schedules,
)
from timetile.runtime.kernels.of_program import ProgramKernels, raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.kernels.tuning import MOST_MEASURED, Tuning, considered
from timetile.runtime.kernels.workers import Workers, launched
from timetile.runtime.machine.driver import gpu_is_available

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("tuning")

CELLS = 64 * 128


@timetile.stencil
def heat(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def kernels(kept: Cache | None = None, device: DeviceRecords | None = None) -> ProgramKernels:
    """The kernels of heat conduction on a small plate."""
    module = raise_program(heat.module((64, 128), "float64"), Options(halos="common"))
    return ProgramKernels(module, Options(halos="common"), kept, device)


@cache
def kernels_of_the_model() -> ProgramKernels:
    """The kernels without a cache and without a GPU; chosen once for the file, and not changed."""
    return kernels()


def depth_of(made: ProgramKernels) -> int:
    """The depth of given schedules."""
    assert made.given is not None and made.given[0] is not None
    return made.given[0].depth


@dataclass
class MadeUpBench:
    """A bench without a GPU: one depth is the fastest, and some depths leave other bits."""

    fastest: int
    wrong: tuple[int, ...] = ()
    now: float = 0.0
    asked: list[int] = field(default_factory=list[int])
    compared: list[int] = field(default_factory=list[int])

    def clock(self) -> float:
        return self.now

    def seconds(self, kernels: ProgramKernels, steps: int) -> float:
        depth = depth_of(kernels)
        assert steps == depth
        self.now += 1.0
        self.asked.append(depth)
        return 1e-9 * CELLS * (1 + abs(depth - self.fastest))

    def agree(self, one: ProgramKernels, other: ProgramKernels, steps: int) -> bool:
        assert steps % depth_of(one) == steps % depth_of(other) == 0
        self.compared.append(depth_of(other))
        return depth_of(other) not in self.wrong


def search(bench: MadeUpBench, limit: float = 100.0) -> list[MeasuredRow]:
    return Tuning(kernels_of_the_model(), bench, CELLS, limit, clock=bench.clock).run()


def depths(rows: list[MeasuredRow]) -> list[int]:
    return [0 if row.chosen[0] is None else row.chosen[0].depth for row in rows]


def test_the_fastest_schedule_is_taken_and_each_is_compared_with_the_default():
    bench = MadeUpBench(fastest=4)
    rows = search(bench)
    default = written_schedules(kernels_of_the_model().tiled)
    assert rows[0].chosen == default
    assert depths(best_first(rows))[0] == 4
    assert best_first(rows)[0].gcells_per_second == pytest.approx(1.0)
    assert bench.compared == depths(rows)[1:]
    assert len(rows) <= 1 + MOST_MEASURED
    assert len({row.chosen for row in rows}) == len(rows)


def test_one_step_more_than_the_chosen_ones_is_measured():
    """Also where the model leaves the step out for registers."""
    made = kernels_of_the_model()
    assert made.tiled
    (choice,) = made.model_choices
    assert choice is not None
    deepest = max(each.depth for each in choice.comparison.found)
    chosen = ChosenSchedule(deepest, "")
    second = considered(choice, chosen)[1]
    assert second.depth == deepest + 1 and not second.schedule.resident


def test_a_schedule_with_other_bits_is_not_taken_and_said(caplog: pytest.LogCaptureFixture):
    bench = MadeUpBench(fastest=4, wrong=(4,))
    with caplog.at_level("WARNING", LOGGER.name):
        rows = search(bench)
    assert 4 in depths(rows) and depths(best_first(rows))[0] != 4
    assert 4 not in bench.asked
    assert "leaves other bits than the default after" in caplog.text


def test_no_schedule_is_measured_after_the_limit_of_time():
    bench = MadeUpBench(fastest=4)
    rows = search(bench, limit=2.5)
    # The third began within the limit.
    assert len(rows) == 3


def test_the_default_stays_unless_another_is_clearly_faster():
    rows = search(MadeUpBench(fastest=4))
    slow = [replace(row, gcells_per_second=1.005) for row in rows]
    slow[0] = replace(rows[0], gcells_per_second=1.0)
    assert best_first(slow)[0] == slow[0]


def test_a_program_without_a_choice_is_refused():
    given = kernels().with_schedules(written_schedules(kernels_of_the_model().tiled))
    bench = MadeUpBench(fastest=4)
    with pytest.raises(CompileError, match="no time loop of the program has schedules to choose"):
        Tuning(given, bench, CELLS).run()


# Records.


def record(depth: int) -> Measured:
    (default,) = written_schedules(kernels_of_the_model().tiled)
    assert default is not None
    row = MeasuredRow((replace(default, depth=depth),), 12.5)
    return Measured("@heat, 64 x 128 cells (f64)", "a GPU", (row,), 10.0)


def test_later_programs_use_the_kept_schedule(tmp_path: Path):
    cache = Cache(tmp_path)
    first = kernels(cache, DeviceRecords("a GPU", cache))
    model = depth_of(first.with_schedules(written_schedules(first.tiled)))
    assert first.record is None and model != 3
    DeviceRecords("a GPU", cache).keep(first.model_key, record(3))
    again = kernels(cache, DeviceRecords("a GPU", cache))
    assert again.record == record(3) and again.facts[0][0].steps == 3
    assert again.key != first.key and again.model_key == first.model_key
    # Another GPU, another driver, and runs without a GPU keep the model's choice.
    other = kernels(cache, DeviceRecords("a GPU, driver of CUDA 99.0", cache))
    assert other.record is None and other.facts[0][0].steps == model
    assert kernels(cache).facts[0][0].steps == model
    assert list(records(cache)) == [record(3)]


def test_records_are_used_in_the_process_without_a_cache():
    here = DeviceRecords("a GPU", None)
    first = kernels(None, here)
    here.keep(first.model_key, record(2))
    assert first.with_new_records().facts[0][0].steps == 2


def test_records_are_read_as_written():
    assert decode_record(dict(encode_record(record(2)))) == record(2)
    with pytest.raises(ValueError, match="no rows"):
        decode_record(dict(encode_record(replace(record(2), rows=()))))


def test_a_schedule_is_read_as_printed_and_other_text_is_refused():
    (loop,) = loops_of(kernels().tiled)
    text = str(loop.schedule)
    ChosenSchedule(2, text).write(loop)
    assert str(loop.schedule) == text and loop.depth_list[0] == 2
    with pytest.raises(ValueError, match="unit is no schedule"):
        ChosenSchedule(2, "unit").write(loop)


# Processes.


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
def test_kernels_of_other_processes_are_found_in_the_cache(tmp_path: Path):
    cache = Cache(tmp_path)
    (default,) = written_schedules(kernels_of_the_model().tiled)
    assert default is not None
    both = [kernels(cache).with_schedules((replace(default, depth=d),)) for d in (1, 2)]
    with Workers(1) as workers:
        ready = list(workers.made(both))
    assert sorted(map(depth_of, ready)) == [1, 2]
    for each in ready:
        for name in launched(each):
            assert each.cached(name) is not None


# The doors.


def test_explain_says_what_was_measured():
    program = timetile.compile(heat.module((64, 128), "float64"), executor="planes", cache=False)
    assert program.explain().loops[0].measured is None
    here = DeviceRecords("a GPU", None)
    program.kernels.records = here
    for variant in (program.kernels, program.kernels.common):
        variant.records = here
        vars(variant).pop("record", None)
    here.keep(program.kernels.common.model_key, record(3))
    assert program.explain().loops[0].measured == (
        "12 on a GPU with equal halos, by launches of 3 steps; 10 by the model's choice"
    )
    assert "GCells/s measured" in str(program.explain())


@pytest.mark.skipif(gpu_is_available(), reason="a GPU answers")
def test_the_command_needs_a_gpu_and_lists_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path))
    assert main(["tune", "examples/heat2d.mlir"]) == 2
    assert "schedules are measured on a GPU, and no GPU can be used" in capsys.readouterr().err
    assert main(["tune"]) == 2
    assert "tune needs a program, or --show" in capsys.readouterr().err
    assert main(["tune", "--show"]) == 0
    assert "nothing was measured yet in" in capsys.readouterr().out
    cache = Cache.default()
    DeviceRecords("a GPU", cache).keep("key", record(3))
    assert main(["tune", "--show"]) == 0
    assert capsys.readouterr().out.startswith(
        "@heat, 64 x 128 cells (f64), on a GPU: 12.5 GCells/s measured, 10 by the model's choice; "
        "3 steps, #tile.schedule<"
    )
    assert main(["tune", "--show", "examples/heat2d.mlir"]) == 2


def test_tune_without_a_gpu_is_a_sentence(caplog: pytest.LogCaptureFixture):
    program = timetile.compile(heat.module((16, 32), "float64"), executor="cpu", tune=True)
    program.unused.say()
    assert (
        "tune has no effect on the cpu executor: schedules are measured on a GPU; choose the "
        "executor gpu" in caplog.text
    )
    with pytest.raises(ValueError, match="tune is True or False, got 'yes'"):
        timetile.compile(heat.module((16, 32), "float64"), tune=cast(bool, "yes"))
    with pytest.raises(ValueError, match="tune measures a program on one GPU"):
        timetile.compile(heat.module((16, 32), "float64"), tune=True, gpus=2)
