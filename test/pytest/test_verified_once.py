"""Verification of stencil programs: each apply once, with xDSL's errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects import stencil
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.verified_once import verify_module
from timetile.runtime.loading.modules import make_context

TEXT = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()


def test_an_apply_with_many_accesses_is_verified_once(monkeypatch: pytest.MonkeyPatch):
    module = Parser(make_context(), TEXT).parse_module()
    verify, seen = stencil.ApplyOp.verify_, list[stencil.ApplyOp]()

    def counted(apply: stencil.ApplyOp) -> None:
        seen.append(apply)
        verify(apply)

    monkeypatch.setattr(stencil.ApplyOp, "verify_", counted)
    verify_module(module)
    applies = [op for op in module.walk() if isinstance(op, stencil.ApplyOp)]
    assert seen == applies and len(applies) == 1
    module.verify()
    assert len(seen) > 5


def test_a_wrong_access_is_refused_in_words_of_xdsl():
    module = Parser(make_context(), TEXT.replace("[0, -1] :", "[0, -1, 0] :", 1)).parse_module()
    with pytest.raises(VerifyException) as own:
        verify_module(module)
    with pytest.raises(VerifyException) as plain:
        module.verify()
    assert str(own.value) == str(plain.value) and "offset" in str(own.value).lower()
