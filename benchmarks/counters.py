"""
Hardware counters of schedules: where the cycles of the deepest kernel go, by Nsight Compute.

    python benchmarks/counters.py wave2:f32:13/cells=6 wave2:f32:13/cells=4 --out counters.json

Programs, depths and entries of schedules are named as for `choice.py`, and real programs by their
names. Each is compiled into a cache, and runs in a process of its own under `ncu`, for one launch
after others that are not counted. Rows have the counters whose names match `--counters`, and are
written as they come.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from choice import Arrays, answered, compiled, questions
from choice_answers import Answer
from choice_programs import add_programs
from measure import commit
from reports import write_report

from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

SECTIONS = (
    *("SpeedOfLight", "WarpStateStats", "SchedulerStats", "MemoryWorkloadAnalysis"),
    "MemoryWorkloadAnalysis_Tables",
)
"""The sections of counters."""

OWN = (
    *("gpu__time_duration.sum", "sm__cycles_elapsed.max", "smsp__inst_executed.sum"),
    *("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "lts__t_requests.sum"),
    *("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum"),
    *("lts__t_tag_requests.avg.pct_of_peak_sustained_elapsed", "dram__bytes_write.sum"),
)
"""Counters beside the sections."""

KEPT = "duration|cycles_elapsed.max|inst_executed.sum|lts__t_|stalled|throughput|issue_active|dram"
"""The counters in a row: a regular expression."""


def launch(text: str, folder: Path) -> None:
    """Launch the kernels of a question's depth, the last time with counters."""
    (question,) = questions([text], [], "")
    gpu = device()
    with gpu.current():
        program = compiled(question, Cache(folder))
        values = Arrays(program, question).values
        depth = program.kernels.facts[0][0].steps
        for _ in range(3):
            program(*values, steps=2 * depth)
        gpu.synchronize(0)
        checked(gpu.cuda.cuProfilerStart())
        program(*values, steps=2 * depth)
        gpu.synchronize(0)
        checked(gpu.cuda.cuProfilerStop())


def counted(text: str, folder: Path, kept: str) -> dict[str, Any]:
    """The counters of the longest launch of a question's program."""
    command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none"]
    command += ["--profile-from-start", "off", "--metrics", ",".join(OWN)]
    for section in SECTIONS:
        command += ["--section", section]
    command += [sys.executable, __file__, text, "--here", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        said = (done.stdout + done.stderr).strip().splitlines() or ["no word"]
        return {"error": " ".join(said[-4:])[:400]}
    rows = list(csv.DictReader(lines))
    # The first row has the units.
    longest = max(rows[1:], key=lambda row: number(row["gpu__time_duration.sum"]))
    found = {key: number(value) for key, value in longest.items() if re.search(kept, key)}
    units = {key: rows[0][key] for key in found if rows[0][key]}
    return {"kernel": longest["Kernel Name"], **found, "units": units}


def number(text: str) -> float:
    """A number as Nsight Compute prints it; 0 for no number."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def described(answer: Answer) -> dict[str, Any]:
    """What was compiled."""
    q = answer.question
    return {
        "program": f"{q.program} {q.element}",
        "depth": answer.depth,
        "schedule": answer.schedule,
        "registers": answer.registers,
        "loop": answer.steady_instructions,
        "spilled_words_of_loop": answer.steady_spill_words,
        "predicted": answer.predicted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="+", help="name:element:depth/entries")
    parser.add_argument("--counters", default=KEPT)
    parser.add_argument("--folder", type=Path, default=Path("build/choice-cache"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help="launch the kernels of one program")
    options = parser.parse_args()
    add_programs()
    if options.here:
        launch(options.programs[0], options.folder)
        return
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        asked = [next(questions([text], [], "")) for text in options.programs]
        made = pool.map(partial(answered, folder=options.folder), asked)
        # Processes of the pool are copies of a process without a GPU.
        about = {"commit": commit(), "device": device().name, "command": shlex.join(sys.argv)}
        for text, answer in zip(options.programs, made):
            row = described(answer)
            found = counted(text, options.folder, options.counters)
            rows.append({**row, **({"error": answer.error} if answer.error else found)})
            print(rows[-1], flush=True)
            if options.out is not None:
                write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
