"""Rows of a command line, compiled in processes, timed one after the other, printed as JSON."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any

from rows import described
from timing import copy_bandwidth

from timetile.runtime.device.gpu import Device, device


def print_rows(
    about: str,
    rows_help: str,
    prepared: Callable[[str], dict[str, Any]],
    measured: Callable[[str, Device, float], dict[str, float]],
) -> None:
    """
    Read the command line, and print the GPU and each row: `prepared` compiles and describes a row,
    or says an error; `measured` times it beside a copy of so many TB/s.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n\n")[0])
    parser.add_argument("rows", nargs="+", help=rows_help)
    parser.add_argument("--seconds", type=float, default=100, help="no row begins later")
    options, began = parser.parse_args(), time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(prepared, options.rows))
    gpu = device()
    with gpu.current():
        copy = copy_bandwidth(gpu)
        print(json.dumps({"device": gpu.name, "copy_tb_per_s": round(copy, 3)}), flush=True)
        for row in rows:
            if "error" not in row and time.perf_counter() - began < options.seconds:
                try:
                    row |= measured(row["row"], gpu, copy)
                except Exception as error:
                    row["error"] = described(error)
                import_module("cupy").get_default_memory_pool().free_all_blocks()
            print(json.dumps(row), flush=True)
