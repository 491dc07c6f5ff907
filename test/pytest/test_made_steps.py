"""A traced step is raised once: later processes find the program in the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile import Field, Scalar
from timetile.frontend import model as models
from timetile.frontend.made_steps import digest_of_step
from timetile.frontend.model import Model
from timetile.runtime.cache.store import Cache


@timetile.stencil
def heat(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@timetile.stencil
def numbered(u_1: Field):
    u_1.next = 0.5 * u_1[0, 0] + 0.25 * (u_1[-1, 0] + u_1[1, 0])


def made_again(*_: object) -> ModuleOp:
    raise AssertionError("the module is made again")


def again(model: Model, cache: Cache) -> Model:
    """A model as in another process: without programs."""
    return Model(model.step, executor="numpy", cache=cache)


def test_a_step_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache, state = Cache(tmp_path), {"u": np.random.default_rng(2).random((9, 12))}
    first = again(heat, cache).advance(state, steps=3, k=0.1)
    monkeypatch.setattr(models, "module_of", made_again)
    other = again(heat, cache)
    assert other.advance(state, steps=3, k=0.1)["u"].tobytes() == first["u"].tobytes()
    # Another shape, or another step, is another program.
    for model, shape in ((heat, (9, 13)), (numbered, (9, 12))):
        with pytest.raises(AssertionError, match="is made again"):
            again(model, cache).program(shape)
    assert digest_of_step(heat.step) != digest_of_step(numbered.step)


def test_a_program_read_from_the_cache_has_the_names_and_the_kernels_of_the_first(tmp_path: Path):
    first, later = (again(numbered, Cache(tmp_path)).program((9, 12)) for _ in range(2))
    assert [p.name for p in later.parameters] == [p.name for p in first.parameters]
    assert str(later.kernels.source) == str(first.kernels.source)
