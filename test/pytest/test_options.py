"""What `timetile.compile` and a compiled program are given is checked before anything runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import HEAT
from timetile.passes.diagnostics import CompileError


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"executor": "foo"}, "executor is gpu or cpu or numpy or planes or simt, got 'foo'"),
        ({"fp_contract": "Fast"}, "fp_contract is fast or on or off, got 'Fast'"),
        ({"fp_division": "Fast"}, "fp_division is exact or fast, got 'Fast'"),
        ({"halos": "x"}, "halos is compared or common or apart, got 'x'"),
        ({"depth": 0}, "depth is a number from 1 on, got 0"),
        ({"depth": True}, "depth is a number from 1 on, got True"),
        ({"halos": None}, "halos is compared or common or apart, got None"),
        ({"passes": ()}, "passes are one or more; leave them out for the default ones"),
    ],
)
def test_options_are_checked(option: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        timetile.compile(HEAT, **option)


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
        match="argument 3 is of type index, and 9223372036854775808 is not between -9223372036854775808 and",
    ):
        compiled(*fields, 0.25, 2**63)
    broken: Any = 2.5
    with pytest.raises(TypeError):
        compiled(*fields, 0.25, 3, steps=broken)


def test_what_the_host_cannot_run_is_refused():
    """Before any array changes, also where it stands after the time loop."""
    text = HEAT.replace("func.return", "%m = memref.alloc() : memref<4xf64>\n  func.return")
    with pytest.raises(CompileError, match=r"memref\.alloc in @heat .*cannot be run; keep only"):
        timetile.compile(text, executor="cpu", cache=False)


def test_arguments_that_nothing_reads_take_none():
    text = HEAT.replace("%steps: index)", "%steps: index, %other: memref<4xf64>, %p: !llvm.ptr)")
    compiled = timetile.compile(text, executor="cpu", cache=False)
    fields = [np.zeros((16, 21)) for _ in range(2)]
    compiled(*fields, 0.25, 3, None, None)


def test_a_program_that_stores_no_field_says_so():
    text = "func.func @empty() {\n  return\n}\n"
    with pytest.raises(CompileError, match="@empty stores no field: timetile compiles"):
        timetile.compile(text)


def test_a_program_that_cannot_be_raised_says_why():
    with pytest.raises(CompileError, match="it has a field of f16; use f32 or f64"):
        timetile.compile(HEAT.replace("f64", "f16"))
