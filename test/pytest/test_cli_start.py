"""
Fields at the start of `timetile run`: shapes, random numbers of a range; and warnings about runs
that blow up.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.command_line import HEAT, K, error_of, inputs, outputs, run
from timetile import Field, Scalar
from timetile.runtime.cli.start import SHAPES
from timetile.runtime.program.finite import blow_up, is_finite
from timetile.runtime.program.written_fields import partners_of

pytestmark = pytest.mark.usefixtures("own_cache")

EXAMPLES = Path(__file__).parents[2] / "examples"

WAVE = """
!field = !stencil.field<[-1,9]x[-1,9]xf32>
!temp = !stencil.temp<?x?xf32>
func.func @wave(%p: !field, %m: !field, %q: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %p, %b = %q) -> (!field, !field) {
    %now = stencil.load %a : !field -> !temp
    %medium = stencil.load %m : !field -> !temp
    %out = stencil.apply(%x = %now : !temp, %c = %medium : !temp) -> (!temp) {
      %here = stencil.access %x[0, 0] : !temp
      %by = stencil.access %c[0, 0] : !temp
      %v = arith.mulf %here, %by : f32
      stencil.return %v : f32
    }
    stencil.store %out to %b(<[0, 0], [8, 8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
"""
"""A step multiplies by a coefficient."""


@pytest.fixture
def wave(tmp_path: Path) -> Path:
    path = tmp_path / "wave.mlir"
    path.write_text(WAVE)
    return path


def fields_of(line: str, tmp_path: Path) -> dict[str, np.ndarray]:
    """The fields after no step."""
    out = tmp_path / "out.npz"
    assert run(f"{line} --steps 0 --quiet --out {out}") == 0
    return outputs(out)


def test_random_fields_lie_in_their_ranges(wave: Path, tmp_path: Path):
    found = fields_of(f"run {wave} --random 1 --random-range p=-3:-1", tmp_path)
    assert -3 <= found["arg0"].min() < -2.8 and -1.2 < found["arg0"].max() <= -1
    # No step writes the coefficient: its numbers are positive, and small enough for explicit
    # steps.
    assert 0.05 <= found["arg1"].min() < 0.06 and 0.14 < found["arg1"].max() <= 0.15
    assert 0 <= found["arg2"].min() < 0.1 and 0.9 < found["arg2"].max() <= 1
    wider = fields_of(f"run {wave} --random 1 --random-range %m=0:7", tmp_path)
    assert wider["arg1"].max() > 6
    assert np.array_equal(wider["arg2"], found["arg2"])


def test_random_integers_lie_in_their_range(heat: Path, tmp_path: Path):
    text = HEAT.replace("f64", "i64").replace("mulf", "muli").replace("addf", "addi")
    heat.write_text(text)
    line = f"run {heat} --random 1 --set k=1"
    found = fields_of(f"{line} --random-range 0=-2:2", tmp_path)
    assert set(found["arg0"].ravel()) == {-2, -1, 0, 1, 2}
    assert 90 < found["arg1"].max() < 100


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_fill_what_steps_write(shape: str, wave: Path, tmp_path: Path):
    found = fields_of(f"run {wave} --init {shape} --set m=0.5", tmp_path)
    assert np.array_equal(found["arg0"], found["arg2"])
    assert np.all(found["arg1"] == 0.5)
    assert 0.3 < np.abs(found["arg0"]).max() <= 1
    assert found["arg0"].min() == pytest.approx(
        -found["arg0"].max() if shape == "sine" else 0, abs=0.01
    )
    both = fields_of(f"run {wave} --init {shape} --random 1", tmp_path)
    assert np.array_equal(both["arg0"], found["arg0"])
    assert both["arg1"].min() >= 0.05


def test_shapes_are_of_the_cells_inside(wave: Path, tmp_path: Path):
    """The bump is round about the middle of the written cells; the halo continues the bump."""
    u = fields_of(f"run {wave} --init gaussian --set m=0.5", tmp_path)["arg0"]
    assert np.array_equal(u, u[::-1, ::-1]) and np.array_equal(u, u.T)
    assert u.max() == u[4, 4]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--random-range p=0:1",
            "--random-range has no effect without --random; give --random SEED, too",
        ),
        (
            "--random 1 --random-range p=1",
            "--random-range p=1 is no range; write --random-range p=-1:1",
        ),
        (
            "--random 1 --random-range p=a:b",
            "--random-range p=a:b has ends other than numbers; write p=-1:1",
        ),
        (
            "--random 1 --random-range p=1:0",
            "--random-range p=1:0 has ends in the wrong order; write the smaller end first",
        ),
        (
            "--random 1 --random-range p=0:1e39",
            "--random-range p=0:1e39 goes beyond the numbers of f32; give a smaller range",
        ),
        (
            "--random 1 --random-range steps=0:1",
            "--random-range steps=0:1 is for a field filled by --random, and arg3 (%steps) is a "
            "scalar",
        ),
        (
            "--random 1 --set p=1 --random-range p=0:1",
            "--random-range p=0:1 is for a field filled by --random, and arg0 (%p) has its values "
            "already",
        ),
        (
            "--random 1 --random-range p=0:1 --random-range 0=0:1",
            "--random-range 0=0:1 is the second range of arg0 (%p); give one",
        ),
        (
            "--set p=1 --set q=1 --set m=1 --init discs",
            "--init discs is for fields written by steps, and all have values; leave out the "
            "option",
        ),
        (
            "--init discs",
            "no values for arg1 (%m); give values with --args IN.npz, or fill the fields with "
            "--random SEED or --init discs",
        ),
        (
            "--init square",
            "argument --init: invalid choice: 'square' (choose from discs, gaussian, sine); see "
            "timetile run --help",
        ),
    ],
)
def test_an_impossible_filling_is_refused(
    options: str, sentence: str, wave: Path, capsys: pytest.CaptureFixture[str]
):
    found = error_of(f"run {wave} --steps 1 {options}", capsys)
    # Python 3.11 quotes the choices.
    assert found.replace("'discs', 'gaussian', 'sine'", "discs, gaussian, sine") == sentence


def test_a_buffer_without_values_is_told_of_its_partner(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    line = f"run {heat} --args {inputs(tmp_path, u=np.zeros((16, 21)))} --set k=1 --steps 1"
    assert error_of(line, capsys) == (
        "no values for arg1 (%v), which takes turns with arg0 (%u); give each buffer an array, or "
        "one array under both names if both begin alike"
    )


def test_partners_are_buffers_that_take_turns():
    page = (EXAMPLES.parent / "docs" / "programs.md").read_text()
    host = re.findall(r"^```mlir\n(.*?@driven\(.*?)^```", page, re.M | re.S)[0].split("```mlir")[-1]
    two = {0: {1}, 1: {0}}
    for text, partners in ((HEAT, two), (host, two), (WAVE, {0: {2}, 2: {0}})):
        program = timetile.compile(text, executor="cpu", cache=False)
        assert partners_of(program.function) == partners
    scott = timetile.compile(EXAMPLES / "gray_scott.mlir", executor="cpu")
    assert partners_of(scott.function) == {0: {2}, 2: {0}, 1: {3}, 3: {1}}


def test_whole_numbers_are_of_whole_ranges(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text(HEAT.replace("f64", "i64").replace("mulf", "muli").replace("addf", "addi"))
    line = f"run {heat} --steps 1 --set k=1 --random 1 --random-range u=0:0.5"
    assert error_of(line, capsys) == (
        "--random-range u=0:0.5 is of a field of i64; give whole numbers"
    )


@pytest.mark.parametrize("name", ["wave2d", "star25"])
def test_the_examples_stay_finite_at_random(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out.npz"
    line = (
        f"run {EXAMPLES / f'{name}.mlir'} --random 1 --steps 60 --executor cpu --quiet --out {out}"
    )
    assert run(line) == 0
    assert capsys.readouterr() == ("", "")
    assert all(np.abs(array).max() < 100 for array in outputs(out).values())


# Runs that blow up.


def test_a_run_with_infinite_cells_prints_a_warning(wave: Path, capsys: pytest.CaptureFixture[str]):
    line = f"run {wave} --set p=1 --set q=1 --set m=1e20 --steps 3 --executor cpu"
    assert run(line) == 0
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == (
        "warning: arg0 (%p) has 64 of 100 cells that are NaN or infinite, arg2 (%q) has 64 of 100 "
        "cells that are NaN or infinite after 3 steps, and none at the start; take smaller "
        "coefficients (--random-range, --set), or a smaller time step"
    )


def test_infinite_cells_at_the_start_cause_no_warning(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    u = np.full((16, 21), np.nan)
    line = f"run {heat} --args {inputs(tmp_path, u=u, v=u.copy())} --set k={K} --steps 1"
    assert run(f"{line} --executor cpu") == 0
    assert "NaN" not in capsys.readouterr().err


def test_a_sum_beyond_all_numbers_is_not_taken_for_infinity():
    assert is_finite(np.full(4, 1e308))
    assert not is_finite(np.array([1.0, np.nan]))
    assert not is_finite(np.array([np.inf, -np.inf], np.float32))
    assert is_finite(np.zeros(0)) and is_finite(np.arange(3))
    assert blow_up({"u": np.full(4, 1e308)}, "after 1 steps", "stop") is None


def growing() -> timetile.Model:
    @timetile.stencil
    def grow(u: Field, w: Field, k: Scalar):
        u.next = u[0] * k
        w.next = w[0] + 1

    return grow.on(executor="cpu", cache=False)


def test_advance_warns_of_fields_that_blow_up():
    model, state = growing(), {"u": np.ones(5), "w": np.ones(5)}
    text = (
        "^u has 5 of 5 cells that are NaN or infinite after 4 steps, and none at the start; "
        "take smaller"
    )
    with pytest.warns(RuntimeWarning, match=text) as caught:
        ended = model.advance(state, 4, k=1e200)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.advance(ended, 4, k=1e200)


def test_snapshots_of_a_model_say_between_which_steps():
    model, state = growing(), {"u": np.ones(5), "w": np.ones(5)}
    found = model.snapshots(state, steps=6, every=2, k=1e60)
    assert next(found)[0] == 2
    assert next(found)[0] == 4
    with pytest.warns(RuntimeWarning, match="infinite between steps 4 and 6, and none") as caught:
        assert next(found)[0] == 6
    assert caught[0].filename == __file__


def test_a_program_warns_of_arguments_that_blow_up(wave: Path):
    program = timetile.compile(WAVE, executor="cpu", cache=False)
    p, m = np.ones((10, 10), np.float32), np.full((10, 10), 1e20, np.float32)
    q = p.copy()
    text = r"^argument 0 \(%p\) has 64 of 100 cells .* after 2 steps, and none at the start"
    with pytest.warns(RuntimeWarning, match=text) as caught:
        program.advance((p, m, q), 2)
    assert caught[0].filename == __file__
