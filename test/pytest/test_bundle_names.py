"""
Names in a bundle are made, not taken: its files lie in its folder, and its header and source are
valid C whatever the program's names are.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import timetile
from test_bundle import HERE, compiler_of
from timetile.runtime.bundle.c_names import LONGEST, c_name, c_word, distinct_names
from timetile.runtime.bundle.files import write_bundle

PROGRAM = """
func.func @{name}(%{a}: !stencil.field<[-1,65]xf64>, %{b}: !stencil.field<[-1,65]xf64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %t = %c0 to %c3 step %c1 iter_args(%u = %{a}, %v = %{b})
      -> (!stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>) {{
    %x = stencil.load %u : !stencil.field<[-1,65]xf64> -> !stencil.temp<?xf64>
    %y = stencil.apply(%w = %x : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {{
      %l = stencil.access %w[-1] : !stencil.temp<?xf64>
      stencil.return %l : f64
    }}
    stencil.store %y to %v(<[0], [64]>) : !stencil.temp<?xf64> to !stencil.field<[-1,65]xf64>
    scf.yield %v, %u : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  }}
  return
}}
"""

NAMES = (
    "../../evil", "/etc/evil", 'x\\"y', "a\\0Ab", "a*/b", "a\\\\b", "2d", "h" * 300, "%s",
    "int", "",
)  # fmt: skip
"""Names of functions as in a program's text."""


def bundle(folder: Path, name: str = "heat", a: str = "a", b: str = "b") -> list[Path]:
    """The files of the bundle of a small program."""
    text = PROGRAM.format(name=f'"{name}"', a=a, b=b)
    program = timetile.compile(text, executor="planes", depth=1, halos="apart", cache=False)
    return write_bundle(program, None, folder)


def builds(folder: Path) -> None:
    """Compile the C of a bundle as C and as C++, and its Fortran where a compiler is there."""
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    driver = ["-Wno-unused-parameter", f"-I{HERE / 'support' / 'driver'}", f"-I{folder}"]
    (source,), (module,) = folder.glob("*.c"), folder.glob("*.f90")
    for compiler in ([compiler_of("c"), "-std=c99"], [compiler_of("c++"), "-x", "c++"]):
        subprocess.run([*compiler, *flags, *driver, str(source)], check=True)
    if shutil.which("gfortran"):
        words = ["gfortran", "-std=f2008", *flags, str(module)]
        subprocess.run(words, check=True, cwd=folder)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_any_function_lie_in_the_folder_and_build(name: str, tmp_path: Path):
    folder = tmp_path / "a" / "b" / "bundle"
    written = bundle(folder, name)
    every = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.resolve() for path in written} == {path.resolve() for path in every}
    assert all(path.parent == folder for path in every)
    plan = json.loads((folder / "plan.json").read_text())
    assert all((folder / kernel["ptx"]).is_file() for kernel in plan["kernels"])
    builds(folder)


@pytest.mark.parametrize(
    ("a", "b"), [("int", "for"), ("class", "new"), ("template", "NULL"), ("errno", "and")]
)
def test_fields_named_by_words_of_c_and_cpp_build(a: str, b: str, tmp_path: Path):
    bundle(tmp_path, a=a, b=b)
    header = (tmp_path / "heat.h").read_text()
    assert all(f"CUdeviceptr {name}_;" in header for name in (a, b))
    builds(tmp_path)


def test_names_are_words_of_c_and_distinct():
    drawn = ["a", "A", "a.b", "a_b", "int", "int_", "NULL", "CUstream", "__x", "_T", "1", "x" * 99]
    made = distinct_names(drawn)
    assert len({name.casefold() for name in made}) == len(drawn)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in made)
    assert c_name("heat") == "heat"
    assert len(c_word("x" * 300)) == LONGEST
    assert c_word("x" * 300) != c_word("x" * 299)
    assert c_word("é") == "_"
