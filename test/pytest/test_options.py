"""
Options and arguments of `timetile.compile` and of a compiled program are checked before anything
runs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import HEAT
from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.target import NAMES
from timetile.runtime.program.compiled_program import Executor


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"executor": "foo"},
            "executor is gpu or cpu or numpy or planes or simt or ptx, got 'foo'",
        ),
        ({"fp_contract": "Fast"}, "fp_contract is fast or on or off, got 'Fast'"),
        ({"fp_division": "Fast"}, "fp_division is exact or fast, got 'Fast'"),
        ({"fp_reassoc": True}, "fp_reassoc is on or flags or off, got True"),
        ({"halos": "x"}, "halos is compared or common or apart, got 'x'"),
        ({"depth": 0}, "depth is a number from 1 to 256, got 0"),
        ({"depth": True}, "depth is a number from 1 to 256, got True"),
        ({"halos": None}, "halos is compared or common or apart, got None"),
        ({"depth": 257}, "depth is a number from 1 to 256, got 257"),
        ({"depth": 10**6}, "depth is a number from 1 to 256, got 1000000"),
        ({"depth": 2.0}, "depth is a number from 1 to 256, got 2.0"),
        ({"depth": "2"}, "depth is a number from 1 to 256, got '2'"),
        ({"arch": 90}, f"arch is {' or '.join(NAMES)}, got 90"),
        ({"arch": "sm_70"}, f"arch is {' or '.join(NAMES)}, got 'sm_70'"),
        ({"gpu": -1}, "gpu is a number from 0 on, got -1"),
        ({"gpu": True}, "gpu is a number from 0 on, got True"),
        ({"gpu": "0"}, "gpu is a number from 0 on, got '0'"),
        ({"gpu": None}, "gpu is a number from 0 on, got None"),
        (
            {"cache": "some/path"},
            "cache is True, False or a Cache (TIMETILE_CACHE_DIR names another folder), got "
            "'some/path'",
        ),
        (
            {"cache": None},
            "cache is True, False or a Cache (TIMETILE_CACHE_DIR names another folder), got None",
        ),
        ({"function": 3}, "function is the name of a function, got 3"),
        ({"bound_waits": 1}, "bound_waits is True or False, got 1"),
        (
            {"executor": ["cpu"]},
            "executor is gpu or cpu or numpy or planes or simt or ptx, got ['cpu']",
        ),
        ({"passes": 7}, "passes is a tuple of passes or a pipeline's text, got 7"),
        ({"passes": ("cse",)}, "passes is a tuple of passes, and contains 'cse'"),
        ({"passes": ()}, "passes are one or more; leave out passes for the default passes"),
    ],
)
def test_options_are_checked(option: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        timetile.compile(HEAT, **option)


@pytest.mark.parametrize("program", [None, 3, b"builtin.module {}", ["x"]])
def test_a_program_is_a_module_a_text_or_a_file(program: Any):
    with pytest.raises(TypeError) as caught:
        timetile.compile(program)
    kind = type(program).__name__
    assert str(caught.value) == f"the program is a module, its text or a pathlib.Path, got {kind}"


def test_a_file_is_given_as_a_path():
    with pytest.raises(
        CompileError, match=r"'heat.mlir' is taken for the text of a program; give a file as"
    ):
        timetile.compile("heat.mlir")
    with pytest.raises(CompileError, match="<program> is empty; write a function with a time loop"):
        timetile.compile("\n")


def test_numbers_have_as_many_bits_as_their_type():
    compiled = timetile.compile(HEAT, executor="cpu", cache=False)
    fields = [np.zeros((16, 21)) for _ in range(2)]
    with pytest.raises(
        ValueError,
        match=r"argument 3 \(%steps\) is of type index, and 9223372036854775808 is not between "
        r"-9223372036854775808 and",
    ):
        compiled(*fields, 0.25, 2**63)
    broken: Any = 2.5
    with pytest.raises(TypeError):
        compiled(*fields, 0.25, 3, steps=broken)


def test_operations_unknown_to_the_host_are_refused():
    """Before any array changes, also for work after the time loop."""
    text = HEAT.replace(
        "func.return", "%m = memref.get_global @table : memref<4xf64>\n  func.return"
    )
    with pytest.raises(
        CompileError, match=r"memref\.get_global in @heat .*cannot run it; keep only"
    ):
        timetile.compile(text, executor="cpu", cache=False)


def test_arguments_that_nothing_reads_take_none():
    text = HEAT.replace("%steps: index)", "%steps: index, %other: memref<4xf64>, %p: !llvm.ptr)")
    compiled = timetile.compile(text, executor="cpu", cache=False)
    fields = [np.zeros((16, 21)) for _ in range(2)]
    compiled(*fields, 0.25, 3, None, None)


def test_a_program_without_a_store_is_refused():
    text = "func.func @empty() {\n  return\n}\n"
    with pytest.raises(CompileError, match="@empty stores no field: timetile compiles"):
        timetile.compile(text)


def test_a_program_that_cannot_be_raised_says_why():
    with pytest.raises(CompileError, match="it has a field of f80; use f64, f32"):
        timetile.compile(HEAT.replace("f64", "f80"))


def test_a_text_that_does_not_parse_says_where():
    text = HEAT.replace("arith.mulf %w, %up : f64", "arith.mulf %w, %nobody : f64")
    line = next(k for k, each in enumerate(text.splitlines(), 1) if "%nobody" in each)
    with pytest.raises(CompileError) as caught:
        timetile.compile(text.replace("%nobody : f64", "%nobody !! f64"))
    assert (caught.value.file, caught.value.line) == ("<program>", line)
    assert caught.value.operation is None


def test_a_refusal_says_what_where_and_why(tmp_path: Path):
    """In one sentence, and in parts; of several refusals, the further ones are notes."""
    path = tmp_path / "heat.mlir"
    path.write_text(HEAT.replace("f64", "f80"))
    line = next(k for k, text in enumerate(HEAT.splitlines(), 1) if "stencil.load" in text)
    with pytest.raises(CompileError) as caught:
        timetile.compile(path)
    error = caught.value
    assert str(error) == f"stencil.load in @heat ({path}:{line}): {error.reason}"
    assert (error.operation, error.file, error.line) == ("stencil.load", str(path), line)
    assert "it has a field of f80; use f64, f32" in error.reason


def test_a_refused_operation_is_named_with_its_place():
    text = HEAT.replace(
        "func.return", "%x = memref.get_global @table : memref<4xf64>\n  func.return"
    )
    line = next(k for k, each in enumerate(text.splitlines(), 1) if "memref.get_global" in each)
    with pytest.raises(CompileError) as caught:
        timetile.compile(text)
    error = caught.value
    assert (error.operation, error.file, error.line) == ("memref.get_global", "<program>", line)
    assert str(error) == f"memref.get_global in @heat (<program>:{line}): {error.reason}"
    assert error.reason.startswith("it stays on the host, which cannot run it; keep only")


@pytest.mark.parametrize("stride", [0, -1, -7])
@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_a_time_loop_counts_upwards(stride: int, executor: Executor):
    """At compilation for a constant step, and before the run for a step given as an argument."""
    said = f"the loop's step is {stride}; give it a step of 1 or more"
    constant = HEAT.replace("%one = arith.constant 1", f"%one = arith.constant {stride}")
    with pytest.raises(CompileError, match=said):
        timetile.compile(constant, executor=executor)
    given = HEAT.replace("%steps: index)", "%steps: index, %one: index)").replace(
        "%one = arith.constant 1 : index", ""
    )
    program = timetile.compile(given, executor=executor, cache=False, depth=2)
    fields = [np.random.default_rng(k).random((16, 21)) for k in range(2)]
    before = [each.copy() for each in fields]
    for steps in (5, -5, 0):
        with pytest.raises(CompileError, match=said):
            program(*fields, 0.25, steps, stride)
    assert all(np.array_equal(a, b) for a, b in zip(fields, before, strict=True))
    assert program(*fields, 0.25, 5, 2).steps == (3,)


def test_a_loop_of_the_host_counts_upwards():
    loop = "scf.for %i = %zero to %steps step %k2 {\n  }\n  func.return"
    text = HEAT.replace("func.return", loop).replace("%steps: index)", "%steps: index, %k2: index)")
    program = timetile.compile(text, executor="cpu", cache=False)
    fields = [np.zeros((16, 21)) for _ in range(2)]
    for stride in (0, -1):
        with pytest.raises(
            CompileError, match=f"the loop's step is {stride}; give it a step of 1 or more"
        ):
            program(*fields, 0.25, 3, stride)


def test_operations_after_the_loop_are_refused_before_anything_changes():
    after = """scf.for %i = %zero to %steps step %one {
    %x = memref.get_global @table : memref<4xf64>
  }
  func.return"""
    with pytest.raises(CompileError, match="it stays on the host, which cannot run it"):
        timetile.compile(HEAT.replace("func.return", after), executor="cpu")


@pytest.mark.parametrize(
    ("executor", "options", "names"),
    [
        ("cpu", {"depth": 2, "arch": "sm_80"}, ["depth", "arch"]),
        ("numpy", {"bound_waits": True, "halos": "apart"}, ["bound_waits"]),
        ("numpy", {"threads": 1}, ["threads"]),
        ("planes", {"threads": 1, "depth": 2}, ["threads"]),
        ("cpu", {"threads": 1, "halos": "common"}, []),
    ],
)
def test_the_first_run_names_options_without_effect_on_its_executor(
    executor: Executor,
    options: dict[str, Any],
    names: list[str],
    caplog: pytest.LogCaptureFixture,
):
    program = timetile.compile(HEAT, executor=executor, cache=False, **options)
    u = np.zeros((16, 21))
    program(u, u.copy(), 0.1, steps=2)
    said = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert [message.partition(" ")[0] for message in said] == names
    caplog.clear()
    program(u, u.copy(), 0.1, steps=2)
    assert "no effect" not in caplog.text
