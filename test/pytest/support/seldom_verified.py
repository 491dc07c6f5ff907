"""
Results of pipelines of passes, in a process of many tests: verified the first time, and then every
`EVERY`th time.

A compilation verifies the result of every pipeline, and keeps a copy of what the pipeline was given
to name the wrong pass: a twelfth of the tests' time, for the same pipelines thousands of times. A
wrong pass is wrong for many programs. In `make nightly`, every result is verified.
"""

from __future__ import annotations

from collections import Counter

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from timetile.passes.diagnostics import apply_verified
from timetile.runtime.kernels import options

EVERY = 8

RUN: Counter[tuple[type[ModulePass], ...]] = Counter()
"""How often pipelines of these classes have run."""


def apply_seldom_verified(
    passes: tuple[ModulePass, ...], module: ModuleOp, context: Context
) -> None:
    """Run passes, and verify the result seldom. CompileError as of `apply_verified`."""
    kinds = tuple(map(type, passes))
    number = RUN[kinds]
    RUN[kinds] += 1
    if number % EVERY:
        PassPipeline(passes).apply(context, module)
    else:
        apply_verified(passes, module, context)


def verify_seldom() -> None:
    """Verify results of pipelines seldom from now on."""
    options.apply_verified = apply_seldom_verified
