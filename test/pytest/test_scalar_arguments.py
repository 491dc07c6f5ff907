"""
Scalar arguments are accepted within the program's type, and refused otherwise; masks and strides,
too.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import IndexType, f32, f64, i1, i32, i64
from xdsl.ir import Attribute

import timetile
from support.command_line import HEAT
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.host.arrays import (
    checked_scalar,
    from_cuda_array_interface,
    is_contiguous,
)
from timetile.runtime.program.compiled_program import Executor

LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (f32, 1e300),
        (f32, -1e300),
        (f32, LARGEST * (1 + 2**-24)),
        (f32, np.float64(1e39)),
        (f32, np.array(1e39)),
        (f32, 10**39),
        (f32, 10**400),
        (f64, 10**400),
        (f64, -(10**400)),
        (i1, 2),
        (i1, -1),
        (i1, np.int64(2)),
        (i32, 2**31),
        (i32, -(2**31) - 1),
        (i32, np.uint32(2**31)),
        (i64, 2**63),
        (i64, np.uint64(2**63)),
        (i64, 10**21),
        (IndexType(), -(10**21)),
    ],
)
def test_a_number_that_the_type_has_not_is_refused(kind: Attribute, value: Any):
    with pytest.raises(
        ValueError, match=rf"argument 1 is of type {kind}, and .* is not between .* and "
    ):
        checked_scalar(1, value, kind)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (i1, 0.5, "argument 1 is of type i1, and got 0.5; pass a bool"),
        (i1, 1.0, "argument 1 is of type i1, and got 1.0; pass a bool"),
        (i64, 1.0, "argument 1 is an integer, and got 1.0; pass an int"),
        (f64, "1", "argument 1 is a number, and got '1'; pass a float"),
        (f64, None, "argument 1 is a number, and got None; pass a float"),
        (f64, Fraction(1, 2), "argument 1 is a number, and got Fraction(1, 2); pass a float"),
        (
            f64,
            np.ma.masked,
            "argument 1 is a scalar, and got a number that is masked; pass a number",
        ),
        (
            f64,
            np.ma.masked_array(1.0, mask=False),
            "argument 1 is a scalar, and got a number that is masked; pass a number",
        ),
    ],
)
def test_a_scalar_of_the_wrong_type_is_refused(kind: Attribute, value: Any, said: str):
    with pytest.raises(TypeError) as caught:
        checked_scalar(1, value, kind)
    assert str(caught.value) == said


def test_a_scalar_in_gpu_memory_is_refused():
    class Scalar:
        __cuda_array_interface__ = {"shape": (), "typestr": "<f8", "data": (16, False)}

    with pytest.raises(TypeError, match="and got a number that is in GPU memory; pass a number"):
        checked_scalar(1, Scalar(), f64)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, LARGEST, -0.0, 1e-300, True, 3])
@pytest.mark.parametrize("kind", [f32, f64])
def test_numbers_are_rounded_to_the_programs_type(kind: Attribute, value: float):
    found = checked_scalar(1, value, kind)
    assert found.dtype == dtype_of(kind)
    assert found.tobytes() == dtype_of(kind).type(value).tobytes()


BITS: dict[Attribute, int] = {i1: 1, i32: 31}
"""Bits of the numbers from 0 to the largest of a type; 63 for every other type."""


@given(value=st.integers(-(2**66), 2**66), kind=st.sampled_from([i1, i32, i64, IndexType()]))
def test_integers_keep_their_value_or_are_refused(value: int, kind: Attribute):
    try:
        assert int(checked_scalar(1, value, kind)) == value
    except ValueError:
        bits = BITS.get(kind, 63)
        least = 0 if kind == i1 else -(2**bits)
        assert not least <= value < 2**bits


def test_a_scalar_that_does_not_fit_changes_nothing():
    text = HEAT.replace("%k: f64", "%k: f32").replace("%w = %k : f64", "%w32 = %k : f32")
    text = text.replace(
        "%up = stencil", "%w = arith.extf %w32 : f32 to f64\n      %up = stencil", 1
    )
    program = timetile.compile(text, executor="cpu", cache=False)
    fields = [np.ones((16, 21)) for _ in range(2)]
    with pytest.raises(ValueError, match=r"argument 2 \(%k\) is of type f32, and 1e\+300 is not"):
        program(*fields, 1e300, 3)
    assert all((each == 1).all() for each in fields)


# Masks.


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_masked_arrays_are_refused(mask: bool, executor: Executor):
    """Masked or not: a run of such an array must not depend on its cells."""
    program = timetile.compile(HEAT, executor=executor, cache=False, depth=2)
    masked = np.ma.masked_array(np.ones((16, 21)), mask=np.full((16, 21), mask))
    for fields in ((masked, np.ones((16, 21))), (np.ones((16, 21)), masked)):
        with pytest.raises(TypeError) as caught:
            program(*fields, 0.25, 3)
        assert str(caught.value).endswith(
            ") is masked, and the mask would be ignored; pass a plain array, as a.filled(0)"
        )


# Strides.

SHAPES = [*itertools.product((1, 2, 3), repeat=3), (4,), (1,), (1, 4), (4, 1), (0, 3), (3, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_strides_are_contiguous_along_axes_with_neighbours(
    shape: tuple[int, ...],
):
    """NumPy's rule: any stride will do along an axis of one cell."""
    cells = np.zeros(shape).strides
    for changed in itertools.product((False, True), repeat=len(shape)):
        strides = tuple(s + 8 if c else s for s, c in zip(cells, changed))
        said = np.lib.stride_tricks.as_strided(np.zeros(64), shape, strides).flags.c_contiguous
        assert is_contiguous(shape, strides, 8) is bool(said)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((1, 4), (288, 8)), ((1, 4), (8, 8)), ((4, 1), (8, 32)), ((1, 1, 6), (4800, 480, 8))],
)
def test_device_arrays_with_an_axis_of_one_cell_are_taken(
    shape: tuple[int, ...], strides: tuple[int, ...]
):
    class Array:
        __cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f8",
            "data": (4096, False),
            "version": 3,
            "strides": strides,
        }

    found = from_cuda_array_interface(0, Array())
    assert found.shape == shape and found.bytes == 8 * math.prod(shape)


def test_bfloat16_of_pytorch_on_a_gpu_is_known_by_name():
    """The interface of such a tensor says two bytes of no type."""

    class Tensor:
        dtype = "torch.bfloat16"
        __cuda_array_interface__ = {"shape": (6,), "typestr": "<V2", "data": (4096, False)}

    assert from_cuda_array_interface(0, Tensor()).dtype.name == "bfloat16"
