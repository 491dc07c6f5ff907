"""Errors in a step read like Python's: file, line, the expression underlined, and a way out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import timetile
from support.refused_steps import refusal
from timetile import Field, StencilError
from timetile.frontend.errors import positions

HEAD = """\
import math
import numpy as np
import timetile
from timetile import Field, Scalar, coordinate, extent, stencil, where

@stencil
def step(u: Field, v: Field, k: Scalar):
"""


FUNCTIONS = (
    "absolute, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, cbrt, ceil, "
    "copysign, cos, cosh, divide, exp, exp2, expm1, fabs, floor, fmax, fmin, log, log10, log1p, "
    "log2, logical_and, logical_or, logical_xor, maximum, minimum, multiply, power, rint, sin, "
    "sinh, sqrt, subtract, tan, tanh, trunc"
)


NO_NAME = "a step uses its arguments, names around the function, and NumPy's functions as np.exp"


WHICH_CELL = "a field has a value at each cell: say which, as u[0, 0] for the cell's own"


NO_TRUTH = (
    "a value of a cell has no truth value while the step is traced; write "
    "timetile.where(condition, a, b) for `if`, (a < b) & (b < c) for `and`, np.minimum(a, b) for "
    "min"
)


TWO_AXES = "; write an offset for each axis, None along a missing axis of a field"


PARENTHESES = "`&`, `|`, `^` and `~` join conditions; write (a < b) & (b < c), in parentheses"


DIVISION = "`//` and `%` are of a coordinate and a positive int; write np.floor(a / b) for floats"


ASSIGNED_TWICE = (
    "u.next is assigned twice, first in line 8, and the first value is not read; assign once, read "
    "u.next[...] in between, or assign parts by regions, u.next[2:5] = ..."
)


A_REGION = (
    "a region of u.next has a slice without a step for each axis; write u.next[0:1, :] for the "
    "first row, and u.next = ... for all cells"
)


INTEGER = (
    "a value of a cell is no Python integer, as needed by a loop or an index of the step; take a "
    "number known at tracing, or write timetile.where(condition, a, b)"
)


NO_NUMBER = (
    " is no number of a cell; pass different numbers for cells as a timetile.Field, and numbers "
    "as a float or a timetile.Scalar"
)


WRONG_LINES: list[tuple[str, str, str]] = [
    # Names and types, as found by Python.
    ("u.next = sin(u[0])", "sin", f"name 'sin' is not defined; {NO_NAME}"),
    (
        "u.next = u + 1",
        "u + 1",
        f"unsupported operand type(s) for +: 'Field' and 'int'; {WHICH_CELL}",
    ),
    (
        "u.next = u[0] + 'a'",
        "u[0] + 'a'",
        f"a str{NO_NUMBER}",
    ),
    (
        "u.next = u[0] + timetile.Series('s')",
        "u[0] + timetile.Series('s')",
        "a Series has a number for each step; write the present step's, as s[0]",
    ),
    (
        "u.next = np.ones(3) * u[0]",
        "np.ones(3) * u[0]",
        "an array of shape (3,) is no number of a cell; take one number, as w[0], or pass "
        "different numbers for cells as a timetile.Field",
    ),
    (
        "u.next = 2j * u[0]",
        "u.next",
        "the value is complex, and a real number is needed here; take a.real or a.imag, declare an "
        "assigned field as timetile.Complex, and write a complex number beside a complex value",
    ),
    (
        "u.next = u[0] * v",
        "u[0] * v",
        "a field has a value at each cell; write the cell: u[0, 0] is the cell's own",
    ),
    (
        "u.nxt = u[0]",
        "u.nxt",
        "'Field' object has no attribute 'nxt'; a field has u[...], u.prev[...] and u.next, and a "
        "value of a cell has operators",
    ),
    (
        "u.next += 1",
        "u.next += 1",
        "new values are assigned once, not changed; add all to the value first, then write u.next "
        "= value",
    ),
    ("u.next = sum(u)", "sum(u)", f"'Field' object is not iterable; {WHICH_CELL}"),
    ("u.next = sum(u.prev)", "sum(u.prev)", f"'Level' object is not iterable; {WHICH_CELL}"),
    (
        "u.next = u[0] * 2**63",
        "u[0] * 2**63",
        "9223372036854775808 has more than 64 bits; write a float",
    ),
    (
        "u.next = round(u[0])",
        "round(u[0])",
        "type Value doesn't define __round__ method; write it with the operators and functions of "
        "single numbers",
    ),
    # Indices.
    (
        "u.next = u[0] + u[0, 1]",
        "u[0, 1]",
        f"u[0, 1] has 2 offsets, and u[0] has 1{TWO_AXES}",
    ),
    ("u.next = u[0, 1] + v[1]", "v[1]", f"v[1] has 1 offset, and u[0, 1] has 2{TWO_AXES}"),
    (
        "u.next = u[0, 0, 0, 1]",
        "u[0, 0, 0, 1]",
        "u[0, 0, 0, 1] has 4 offsets; a field has 1 to 3 axes",
    ),
    (
        "u.next = u[v[0]]",
        "u[v[0]]",
        "u is indexed by a value of the cell, and offsets are constants; write a number, and "
        "choose between several with timetile.where",
    ),
    (
        "u.next = u[k]",
        "u[k]",
        "u is indexed by a value of the cell, and offsets are constants; write a number, and "
        "choose between several with timetile.where",
    ),
    (
        "u.next = u[0.5]",
        "u[0.5]",
        "u is indexed by 0.5, and offsets are whole numbers; write an int for each axis",
    ),
    (
        "u.next = u[1:]",
        "u[1:]",
        "u is indexed by a slice, and a step reads single cells; write how far from the cell: "
        "u[-1, 0] is the cell before along axis 0",
    ),
    (
        "u.next = u[None]",
        "u[None]",
        "u[None] has no offset; write a number along each axis of the field",
    ),
    (
        "u.next = u[0, 0] + v[0, None] + v[0, 1]",
        "v[0, 1]",
        "v[0, 1] has other axes than v had before; write None along the same axes everywhere",
    ),
    # Assignments.
    ("u[0] = v[0]", "u[0]", "a step assigns new values only; write u.next = ..."),
    (
        "u.next = v[0]; u.next = v[1]",
        "u.next",
        ASSIGNED_TWICE,
    ),
    (
        "u.next[2:5] = v[0]; u.next = v[1]",
        "u.next",
        ASSIGNED_TWICE,
    ),
    (
        "v.next = u.next[0]; u.next = v[0]",
        "u.next[0]",
        "u.next is read before its assignment; assign first, or read the value at the beginning "
        "of the step, u[...]",
    ),
    (
        "u.next = 0.5 * (u.next[-1] + u[1])",
        "u.next[-1]",
        "u.next is read beside the cell before its assignment, which is Gauss-Seidel order, and a "
        "step computes all cells at once; assign in a sweep along an axis, with "
        "timetile.sweep(axis=0), or red cells, then black cells, by the parity of their "
        "coordinates, or read the old value, u[...]",
    ),
    (
        "t = timetile.temporary(u[0]); u.next = v[0, 0] + t[0, None]",
        "v[0, 0]",
        f"v[0, 0] has 2 offsets, and u[0] has 1{TWO_AXES}",
    ),
    (
        "t = timetile.temporary(u[0, 1]); u.next = t[0, None]",
        "t[0, None]",
        "the temporary[0, None] has None, and a temporary has all axes; write a number for each",
    ),
    ("u.next[0] = v[0]", "u.next[0]", A_REGION),
    ("u.next[::2] = v[0]", "u.next[::2]", A_REGION),
    (
        "u.next[0:1, :] = v[0]",
        "u.next[0:1, :]",
        f"the region of u.next has 2 offsets, and v[0] has 1{TWO_AXES}",
    ),
    (
        "u.next = v",
        "u.next",
        "a field has a value at each cell; write the cell: u[0, 0] is the cell's own",
    ),
    # Control.
    ("u.next = u[0] if u[0] > 0 else v[0]", "u[0] > 0", NO_TRUTH),
    ("u.next = min(u[0], v[0])", "min(u[0], v[0])", NO_TRUTH),
    ("u.next = where(0 < u[0] < 1, 1, 0)", "0 < u[0] < 1", NO_TRUTH),
    ("u.next = sum(u[j] for j in range(k))", "range(k)", INTEGER),
    (
        "u.next = sum(u[0])",
        "sum(u[0])",
        "a value of a cell is one number, and has no parts; write the value alone",
    ),
    # Functions.
    (
        "u.next = math.sin(u[0])",
        "math.sin(u[0])",
        "a value of a cell is no Python number; write NumPy's function, as np.sin(u[0]) for "
        "math.sin",
    ),
    (
        "u.next = np.hypot(u[0], v[0])",
        "np.hypot(u[0], v[0])",
        "np.hypot is not supported in a step; write np.sqrt(a**2 + b**2)",
    ),
    (
        "u.next = np.sum(u[0])",
        "np.sum(u[0])",
        f"np.sum is not a function of one cell; write it with {FUNCTIONS}, or timetile.where",
    ),
    (
        "u.next = np.add(u[0], 1, where=False)",
        "np.add(u[0], 1, where=False)",
        "np.add takes values of a cell only by itself; write np.add(a)",
    ),
    (
        "u.next = where(u[0], 1, 0)",
        "where(u[0], 1, 0)",
        "where takes a condition first; compare, as timetile.where(u[0] > 0, a, b)",
    ),
    ("u.next = u[0] & (v[0] * 0.5)", "u[0] & (v[0] * 0.5)", PARENTHESES),
    ("u.next = where(~u[0], 1, 0)", "~u[0]", PARENTHESES),
    ("u.next = (u[0] + 0.5) % 2", "(u[0] + 0.5) % 2", DIVISION),
    ("u.next = coordinate(0) // k", "coordinate(0) // k", DIVISION),
    ("u.next = coordinate(0) % -2", "coordinate(0) % -2", DIVISION),
    (
        "u.next = u[0] * coordinate(3)",
        "coordinate(3)",
        "an axis is an int from 0 to 2, got 3; write the first as 0",
    ),
    (
        "u.next = v[0] * extent(1)",
        "extent(1)",
        "extent(1) names axis 1, and the last axis of the step is 0; count from 0",
    ),
    (
        "u.next = u[0, 0] + v[0, None]; v.next = u[0, 0]",
        "v.next",
        "v gets new values, and has fewer axes than the step with 2; give it all axes",
    ),
]


@pytest.mark.parametrize(("line", "expression", "reason"), WRONG_LINES, ids=lambda text: text[:40])
def test_the_expression_is_underlined(tmp_path: Path, line: str, expression: str, reason: str):
    found = refusal(tmp_path, f"{HEAD}    {line}  # é\n")
    assert found.reason == reason
    place, shown, marks = str(found).splitlines()
    assert place == f"{tmp_path / 'step.py'}:8: {reason}"
    assert shown == f"    {line}  # é"
    start, end = marks.index("^"), len(marks)
    assert shown[start:end] == expression
    assert set(marks[start:]) == {"^"} and not marks[:start].strip()
    assert found.line == 8


def test_an_error_of_other_code_is_left_as_it_is(tmp_path: Path):
    def broken(u: Field):
        u.next = u[0]
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        timetile.stencil(broken)
    with pytest.raises(StencilError, match="stencil takes a function of one time step, got 3"):
        wrong: Any = 3
        timetile.stencil(wrong)


def test_the_traceback_is_short(tmp_path: Path):
    """Frames inside the frontend are not shown: the message has the place."""
    path = tmp_path / "step.py"
    path.write_text(f"{HEAD}    u.next = u[0, 0] + v[0]\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    files = re.findall(r'  File "(.*?)", line', done.stderr)
    assert files[0] == str(path) and {Path(file).name for file in files} == {
        "step.py",
        "stencil.py",
    }
    assert done.stderr.splitlines()[-2:] == [
        "    u.next = u[0, 0] + v[0]",
        "                       ^^^^",
    ]


def test_a_value_of_another_step_is_refused(tmp_path: Path):
    text = "from timetile import Field, stencil\n\nkept = []\n\n"
    text += "@stencil\ndef first(u: Field):\n    kept.append(u[0])\n    u.next = u[1]\n\n"
    found = refusal(
        tmp_path, f"{text}@stencil\ndef second(v: Field):\n    v.next = v[0] + kept[0]\n"
    )
    assert found.reason == "u is an argument of another step; make u an argument of second, too"
    assert found.line == 7


def test_the_place_of_a_helper_is_its_own(tmp_path: Path):
    text = "from timetile import Field, stencil\n\ndef far(u):\n    return u[0.5]\n\n"
    found = refusal(tmp_path, f"{text}@stencil\ndef step(u: Field):\n    u.next = far(u)\n")
    assert found.line == 4


def test_the_instructions_of_a_step_are_listed_once():
    """Listed again for each operation, a step of n lines would take n * n steps to trace."""
    positions.cache_clear()

    @timetile.stencil
    def long(u: Field):
        value = u[0]
        for _ in range(200):
            value = 0.5 * value + u[1]
        u.next = value

    assert long.step.assignments and positions.cache_info().misses < 5
