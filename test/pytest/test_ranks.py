"""
Programs on several ranks end with the bits of one process: drawn programs, boundaries of every
kind, any number of ranks, any cut. Ranks are threads here; `test_ranks_of_mpi.py` has processes.
"""

from __future__ import annotations

from math import prod
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

import timetile
from support import reference
from support.blocks import FIELDS, HALO, HIGH, LOW, random_program
from support.compare import assert_same_bits
from support.description import Inputs, Program, random_inputs
from support.generate import programs
from support.programs import program_text
from support.ranks import Ranks, copies, model_case, refused
from support.sizes import seeds
from support.thread_ranks import ThreadPeers, on_threads
from test_narrow_fields import FADE, WRITTEN
from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import CompileError, remark
from timetile.runtime.program import ranked_program
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.ranked_program import (
    RankedProgram,
    check_agreement,
    compiled_on_ranks,
)
from timetile.runtime.ranks.peers import RankError


@given(
    program=programs(),
    count=st.sampled_from((1, 2, 3, 4, 6, 8)),
    every=st.integers(1, 4),
    steps=st.integers(0, 9),
)
def test_drawn_programs_keep_their_bits_on_ranks(
    program: Program, count: int, every: int, steps: int
):
    note(program_text(program))
    inputs = random_inputs(program, seed=steps)
    expected = inputs.copy()
    reference.run(program, expected, steps)
    try:
        found, _ = Ranks(count, every=every).run(
            program_text(program), inputs.arguments(program, steps)
        )
    except CompileError as error:
        # Small domains have fewer cells than ranks; nothing else may be refused.
        assert "run on fewer ranks" in str(error)
        reject()
    for own in found:
        names = [buffer.name for buffer in program.buffers]
        assert_same_bits(program, expected, Inputs(dict(zip(names, own))), f"{count} ranks")


@pytest.mark.covering
@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("host", [False, True], ids=["sweeps", "host"])
def test_sweeps_and_hosts_keep_their_bits_on_ranks(seed: int, host: bool):
    """Hosts read and write single cells, pick fields, and gather cells at computed places."""
    text = random_program(seed, looped=host or bool(seed % 2), host=host)
    random = np.random.default_rng(seed)
    arguments = [*(random.random(HIGH - LOW + 2 * HALO) for _ in range(FIELDS)), 3]
    expected = copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    found, _ = Ranks(2 + seed % 3).run(text, arguments)
    for own in found:
        for array, right in zip(own[:-1], expected[:-1]):
            assert array.tobytes() == right.tobytes()


@timetile.stencil(boundary="periodic")
def ring(u: timetile.Field, w: timetile.Field, k: timetile.Scalar):
    """An update that reads corners, and another that reads new values."""
    u.next = u[0, 0] + k * (u[-1, -2] - 2 * u[1, 0] + u[0, 1])
    w.next = w[0, 0] + k * u.next[1, -1]


@timetile.stencil(boundary=("periodic", ("mirror", timetile.value(0.5))))
def channel(u: timetile.Field, w: timetile.Field, k: timetile.Scalar):
    """A boundary for each side, periodic along one axis."""
    u.next = u[0, 0] + k * (u[-1, -2] - 2 * u[1, 2] + u[0, 1])
    w.next = w[0, 0] + k * u.next[1, -1]


@timetile.stencil(boundary=("reflect", "mirror"))
def basin(u: timetile.Field, w: timetile.Field, k: timetile.Scalar):
    """Two kinds of mirrors, and a coordinate."""
    u.next = u[0, 0] + k * (u[-2, -1] - 2 * u[1, 2] + u[0, 1])
    w.next = w[0, 0] + k * u.next[1, -1] + 0.001 * timetile.coordinate(0)


@timetile.stencil(boundary="periodic")
def numbered(u: timetile.Field, w: timetile.Field, k: timetile.Scalar):
    """A coordinate along periodic axes: a cell differs from its image."""
    u.next = u[0, 0] + k * (u[-1, 0] - 2 * u[1, 0]) + 0.001 * timetile.coordinate(1)
    w.next = w[0, 0] + k * u.next[0, -1]


@timetile.stencil
def plate(u: timetile.Field, w: timetile.Field, k: timetile.Scalar):
    """Cells at the rim keep their values."""
    u.next = u[0, 0] + k * (u[-1, 0] - 2 * u[1, 0] + u[0, 1])
    w.next = w[0, 0] + k * u[0, -1]


MODELS = {"ring": ring, "channel": channel, "basin": basin, "numbered": numbered, "plate": plate}

CUTS: list[Any] = [
    (1, 1),
    (2, 1),
    (1, 3),
    (2, 2),
    (3, 2),
    Decomposition(((0, 2, 9), (0, 1, 5, 11))),
]
"""How many parts a 9 x 11 domain has, and the parts, of unequal extents."""


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu"])
@pytest.mark.parametrize("every", [1, 3, None])
@pytest.mark.parametrize("parts", CUTS, ids=str)
@pytest.mark.parametrize("name", list(MODELS))
def test_boundaries_keep_their_bits_on_ranks(
    name: str, parts: Any, every: int | None, executor: Executor
):
    text, arguments = model_case(MODELS[name], (9, 11), 7)
    expected = copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    count = parts.count if isinstance(parts, Decomposition) else prod(parts)
    found, _ = Ranks(count, parts, every, executor).run(text, arguments)
    for own in found:
        for array, right in zip(own, expected):
            assert np.asarray(array).tobytes() == np.asarray(right).tobytes()


