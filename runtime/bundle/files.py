"""Writes a bundle: kernels, plan, C, a Fortran module and a CMake file, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

from timetile.runtime.bundle.c_header import header
from timetile.runtime.bundle.c_names import c_word
from timetile.runtime.bundle.c_source import source
from timetile.runtime.bundle.cmake import cmake_lists
from timetile.runtime.bundle.fortran import fortran_module
from timetile.runtime.bundle.plan import bundle_plan
from timetile.runtime.program.compiled_program import CompiledProgram


def bundle_files(program: CompiledProgram, steps: int | None) -> dict[str, bytes]:
    """
    The files of a bundle by name: each kernel as PTX, and as machine code if an assembler is there;
    `plan.json`; a C header and source, a Fortran module and a CMake file. Raises CompileError for a
    program that needs the host during a run.
    """
    plan = bundle_plan(program, steps)
    name = c_word(plan.name)
    files: dict[str, bytes] = {}
    for entry in plan.kernels:
        kernel = program.kernels.kernel(entry.name)
        files[entry.ptx] = kernel.ptx.encode()
        if entry.cubin is not None and kernel.cubin is not None:
            files[entry.cubin] = kernel.cubin
    files["plan.json"] = (json.dumps(plan.as_json()) + "\n").encode()
    files[f"{name}.h"] = header(plan).encode()
    files[f"{name}.c"] = source(plan).encode()
    files[f"{name}.f90"] = fortran_module(plan).encode()
    files["CMakeLists.txt"] = cmake_lists(name).encode()
    return files


def write_bundle(program: CompiledProgram, steps: int | None, folder: Path) -> list[Path]:
    """Write a bundle's files into a folder, made if missing."""
    files = bundle_files(program, steps)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]
