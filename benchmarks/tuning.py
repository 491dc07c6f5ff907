"""
Tune programs on the GPU at hand: the model's choice beside the fastest schedule measured.

    python benchmarks/tuning.py --out benchmarks/results/tuning-h100.json heat:f64 wave2:f64

A program is a step of `choice_models.py`. After tuning, a new program with the record runs on equal
arrays beside the program with the model's schedules, and every cell is compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from choice_models import MODELS, start
from measure import commit
from reports import write_report
from rich.console import Console
from xdsl.dialects import stencil

import timetile
from timetile.dialects.syntax import element_type, field_type
from timetile.frontend.field_types import DType
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.measured import schedules_text
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.tuned_program import tuned

DTYPES: dict[str, DType] = {"f64": "float64", "f32": "float32"}

SIZES = {2: (8192, 8192), 3: (512, 512, 512)}
"""The domains by the number of axes."""

CHECKED_STEPS = 37
"""Steps of the compared runs."""


def values_of(program: CompiledProgram, name: str) -> list[Any]:
    """The arguments of a model's program: equal arrays for buffers that take turns, and numbers."""
    numbers = dict(MODELS[name].numbers)
    values: list[Any] = []
    made: dict[str, Any] = {}
    for argument in program.function.body.block.args:
        hint = argument.name_hint or ""
        if argument.type.name != stencil.FieldType.name:
            values.append(numbers.get(hint, 1))
            continue
        base = hint.removesuffix("_next").removesuffix("_prev")
        if base not in made:
            shape = field_type(argument).get_shape()
            made[base] = start(base, shape, DTYPES[str(element_type(argument))])
        values.append(made[base].copy())
    return values


def row_of(name: str, element: str, seconds: float) -> dict[str, Any]:
    """Tune a program, and compare a run with the record and a run without."""
    rank = MODELS[name].step.step.rank
    module = MODELS[name].step.module(SIZES[rank], DTYPES[element])
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        program = timetile.compile(module, executor="gpu", cache=cache)
        values = values_of(program, name)
        plain: list[Any] = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        program(*plain, steps=CHECKED_STEPS)
        program.close()
        began = time.perf_counter()
        record = tuned(program, values, seconds)
        spent = time.perf_counter() - began
        program.close()
        again = timetile.compile(module, executor="gpu", cache=cache)
        again(*values, steps=CHECKED_STEPS)
        variant = again.kernels.common if again.kernels.common.record else again.kernels
        equal = all(
            bytes(np.asarray(one).data) == bytes(np.asarray(other).data)
            for one, other in zip(plain, values)
        )
        again.close()
    return {
        "program": name,
        "dtype": element,
        "domain": list(SIZES[rank]),
        "default_gpts": round(record.default, 1),
        "tuned_gpts": round(record.best.gcells_per_second, 1),
        "ratio": round(record.best.gcells_per_second / record.default, 3),
        "tuning_s": round(spent, 1),
        "kept": variant.record == record,
        "equal_bits": equal,
        "schedule": schedules_text(record.best.chosen),
        "measured": [
            {"gpts": round(row.gcells_per_second, 1), "schedule": schedules_text(row.chosen)}
            for row in record.rows
        ],
    }


def rows(names: Sequence[str], seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each program."""
    console = Console(width=200)
    for text in names:
        name, _, element = text.partition(":")
        row = row_of(name, element or "f64", seconds)
        console.print({key: row[key] for key in row if key != "measured"}, soft_wrap=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", help="name[:element]")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit for each program")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    options = parser.parse_args()
    gpu = device()
    about = {
        "commit": options.commit or commit(),
        "device": gpu.name,
        "command": "python benchmarks/tuning.py " + " ".join(options.programs),
    }
    found = list(rows(options.programs, options.seconds))
    if options.out is not None:
        write_report(options.out, about, found)


if __name__ == "__main__":
    main()