HEAT = str(plate.module((24, 20)))


def heat_arguments(steps: int = 5) -> list[Any]:
    """Arguments of the program `HEAT`."""
    program = timetile.compile(HEAT, executor="numpy", cache=False)
    random = np.random.default_rng(2)
    made: list[Any] = []
    for parameter in program.parameters:
        if parameter.bounds is not None:
            made.append(random.random(parameter.shape))
        else:
            made.append(steps if parameter.is_steps else 0.1)
    return made


def test_a_rank_computes_its_part_only():
    _, program = Ranks(4, (2, 2), 2).run(HEAT, heat_arguments())
    assert program.decomposition.counts == (2, 2)
    assert program.part == (slice(0, 12), slice(0, 10))
    loop = next(run for run in program.cut.loops.values()).loop
    assert program.cut.part.zone == ((2, 2), (1, 2))
    cells = program.cut.field_of(next(iter(program.cut.loops)).buffers[0])
    assert cells.shape == (14, 12)
    assert loop.part == program.cut.part


def test_calls_go_on_and_results_name_arguments():
    arguments = heat_arguments(4)
    alone = timetile.compile(HEAT, executor="numpy", fp_contract="off", cache=False)
    expected = alone(*copies(arguments))

    def run(peers: ThreadPeers) -> tuple[Any, Any]:
        program = Ranks(3).compiled(HEAT, peers)
        result = program(*copies(arguments))
        half = program(*copies(arguments), steps=2)
        return result, program(*half.buffers, steps=2)

    for result, continued in on_threads(3, run):
        assert (result.latest, result.steps, result.cells) == (
            expected.latest,
            expected.steps,
            expected.cells,
        )
        for one, other in zip(result.buffers, continued.buffers):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes() or np.ndim(one) == 0


REDUCED = """
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  %h = arith.constant 0.4 : f64
  %m = arith.mulf %s, %h : f64
  func.return %m : f64
}
func.func @run(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) -> f64 {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  %total = temporal.reduce total %r#0 in <[-1], [60]> : !stencil.field<[-1,65]xf64> -> f64
  func.return %total : f64
}
"""


@pytest.mark.parametrize("count", [2, 5])
def test_reductions_have_the_order_of_one_process(count: int):
    random = np.random.default_rng(3)
    arguments = [5, random.random(66), random.random(66)]
    alone = timetile.compile(REDUCED, executor="cpu", fp_contract="off", cache=False)
    expected = alone(*copies(arguments)).returned

    def run(peers: ThreadPeers) -> tuple[Any, ...]:
        return Ranks(count, executor="cpu").compiled(REDUCED, peers)(*copies(arguments)).returned

    assert on_threads(count, run) == [expected] * count


def test_written_fields_of_fewer_axes_keep_their_bits_on_ranks():
    """The program spreads the field anew in each step; machine code of a rank reads it in place."""
    text = WRITTEN.replace("BEFORE", FADE).replace("_, 0", "0, _")
    random = np.random.default_rng(3)
    arguments = [random.random((6, 8)), random.random(8), 3]
    alone = copies(arguments)
    timetile.compile(text, executor="numpy", cache=False)(*alone)
    found, _ = Ranks(2, (1, 2), executor="cpu").run(text, arguments)
    assert [[field.tobytes() for field in one[:2]] for one in found] == [
        [field.tobytes() for field in alone[:2]]
    ] * 2


def test_rank_0_alone_tells_remarks(caplog: pytest.LogCaptureFixture):
    def alone() -> CompiledProgram:
        made = timetile.compile(HEAT, executor="numpy", cache=False)
        remark(made.function, "a remark on the program")
        return made

    def run(peers: ThreadPeers) -> None:
        compiled_on_ranks(peers, alone, RankedProgram, None, None, None)

    on_threads(2, run)
    assert caplog.text.count("a remark on the program") == 1


# Refusals and failures.


def test_more_ranks_than_cells_are_refused():
    text = str(plate.module((3, 4)))
    errors = refused(5, lambda peers: Ranks(5).compiled(text, peers))
    assert len(errors) == 5
    assert any("run on fewer ranks" in str(error) for error in errors.values())


def test_ranks_with_other_arguments_are_refused_before_the_run():
    def run(peers: ThreadPeers) -> None:
        program = Ranks(2).compiled(HEAT, peers)
        arguments = heat_arguments(steps=5 + peers.rank)
        arguments[0][3, 3] += peers.rank
        program(*arguments, steps=5 + peers.rank)

    errors = refused(2, run)
    assert {str(error) for error in errors.values()} == {
        "nothing has run, as ranks 0 and 1 of 2 differ in steps, u; give every rank the same"
    }
    assert len(errors) == 2


