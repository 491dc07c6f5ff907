"""How lit runs the FileCheck tests: `lit test/filecheck`, from the root."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "test"))

from forking_test import ForkingTest

# lit runs this file with the suite's configuration among its globals.
config: Any = globals()["config"]

config.name = "timetile"
config.test_format = ForkingTest()
config.suffixes = {".mlir"}
# Folders with IR that is not a test of its own.
config.excludes = {"benchmarks", "build", "docs", "examples"}

# What lit notes down, such as how long each test took, goes where git does not look.
scratch = Path(__file__).parent / "build" / "lit"
scratch.mkdir(parents=True, exist_ok=True)
config.test_exec_root = str(scratch)

# xdsl-opt, filecheck and python lie beside the interpreter that runs lit, so that its environment
# need not be active. xdsl-opt finds the dialects, passes and targets as they were installed.
tools = str(Path(sys.executable).parent)
config.environment["PATH"] = os.pathsep.join([tools, os.environ["PATH"]])
# They run the sources beside this file, wherever the environment was installed from.
config.environment["PYTHONPATH"] = str(Path(__file__).parent / "src")
