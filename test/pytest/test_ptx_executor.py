"""
The PTX of a kernel computes the program's results, bit for bit: the text is parsed and run, not
compared. And the executor of PTX finds faults of incomplete text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

import timetile
from support.catalogue import CATALOGUE, Entry, entry, star, sum_program
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.programs import program_text
from support.schedules import (
    FLAGS,
    GRID,
    Schedule,
    block_plane,
    block_row,
    check,
    cluster_plane,
    device_plane,
    solid,
    warp_row,
)
from timetile.dialects.tile import Form, Published, Storage, Sync, TileLevel
from timetile.lowering.ptx.quotients import add_quotient
from timetile.lowering.ptx.writer import Writer
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors.ptx.arithmetic import KINDS, RULES
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.of_program import ProgramKernels

pytestmark = pytest.mark.usefixtures("chosen_among_few")


# A third of the programs; tests in `test_programs.py` run the others.
@pytest.mark.covering(first=1, every=3)
@pytest.mark.parametrize("contract", ["off", "fast"])
@pytest.mark.parametrize("case", CATALOGUE, ids=lambda case: case.name)
def test_the_executor_of_ptx_leaves_the_bits_of_the_program(case: Entry, contract: FpContract):
    """
    A launch of the deepest kernel and one of a single step, or other launches for an equal number
    of steps.
    """
    program, steps = case.make(case.domains[-1]), case.depth + 1
    text = program_text(program)
    compiled = timetile.compile(
        text, executor="ptx", depth=case.depth, fp_contract=contract, cache=False
    )
    inputs = random_inputs(program, seed=steps)
    if contract == "off":
        assert_as_unfused(compiled, program, inputs, steps, "ptx")
        return
    expected, found = inputs.copy(), inputs.copy()
    timetile.compile(text, executor="cpu", cache=False)(*expected.arguments(program, steps))
    compiled(*found.arguments(program, steps))
    for name, array in expected.arrays.items():
        assert array.tobytes() == found.arrays[name].tobytes(), name


HEAT_2D, HEAT_3D = entry("heat-2d").make((17, 71)), entry("heat-3d").make((5, 9, 22))

SCHEDULES = [
    (HEAT_2D, Schedule("copies-into-a-ring", warp_row(), Buffering(ahead=3), planes=5)),
    (
        HEAT_2D,
        Schedule("planes-in-shared-memory", block_row(), Buffering(storage=Storage.SHARED), None),
    ),
    (
        HEAT_2D,
        Schedule("edges-between-warps", block_row(), streaming=Streaming(what=Published.EDGES)),
    ),
    (
        sum_program("f32", [(a, b) for b in (-1, 0, 1) for a in (-1, 0, 1)])((9, 71)),
        Schedule("sums-that-travel", warp_row(), form=Form.LANES, shown="_lanes1"),
    ),
    (
        HEAT_3D,
        Schedule(
            "arrivals",
            block_plane((4, 2), (3, 1)),
            Buffering(ahead=3),
            Streaming(sync=Sync.MBARRIER, delay=1, period=1),
            planes=4,
            shown="sync mbarrier",
        ),
    ),
    (
        HEAT_3D,
        Schedule(
            "cluster",
            cluster_plane((4, 1), 1, 3),
            streaming=Streaming(sync=Sync.MBARRIER),
            planes=5,
            shown="x 3 blocks",
        ),
    ),
    (HEAT_3D, Schedule("messages", device_plane((3, 2), 2, 2), planes=5, shown=FLAGS)),
    (
        sum_program("f64", star(3, 1))((4, 9, 22)),
        Schedule("messages-of-doubles", device_plane((4, 1), 1, 3), planes=None, shown=FLAGS),
    ),
    (
        HEAT_3D,
        Schedule(
            "grid",
            device_plane((3, 2), 2, 2),
            streaming=Streaming(sync=Sync.GRID),
            planes=5,
            shown=GRID,
        ),
    ),
    (
        HEAT_3D,
        Schedule(
            "tiles-that-stay",
            solid(TileLevel.DEVICE, (2, 2, 1), (2, 3, 1), blocks=2),
            planes=None,
            shown=FLAGS,
        ),
    ),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("program", "schedule"), SCHEDULES, ids=lambda x: getattr(x, "name", ""))
def test_every_way_to_exchange_cells_keeps_the_bits(program: Program, schedule: Schedule):
    check(program, schedule, 2, "ptx")


# Incomplete text.


KEPT: dict[tuple[str, str], Kernel] = {}
"""The kernels made so far, by names of schedule and kernel."""


def run_changed(
    program: Program,
    schedule: Schedule,
    change: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run with changed text of kernels; SimtError or AssertionError for a found fault."""
    make = ProgramKernels.make

    def make_and_change(kernels: ProgramKernels, name: str) -> Kernel:
        kernel = KEPT.get((schedule.name, name)) or make(kernels, name)
        KEPT[schedule.name, name] = kernel
        changed = change(kernel.ptx)
        assert changed != kernel.ptx or name.endswith("_step"), "there is nothing to change"
        return replace(kernel, ptx=changed)

    monkeypatch.setattr(ProgramKernels, "make", make_and_change)
    check(program, schedule, 2, "ptx")