def test_a_difference_behind_the_end_of_a_message_is_found():
    def run(peers: ThreadPeers) -> None:
        many = " ".join(f"field{k}=0123456789abcdef" for k in range(200))
        check_agreement(peers, f"{many} last={peers.rank}")

    errors = refused(2, run)
    assert len(errors) == 2
    assert all("differ in the arguments; give" in str(error) for error in errors.values())


def test_a_rank_with_a_wrong_argument_is_named_on_all_ranks():
    def run(peers: ThreadPeers) -> None:
        program = Ranks(2).compiled(HEAT, peers)
        arguments = heat_arguments()
        if peers.rank == 1:
            arguments[0] = arguments[0][1:]
        program(*arguments)

    errors = refused(2, run)
    assert "argument 0 (%u) has shape" in str(errors[1])
    assert isinstance(errors[0], RankError)
    assert str(errors[0]).startswith("nothing has run, as rank 1 of 2 cannot: argument 0 (%u)")


def test_ranks_with_other_programs_or_versions_are_refused(monkeypatch: pytest.MonkeyPatch):
    texts = [HEAT, str(plate.module((24, 21)))]
    for different in ("program", "version"):
        errors = refused(2, lambda peers: Ranks(2).compiled(texts[peers.rank], peers))
        assert all(f"ranks 0 and 1 of 2 differ in {different}" in f"{e}" for e in errors.values())
        assert len(errors) == 2
        texts[1] = HEAT
        monkeypatch.setattr(ranked_program, "sources_key", lambda: f"{get_ident()}")


def test_a_rank_that_fails_in_a_run_ends_the_run_of_all():
    def run(peers: ThreadPeers) -> None:
        program = Ranks(3, every=1).compiled(HEAT, peers)

        def progress(done: int, total: int) -> None:
            if done == 2 and peers.rank == 1:
                raise MemoryError("no more")

        program(*heat_arguments(), progress=progress)

    errors = refused(3, run)
    assert str(errors[0]) == str(errors[2]) == "rank 1 of 3 failed: MemoryError: no more"
    assert isinstance(errors[1], MemoryError)


COPIED = """
func.func private @double(%x: f64) -> f64 {
  %d = arith.addf %x, %x : f64
  func.return %d : f64
}
func.func @run(%n: index, %A: memref<8xf64>, %B: memref<8xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<8xf64> to !stencil.field<[0,8]xf64>
  temporal.loop %n (%x = %a) rotate [0] {
    temporal.update %x = @double(%x[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  "memref.copy"(%A, %B) : (memref<8xf64>, memref<8xf64>) -> ()
  func.return
}
"""


def test_a_copy_from_parts_to_whole_memory_is_refused():
    errors = refused(2, lambda peers: Ranks(2).compiled(COPIED, peers))
    assert len(errors) == 2
    assert any(
        "the copy is of a field that is cut into parts, to or from memory of other bounds; give "
        "both the bounds of the field, or run the program without comm" in str(error)
        for error in errors.values()
    )


def test_a_copy_of_parts_keeps_its_bits():
    cast = "%b = builtin.unrealized_conversion_cast %B : memref<8xf64> to !stencil.field<[0,8]xf64>"
    more = """
  temporal.loop %n (%y = %b) rotate [0] {
    temporal.update %y = @double(%y[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  func.return"""
    text = COPIED.replace('  "memref.copy', f'  {cast}\n  "memref.copy')
    text = text.replace("-> ()\n  func.return", f"-> (){more}")
    arguments = [2, np.arange(8.0), np.ones(8)]
    found, _ = Ranks(3).run(text, arguments)
    for own in found:
        assert (own[1] == 4 * np.arange(8.0)).all()
        assert (own[2] == 16 * np.arange(8.0)).all()


def test_kernels_do_not_run_on_ranks():
    errors = refused(1, lambda peers: Ranks(1, executor="planes").compiled(HEAT, peers))
    assert str(errors[0]) == (
        "the executor planes runs on one process; with comm run on the executor gpu, cpu or numpy"
    )


def test_parts_are_one_for_each_rank():
    errors = refused(3, lambda peers: Ranks(3, (2, 2)).compiled(HEAT, peers))
    assert len(errors) == 3
    assert any(
        str(error) == "parts are 2 numbers of 1 or more with the product 3, one part for each "
        "rank, got (2, 2)"
        for error in errors.values()
    )


def test_parts_are_of_the_programs_domain():
    other = Decomposition(((0, 12, 23), (0, 20)))
    errors = refused(2, lambda peers: Ranks(2, other).compiled(HEAT, peers))
    assert any(
        str(error) == "parts are 2 parts of the domain [0, 24) x [0, 20), got 2 parts of "
        "[0, 23) x [0, 20)"
        for error in errors.values()
    )


@pytest.mark.parametrize("name, value", [("parts", (2, 2)), ("exchange_every", 4)])
def test_options_of_ranks_need_ranks(name: str, value: Any):
    options: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"^{name} has no effect on one process and one GPU; "):
        timetile.compile(HEAT, **options)
