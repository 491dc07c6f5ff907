"""
Rows of a command line, compiled in processes, timed one after the other as they are compiled,
printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from typing import Any

from rows import described
from timing import copy_bandwidth

from timetile.runtime.device.gpu import Device, device


def print_rows(
    about: str,
    rows_help: str,
    prepared: Callable[[str], dict[str, Any]],
    measured: Callable[[str, Device], dict[str, float]],
) -> None:
    """
    Read the command line (of `@FILE` a row a line), and print the GPU and each row: `prepared`
    compiles and describes a row, or says an error; `measured` times it. `share`: of the speed of a
    step that moves each field once at a copy's speed.
    """
    parser = argparse.ArgumentParser(
        description=about.partition("\n\n")[0], fromfile_prefix_chars="@"
    )
    parser.add_argument("rows", nargs="+", help=rows_help)
    parser.add_argument("--seconds", type=float, default=100, help="no row begins later")
    options, began = parser.parse_args(), time.perf_counter()
    # All processes begin here: a process that begins behind the GPU has no GPU.
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(options.rows))) as pool:
        compiling = [pool.submit(prepared, row) for row in options.rows]
        gpu = device()
        with gpu.current():
            copy = copy_bandwidth(gpu)
            print(json.dumps({"device": gpu.name, "copy_tb_per_s": round(copy, 3)}), flush=True)
            for each in as_completed(compiling):
                row = each.result()
                if "error" not in row and time.perf_counter() - began < options.seconds:
                    try:
                        row |= measured(row["row"], gpu)
                        share = row["gpts_per_s"] * row["bytes_of_step"] / copy / 1e3
                        row["share"] = round(share, 3)
                    except Exception as error:
                        row["error"] = described(error)
                    import_module("cupy").get_default_memory_pool().free_all_blocks()
                print(json.dumps(row), flush=True)
