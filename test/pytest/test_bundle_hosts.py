"""
Hosts of a bundle in C, C++ and Fortran: built as users build, with all warnings and sanitizers,
and run with a driver that records each call.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import timetile
from test_bundle import DRIVEN, DRIVER, EXAMPLES, compiler_of, main_of
from timetile.runtime.bundle.files import write_bundle

HOSTS = EXAMPLES / "hosts"
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
STRICT = ["-Wall", "-Wextra", "-Werror", *SANITIZED]
CALLS = ["open", "load", "run", "advance", "advance_arrays", "latest", "error", "message", "unload"]


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bundle of the heat step, and the driver."""
    folder = tmp_path_factory.mktemp("hosts")
    write_bundle(timetile.compile(EXAMPLES / "heat2d.mlir", cache=False), None, folder / "heat2d")
    build(
        [compiler_of("c"), "-w", *SANITIZED, "-c", f"{DRIVER}/driver.c", "-o", "driver.o"], folder
    )
    return folder


def build(words: list[str], folder: Path) -> None:
    """Run a compiler in a folder; its messages are the failure's."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def host(language: str, folder: Path) -> Path:
    """The example's host in a language."""
    flags = [*STRICT, f"-I{DRIVER}", "-Iheat2d", '-DHEAT2D_FOLDER="heat2d"']
    c, made = compiler_of("c"), folder / f"host_{language}"
    build([c, "-std=c99", "-pedantic", *flags, "-c", "heat2d/heat2d.c", "-o", "heat.o"], folder)
    objects = ["heat.o", "driver.o", "-o", str(made)]
    if language == "fortran":
        sources = ["heat2d/heat2d.f90", str(HOSTS / "heat2d.f90")]
        build([compiler_of(language), "-std=f2008", *STRICT, *sources, *objects], folder)
        return made
    source, standard = {"c": ("heat2d.c", "c99"), "c++": ("heat2d.cpp", "c++11")}[language]
    build(
        [compiler_of(language), f"-std={standard}", *flags, str(HOSTS / source), *objects], folder
    )
    return made


@pytest.mark.parametrize("language", ["c", "c++", "fortran"])
def test_hosts_build_without_warnings_and_run(language: str, heat: Path):
    program = host(language, heat)
    done = subprocess.run([program, "heat2d"], cwd=heat, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *calls, cell = done.stdout.splitlines()
    calls = [json.loads(call) for call in calls]
    assert sum("launch" in call for call in calls) >= 100
    assert next(call["bytes"] for call in calls if "download" in call) == 258 * 258 * 8
    assert float(cell) == 0.0, "the driver computes nothing"


@pytest.mark.parametrize("language", ["c", "c++", "fortran"])
def test_hosts_name_kernel_and_path_of_a_failure(language: str, heat: Path):
    program = host(language, heat)
    done = subprocess.run([program, "nowhere"], cwd=heat, capture_output=True, text=True)
    assert done.returncode == 1
    sentence = "loading kernel heat2d_step from nowhere/heat2d_step.ptx: CUDA_ERROR_FILE_NOT_FOUND"
    assert sentence in done.stderr


def test_ptx_is_loaded_on_another_gpu(heat: Path):
    if not list((heat / "heat2d").glob("*.cubin")):
        pytest.skip("no assembler is there")
    program = host("c", heat)
    for other, suffix in (("", "cubin"), ("1", "ptx")):
        environment = {**os.environ, **({"STUB_OTHER_GPU": other} if other else {})}
        done = subprocess.run(
            [program, "heat2d"], cwd=heat, capture_output=True, text=True, env=environment
        )
        calls = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
        assert all(c["file"].endswith(suffix) for c in calls if "file" in c), done.stdout


def test_a_failure_of_a_run_names_the_reason_and_the_field(tmp_path: Path):
    write_bundle(timetile.compile(DRIVEN, executor="planes", depth=2, cache=False), None, tmp_path)
    text = main_of("driven", ["a", "b"], [("rate", "0.5")])
    text = text.replace("return 2;", "{ puts(driven_message(p)); driven_unload(p); return 2; }")
    (tmp_path / "main.c").write_text(text.replace("a.b = 32ull", "a.b = 40ull"))
    words = ["main.c", "driven.c", f"{DRIVER}/driver.c", f"-I{DRIVER}", "-o", "main"]
    build([compiler_of("c"), "-std=c99", *words], tmp_path)
    for steps, sentence in (
        ("-1", "running driven: the number of steps is negative (-1)"),
        ("4", "field b: a field has no address, or an address that is no multiple of 16 (-3)"),
    ):
        done = subprocess.run([tmp_path / "main", tmp_path, steps], capture_output=True, text=True)
        assert done.returncode == 2 and done.stdout.splitlines()[-1] == sentence


def test_the_source_of_a_bundle_is_cpp_and_exports_c_names(heat: Path):
    words = ["-x", "c++", "-Wall", "-Wextra", "-Werror", f"-I{DRIVER}", "heat2d/heat2d.c"]
    build([compiler_of("c++"), *words, "-c", "-o", "plus.o"], heat)
    names = subprocess.run(["nm", "plus.o"], cwd=heat, capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in names.stdout.splitlines() if " T " in line}
    assert exported == {f"heat2d_{call}" for call in CALLS}


def test_cmake_builds_the_hosts(heat: Path):
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake is on the path")
    compiler_of("c++")
    (heat / "CMakeLists.txt").write_text(f"""\
cmake_minimum_required(VERSION 3.18)
project(top LANGUAGES C)
add_library(driver STATIC {DRIVER}/driver.c)
target_include_directories(driver PUBLIC {DRIVER})
add_library(CUDA::cuda_driver ALIAS driver)
add_subdirectory({HOSTS} hosts)
""")
    build([cmake, "-S", ".", "-B", "build", f"-DBUNDLE={heat}/heat2d"], heat)
    build([cmake, "--build", "build"], heat)
    made = [
        "heat2d_c",
        "heat2d_cpp",
        *["heat2d_fortran_host"] * (shutil.which("gfortran") is not None),
    ]
    for name in made:
        program = heat / "build" / "hosts" / name
        done = subprocess.run([program, heat / "heat2d"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