def without(pattern: str) -> Callable[[str], str]:
    """The text without instructions of a given beginning."""
    return lambda text: re.sub(rf"\t{pattern}[^;]*;\n", "", text)


RING, SHARED, EDGES, TRAVELLING, ARRIVALS, CLUSTER, MESSAGES, _, MEETING, _ = SCHEDULES

RACES = "without a synchronisation between|a value that was never set"

Change = Callable[[str], str]
Case = tuple[Program, Schedule]

MISSING: list[tuple[str, Case, Change, str]] = [
    ("barriers", EDGES, without(r"bar\.sync"), RACES),
    ("warp-syncs", RING, without(r"bar\.warp\.sync"), RACES),
    (
        "waits-for-copies",
        RING,
        without(r"cp\.async\.wait_group"),
        "a value that was never set|on its way",
    ),
    (
        "commits-of-copies",
        RING,
        without(r"cp\.async\.commit_group"),
        "a value that was never set|on its way",
    ),
    ("arrivals", ARRIVALS, without(r"mbarrier\.arrive"), "waits for an event that never comes"),
    (
        "waits-for-arrivals",
        ARRIVALS,
        without(r"@!%p\d+ bra \$wait_\d+"),
        RACES,
    ),
    ("readiness", ARRIVALS, without(r"mbarrier\.init"), "no thread has initialised the mbarrier"),
    (
        "bytes-of-a-phase",
        CLUSTER,
        lambda text: re.sub(r"arrive\.expect_tx(.*\]), .*;", r"arrive\1;", text),
        f"never set|never comes|{RACES}|before what was sent",
    ),
    (
        "cluster-barriers",
        CLUSTER,
        without(r"barrier\.cluster"),
        "initialised the mbarrier|as initialised|before all cells sent",
    ),
    (
        "messages",
        MESSAGES,
        without(r"st\.relaxed"),
        "waits for an event that never comes",
    ),
    ("counts-of-blocks", MEETING, without(r"red\.release"), "waits for an event that never comes"),
    (
        "waits-for-blocks",
        MEETING,
        without(r"@%p\d+ bra \$meet_\d+"),
        RACES,
    ),
    ("registers", RING, without(r"shfl\.sync\.up"), "depends on an unset register|was never set"),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(
    ("name", "where", "change", "message"), MISSING, ids=[m[0] for m in MISSING]
)
def test_an_instruction_that_is_missing_is_found(
    name: str,
    where: tuple[Program, Schedule],
    change: Callable[[str], str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
):
    with pytest.raises(SimtError, match=message):
        run_changed(*where, change, monkeypatch)


WRONG: list[tuple[str, Case, Change]] = [
    ("another-lane", RING, lambda text: text.replace("shfl.sync.up", "shfl.sync.down")),
    ("another-weight", RING, lambda text: re.sub(r"0d3F([0-9A-F]{13})\w", r"0d3F\g<1>7", text)),
    ("another-cell", RING, lambda text: re.sub(r"(ld\.shared\.v2.*)\+16\]", r"\1+32]", text)),
    ("another-branch", RING, lambda text: re.sub(r"@!(%p\d+ bra \$else)", r"@\1", text)),
]


@pytest.mark.parametrize(("name", "where", "change"), WRONG, ids=[w[0] for w in WRONG])
def test_an_instruction_that_is_wrong_is_found(
    name: str,
    where: tuple[Program, Schedule],
    change: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
):
    with pytest.raises((SimtError, AssertionError)):
        run_changed(*where, change, monkeypatch)


def test_arguments_of_calls_in_a_branch_have_any_width():
    strand = Strand(Mock(), 0, 0, np.array([0, 1]), 32)
    lanes = np.arange(64)
    strand.write("param0", lanes.astype(np.float32), None)
    strand.write("param0", lanes.astype(np.float64), lanes < 40)
    assert strand.read("param0", np.dtype(np.float64))[:40].tolist() == list(range(40))
    unset = strand.any_unset(("param0",))
    assert unset is not None and unset.tolist() == [lane >= 40 for lane in range(64)]


@pytest.mark.parametrize("divisor", [3, 5, 7, 10, 28, 39, 641, 2418, 65537, 2**31 - 1, 2**32 - 1])
def test_quotients_without_a_division_are_exact_for_all_words(divisor: int):
    """Words on both sides of every kind of multiple, the least and the largest one among them."""
    last = 2**32 // divisor
    multiples = divisor * np.array([0, 1, 2, last // 2, last - 1, last], np.int64)
    words = np.unique((multiples[:, None] + np.arange(-2, 3)) % 2**32).astype(np.uint32)
    writer = Writer({})
    add_quotient(writer, "%q", "%n", divisor)
    values = {"%n": words}
    for line in writer.lines:
        name, _, rest = line.strip("\t;").partition(" ")
        result, *texts = rest.split(", ")
        operands = [values[each] if each in values else np.uint32(int(each)) for each in texts]
        kinds = (KINDS[kind] for kind in RULES[name].operands)
        typed = [np.asarray(each).view(kind) for each, kind in zip(operands, kinds, strict=True)]
        values[result] = np.asarray(RULES[name].function(*typed)).view(np.uint32)
    assert not any("div" in line for line in writer.lines)
    assert np.array_equal(values["%q"], words // divisor)
