"""Snapshots of a run: files beside the file of `--out`, from which a run goes on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timetile.runtime.cli.inputs import STEP
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.outputs import written
from timetile.runtime.host.loop_facts import is_trip_count
from timetile.runtime.program.compiled_program import CompiledProgram


def snapshot_path(out: Path, step: int, last: int) -> Path:
    """`run-0300.npz` beside `run.npz`: with the digits of the last step, to keep names in order."""
    return out.with_name(f"{out.stem}-{step:0{len(str(last))}}{out.suffix}")


def write_snapshot(path: Path, program: CompiledProgram, state: Sequence[Any], step: int) -> None:
    """
    Write the arguments of a continuing call, and the number of the first step. An old file is
    replaced.
    """
    block = program.function.body.block
    kept: dict[str, Any] = {STEP: np.int64(step)}
    for parameter, argument, value in zip(program.parameters, block.args, state):
        if value is not None and not is_trip_count(argument):
            kept[f"arg{parameter.position}"] = value
    with written(path) as file:
        np.savez(file, **kept)


def going_on(options: Options, snapshot: Path, left: int) -> str:
    """The command to go on from a snapshot, with the options behind the results of this run."""
    words: list[str] = ["timetile", "run", str(options.program), "--args", str(snapshot)]
    words += ["--steps", str(left), "--snapshot-every", str(options.snapshot_every)]
    given: dict[str, Any] = {
        "--out": options.out,
        "--keep": options.keep,
        "--plot": options.plot,
        "--function": options.function,
        "--arch": options.arch,
        "--device": options.device,
        "--depth": options.depth,
        "--fp-contract": None if options.fp_contract == "fast" else options.fp_contract,
        "--fp-division": None if options.fp_division == "exact" else options.fp_division,
        "--fp-reassoc": None if options.fp_reassoc == "flags" else options.fp_reassoc,
        "--halos": None if options.halos == "compared" else options.halos,
        "--pipeline": options.pipeline,
        "--executor": options.executor,
        "--threads": options.threads,
    }
    for option, value in given.items():
        words += [] if value is None else [option, str(value)]
    words += ["--bound-waits"] * options.bound_waits + ["--no-cache"] * options.no_cache
    return shlex.join(words)
