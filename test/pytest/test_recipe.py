"""The recipe of the conda package has version, requirements and script of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "packaging/conda/recipe.yaml").read_text()
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = WHOLE["project"]

NAMES = {"nvidia-nvjitlink": "libnvjitlink"}
"""Packages of conda-forge with another name."""


def bounds(requirement: str) -> tuple[str, str]:
    """Name and versions of a requirement: `xdsl`, `>=0.74,<0.75`."""
    plain = re.sub(r"\[.*?\]|;.*", "", requirement).strip()
    name = re.match(r"[\w-]+", plain)
    assert name is not None, requirement
    return NAMES.get(name[0], name[0]), plain[name.end() :].strip()


def listed() -> dict[str, str]:
    """The requirements of the recipe to run."""
    run = RECIPE.partition("  run:\n")[2].partition("\ntests:")[0]
    return dict(bounds(line) for line in re.findall(r"- ([\w-]+ [><=].*)$", run, re.MULTILINE))


def test_the_recipe_requires_what_the_project_requires():
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["assembler"]]
    expected = dict(map(bounds, needed)) | {"python": PROJECT["requires-python"]}
    found = listed()
    assert {name: found[name] for name in expected} == expected
    of_llvm = [bounds(each)[0] for each in requires("xdsl") or () if 'extra == "llvm"' in each]
    assert set(found) == {*expected, *of_llvm}


def test_the_recipe_has_the_version_and_the_script_of_the_project():
    assert f'version: "{PROJECT["version"]}"' in RECIPE
    (script,) = PROJECT["scripts"].items()
    assert f"- {' = '.join(script)}\n" in RECIPE
    (setuptools,) = WHOLE["build-system"]["requires"]
    assert f"- {' '.join(bounds(setuptools))}\n" in RECIPE
