"""Kernels keep names allowed in PTX, and get equally distinct names otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetile.lowering.ptx.symbols import PLAIN, SHARED_SYMBOL, report_symbol, symbol
from timetile.runtime.kernels.assembler import assemble

NAMES = (
    "heat",
    "_heat",
    "__",
    "heat.2d",
    "heat-2d",
    "2d",
    "_",
    "wärme",
    "a b",
    "heat/2d",
    "$",
    "a$2e$b",
    "a.b",
    "🙂",
    "WARP_SZ",
    SHARED_SYMBOL,
    "add",
    "k$report",
)

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 128 .b8 dynamic_shared[];
.global .align 8 .u64 {report};
.visible .entry {name}(
	.param .u64 {name}_param_0
)
{{
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [{name}_param_0];
	ret;
}}
"""


@pytest.mark.parametrize("name", NAMES)
def test_ptx_takes_the_name(name: str):
    text = KERNEL.format(name=symbol(name), report=report_symbol(name))
    assert assemble(text, "sm_90").registers > 0


# `st.text` classifies all characters of Unicode once a checkout, for seconds: these draw numbers.
CHARACTERS = (st.integers(1, 0xD7FF) | st.integers(0xE000, 0x10FFFF)).map(chr)
ANY_NAMES = st.sampled_from(NAMES) | st.lists(CHARACTERS, min_size=1).map("".join)


@given(ANY_NAMES, ANY_NAMES)
def test_different_names_stay_different(one: str, other: str):
    assert (symbol(one) == symbol(other)) == (one == other)
    assert symbol(one) not in (report_symbol(one), report_symbol(other), SHARED_SYMBOL)


@given(st.sampled_from("AMZamz_"), st.lists(st.sampled_from("AMZamz_059")).map("".join))
def test_plain_names_are_kept(first: str, others: str):
    name = first + others
    assert PLAIN.fullmatch(name)
    assert symbol(name) == name or name in (SHARED_SYMBOL, "WARP_SZ", "_")


def test_readable_letters_are_kept():
    assert symbol("heat.2d-x_1") == "heat$2e$2d$2d$x_1"
    assert symbol("2d") == "$32$d"
