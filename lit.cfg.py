"""How lit runs the FileCheck tests: `lit test/filecheck`, from the root."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "test" / "pytest"))
sys.path.insert(0, str(Path(__file__).parent / "test"))

from forking_test import ForkingTest

# lit runs the file with the suite's configuration among the globals.
config: Any = globals()["config"]

config.name = "timetile"
config.test_format = ForkingTest()
config.suffixes = {".mlir"}
# Folders with IR other than tests.
config.excludes = {"benchmarks", "build", "docs", "examples"}

# lit's notes, such as the time of each test, go to a folder ignored by git.
scratch = Path(__file__).parent / "build" / "lit"
scratch.mkdir(parents=True, exist_ok=True)
config.test_exec_root = str(scratch)

# xdsl-opt, filecheck and python lie beside the interpreter of lit: the environment need not be
# active. xdsl-opt finds the dialects, passes and targets as installed.
tools = str(Path(sys.executable).parent)
config.environment["PATH"] = os.pathsep.join([tools, os.environ["PATH"]])
# The tools run the sources beside this file, for any place of installation.
config.environment["PYTHONPATH"] = str(Path(__file__).parent / "src")
