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


def test_arguments_of_other_types_are_refused():
    text = HEAT.replace("%steps: index)", "%steps: index, %other: memref<4xf64>)")
    compiled = timetile.compile(text, executor="cpu", cache=False)
    fields = [np.zeros((16, 21)) for _ in range(2)]
    with pytest.raises(
        TypeError,
        match="argument 4 is of type memref<4xf64>, which is neither a number nor a field",
    ):
        compiled(*fields, 0.25, 3, np.zeros(4))


def test_a_program_without_a_time_loop_says_why():
    found = "no time loop was found: timetile compiles scf.for loops over rotated stencil fields; "
    with pytest.raises(CompileError, match=re.escape(found + "none stores a stencil field")):
        timetile.compile("builtin.module {\n}\n")
    with pytest.raises(CompileError, match=re.escape(found + "the remarks say what")) as caught:
        timetile.compile(HEAT.replace("scf.yield %b, %a", "scf.yield %b, %b"))
    (note,) = caught.value.__notes__
    assert note.endswith("it yields a field twice; yield each carried field once")
