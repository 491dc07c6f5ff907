"""
Compile the C of bundles, run it on a GPU, and compare the fields with the CPU executor, bit for
bit.

    python benchmarks/check_bundle.py [PROGRAM.mlir ...] [--steps 1 7 20] [--cuda /usr/local/cuda]

Without programs the script takes the programs of check_programs.py. The C is compiled by `cc` or
`gcc`, and linked with the CUDA driver alone. Python and the C program share files: the fields
before and after. A program without a bundle is listed with the refusal. Exits with 1 if a run
differs or fails.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from check_programs import difference, programs, values_of

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.bundle.c_header import C_TYPES
from timetile.runtime.bundle.c_names import c_name
from timetile.runtime.bundle.files import write_bundle

HELPERS = """\
#define TRY(call) \\
  do { \\
    int failed = (int)(call); \\
    if (failed) { fprintf(stderr, "%s: CUresult %d\\n", #call, failed); exit(1); } \\
  } while (0)

static FILE *opened(const char *folder, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, mode);
  if (!file) { perror(path); exit(1); }
  return file;
}

static CUdeviceptr uploaded(const char *folder, const char *name, size_t size) {
  void *cells = malloc(size);
  FILE *file = opened(folder, name, "rb");
  if (fread(cells, 1, size, file) != size) exit(1);
  fclose(file);
  CUdeviceptr made;
  TRY(cuMemAlloc(&made, size));
  TRY(cuMemcpyHtoD(made, cells, size));
  free(cells);
  return made;
}

static void download(const char *folder, const char *name, CUdeviceptr from, size_t size) {
  void *cells = malloc(size);
  TRY(cuMemcpyDtoH(cells, from, size));
  FILE *file = opened(folder, name, "wb");
  if (fwrite(cells, 1, size, file) != size) exit(1);
  fclose(file);
  free(cells);
}

"""
"""C functions that move fields between files and the device, or end the program."""


def main_program(name: str, arguments: Sequence[dict[str, Any]], values: Sequence[Any]) -> str:
    """
    C that reads fields from `<argument>.in`, runs a bundle, and writes the fields to
    `<argument>.out`.
    """
    before: list[str] = []
    after: list[str] = []
    for argument, value in zip(arguments, values, strict=True):
        member = c_name(argument["name"])
        if argument["kind"] == "field":
            size = argument["bytes"]
            before.append(f'  a.{member} = uploaded(folder, "{member}.in", {size});')
            after.append(f'  download(folder, "{member}.out", a.{member}, {size});')
        elif argument["kind"] == "scalar":
            is_whole = np.asarray(value).dtype.kind != "f"
            number = str(int(value)) if is_whole else float(value).hex()
            before.append(f"  a.{member} = ({C_TYPES[argument['type']]}){number};")
    return f"""\
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>

{HELPERS}int main(int count, char **words) {{
  if (count != 3) return 2;
  const char *folder = words[1];
  CUstream stream;
  {name}_program *program;
  {name}_arguments a;
  TRY({name}_open(0));
  TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
{chr(10).join(before)}
  if ({name}_load(&program, folder) || {name}_run(program, &a, atoi(words[2]), stream)) {{
    fprintf(stderr, "%s\\n", {name}_message(program));
    return 1;
  }}
  TRY(cuStreamSynchronize(stream));
{chr(10).join(after)}
  {name}_unload(program);
  return 0;
}}
"""


def loaded_driver() -> str:
    """The file of the CUDA driver. Raises OSError if absent."""
    ctypes.CDLL("libcuda.so.1")
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in maps if "libcuda.so" in line)


def left_by_bundle(
    program: timetile.CompiledProgram, values: Sequence[Any], steps: int, cuda: Path
) -> list[Any]:
    """
    The values of a program's arguments after `steps` steps by the C of the program's bundle. Raises
    CompileError for a program without a bundle, and CalledProcessError for C that does not compile
    or run.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler: neither cc nor gcc is on the path")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_bundle(program, None, folder)
        arguments = json.loads((folder / "plan.json").read_text())["arguments"]
        (source,) = folder.glob("*.c")
        fields = [k for k, argument in enumerate(arguments) if argument["kind"] == "field"]
        for k in fields:
            values[k].tofile(folder / f"{c_name(arguments[k]['name'])}.in")
        (folder / "main.c").write_text(main_program(source.stem, arguments, values))
        subprocess.run(
            [compiler, "-std=c99", "-O1", f"-I{cuda / 'include'}", str(folder / "main.c"),
             str(source), "-lm", loaded_driver(), "-Wl,--unresolved-symbols=ignore-in-shared-libs",
             "-o", str(folder / "main")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        words = [folder / "main", folder, str(steps)]
        subprocess.run(words, check=True, capture_output=True, text=True)
        left = list(values)
        for k in fields:
            name = c_name(arguments[k]["name"])
            left[k] = np.fromfile(folder / f"{name}.out", values[k].dtype).reshape(values[k].shape)
        return left


def outcome(text: str, steps: int, cuda: Path) -> str:
    """The result of a program's bundle: same bits, refused, or the fault."""
    program = timetile.compile(text, executor="gpu")
    values = values_of(program, 3)
    try:
        found = left_by_bundle(program, values, steps, cuda)
    except CompileError as error:
        return f"refused: {error}"
    except subprocess.CalledProcessError as error:
        return f"failed: {error.stderr}"
    timetile.compile(text, executor="cpu")(*values, steps=steps)
    return difference(values, found) or "same bits"


def main() -> None:
    """Check all programs; the exit status is 1 if any differs or fails."""
    options = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--steps", nargs="+", type=int, default=[1, 7, 20])
    options.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"))
    chosen = options.parse_args()
    logging.getLogger("timetile").setLevel(logging.ERROR)
    wrong = 0
    for name, text in programs(chosen.files).items():
        for steps in chosen.steps:
            try:
                found = outcome(text, steps, chosen.cuda)
            except CompileError as error:
                found = f"refused: {error}"
            wrong += not found.startswith(("same bits", "refused"))
            print(f"{name:44} {steps:4} steps  {found}", flush=True)
    print(f"{wrong} runs differ or failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
