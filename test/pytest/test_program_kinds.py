"""
Every kind of program in test/programs runs by the stencil dialect's definition, on every executor,
or is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import timetile
from support.stencil_semantics import run
from timetile.passes.diagnostics import CompileError
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

FOLDER = Path(__file__).parents[1] / "programs"
STEPS = 5
GIVEN: dict[str, Any] = {"n": STEPS, "off": -1, "flag": True, "edge": 17, "timers": None}
"""The caller's values for arguments other than arrays, by name."""

REFUSED = {
    "four_axes": "{file}:3: an operation or a type here has 4 axes, and programs have 1 to 3; "
    "give each index of the outermost axes a field of its own, or run the program once for each of "
    "them",
    "private_functions": "builtin.module: the module must hold one public function, and holds "
    "@mean (private), @less (private); name one with --function (function= in Python)",
    "written_after_its_load": "stencil.store in @step ({file}:10): the time loop is left "
    "unchanged: the loop writes a field loaded before the loop; load the field inside",
}
RUN = sorted(path.stem for path in FOLDER.glob("*.mlir") if path.stem not in REFUSED)


def arguments_of(program: timetile.CompiledProgram) -> list[Any]:
    """Random cells for each array, and the given values for the other arguments."""
    values: list[Any] = []
    for p in program.parameters:
        if p.bounds is None:
            assert p.name is not None
            values.append(GIVEN[p.name])
            continue
        shape = [high - low for low, high in zip(p.bounds.lb, p.bounds.ub)]
        cells = np.random.default_rng(p.position).random(shape)
        values.append(cells.astype(np.float16 if str(p.kind) == "f16" else np.float64))
    return values


def check(text: str, executor: Executor, function: str | None = None) -> None:
    program = timetile.compile(
        text, executor=executor, function=function, fp_contract="off", cache=False
    )
    found, right = arguments_of(program), arguments_of(program)
    program(*found)
    named = [
        op
        for op in load_text(text).ops
        if isinstance(op, FuncOp) and op.sym_name.data == (function or "step")
    ]
    run(named[0], right)
    for a, b in zip(found, right, strict=True):
        assert a is b is None or np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
@pytest.mark.parametrize("name", RUN)
def test_a_kind_is_what_the_dialect_says(name: str, executor: Executor):
    check((FOLDER / f"{name}.mlir").read_text(), executor)


@pytest.mark.parametrize("executor", ["cpu", "planes"])
@pytest.mark.parametrize("function", ["mean", "less"])
def test_a_private_function_runs_where_it_is_named(function: str, executor: Executor):
    check((FOLDER / "private_functions.mlir").read_text(), executor, function)


@pytest.mark.parametrize("name", REFUSED)
def test_a_kind_is_refused_with_a_way_out(name: str):
    path = FOLDER / f"{name}.mlir"
    with pytest.raises(CompileError) as caught:
        timetile.compile(path, cache=False)
    assert str(caught.value) == REFUSED[name].format(file=path)


def told(name: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The remarks on old values from compiling a program."""
    timetile.compile(FOLDER / f"{name}.mlir", cache=False)
    return [r.getMessage() for r in caplog.records if "old values" in r.getMessage()]


def test_a_recurrence_is_named_once(caplog: pytest.LogCaptureFixture):
    """A step that reads beside the written cell is no recurrence: a load is a snapshot."""
    (said,) = told("recurrence", caplog)
    assert said == (
        f"stencil.apply in @step ({FOLDER / 'recurrence.mlir'}:10): the apply reads its target "
        "field beside the cell: old values are read, as a stencil.load is a snapshot; write a "
        "recurrence along an axis as temporal.sweep"
    )


@pytest.mark.parametrize("name", ["there_and_back", "sums_along_a_line", "regions_loads_first"])
def test_an_apply_on_another_field_is_no_recurrence(name: str, caplog: pytest.LogCaptureFixture):
    assert told(name, caplog) == []
