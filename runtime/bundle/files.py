"""Writes a bundle: kernels, plan, header and source, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

from timetile.runtime.bundle.c_host import header, source
from timetile.runtime.bundle.c_names import c_word
from timetile.runtime.bundle.plan import bundle_plan
from timetile.runtime.program.compiled_program import CompiledProgram


def bundle_files(program: CompiledProgram, steps: int | None) -> dict[str, bytes]:
    """
    The files of a bundle by name: each kernel as machine code if an assembler is there, otherwise
    as PTX; `plan.json`; a C header and source. Raises CompileError for a program that needs the
    host during a run.
    """
    plan = bundle_plan(program, steps)
    name = c_word(plan.name)
    files: dict[str, bytes] = {}
    for entry in plan.kernels:
        kernel = program.kernels.kernel(entry.name)
        files[entry.file] = kernel.ptx.encode() if kernel.cubin is None else kernel.cubin
    files["plan.json"] = (json.dumps(plan.as_json(), indent=2) + "\n").encode()
    files[f"{name}.h"] = header(plan).encode()
    files[f"{name}.c"] = source(plan).encode()
    return files


def write_bundle(program: CompiledProgram, steps: int | None, folder: Path) -> list[Path]:
    """Write a bundle's files into a folder, made if missing."""
    files = bundle_files(program, steps)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]
