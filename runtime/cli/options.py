"""The parsed command line, and the types of its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.runtime.cli.terminal import Log
from timetile.runtime.kernels.options import Halos
from timetile.runtime.program.compiled_program import Executor

Emit = Literal["temporal", "tile", "gpu", "hardware", "ptx", "bundle"]
"""A level of the compiler, shown by `compile`."""

CacheAction = Literal["path", "verify", "clear"]
"""What `cache` does."""


NO_PROGRAM = Path()
"""The program of a command line without one."""


class Options(argparse.Namespace):
    """The parsed command line. The present options depend on the command."""

    command: Callable[[Options, Log], int]
    parser: argparse.ArgumentParser
    verbose: bool
    all: bool
    show: bool
    seconds: int | None
    program: Path
    name: str | None
    function: str | None
    arch: str | None
    device: int | None
    depth: int | None
    fp_contract: FpContract
    fp_division: FpDivision
    fp_reassoc: FpReassoc
    bound_waits: bool
    halos: Halos
    pipeline: str | None
    no_cache: bool
    steps: int | None
    args: Path | None
    set: list[str]
    random: int | None
    random_range: list[str]
    init: str | None
    snapshot_every: int | None
    keep: Path | None
    first_step: int | None
    progress: bool | None
    quiet: bool
    executor: Executor | None
    threads: int | None
    parts: str | None
    exchange_every: int | None
    gpus: int | None
    of_gpus: int | None
    out: Path | None
    check: bool
    plot: Path | None
    emit: Emit
    action: CacheAction
