"""`timetile example`: the programs of examples/, installed with the package."""

from __future__ import annotations

import ast
import re
import shlex
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from timetile.runtime.cli.options import Options
from timetile.runtime.cli.outputs import check_output, written
from timetile.runtime.cli.terminal import Log, say
from timetile.runtime.cli.usage import UsageError

DRAWS = "draw.py"
"""A file beside the examples in Python that is no example."""


def examples() -> dict[str, Traversable]:
    """The examples by name: `heat2d` is a program in MLIR, `python/heat` a time step in Python."""
    folder = files("timetile") / "examples"
    found: dict[str, Traversable] = {}
    for prefix, place, ending in (("", folder, ".mlir"), ("python/", folder / "python", ".py")):
        for path in sorted(place.iterdir(), key=lambda path: path.name):
            if path.name.endswith(ending) and path.name not in (DRAWS, "__init__.py"):
                found[prefix + path.name.removesuffix(ending)] = path
    return found


def title_of(text: str) -> str:
    """The first paragraph of a program's comment, or of a docstring, as one line."""
    if text.startswith("//"):
        first = text.partition("//\n")[0]
        return " ".join(line.removeprefix("//").strip() for line in first.splitlines())
    first = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    return " ".join(first.split())


def command_of(path: Path, text: str) -> str:
    """The command running an example, from the example's header."""
    if path.suffix == ".py":
        return f"python {shlex.quote(str(path))}"
    header = re.sub(r"^//", "", text, flags=re.MULTILINE)
    command = re.findall(r"^ {3}(timetile run .*(?:\n {7}.*)*)", header, re.MULTILINE)[0]
    return " ".join(command.split()).replace(path.name, shlex.quote(str(path)))


def example(options: Options, log: Log) -> int:
    """`timetile example`."""
    known = examples()
    if options.name is None:
        if options.out is not None:
            raise UsageError("--out needs the name of an example; timetile example lists the names")
        width = max(map(len, known))
        for name, path in known.items():
            say(f"{name:<{width}}  {title_of(path.read_text())}")
        return 0
    if options.name not in known:
        raise UsageError(
            f"there is no example {options.name!r}; the examples are {', '.join(known)}"
        )
    text = known[options.name].read_text()
    if options.out is None:
        say(text.rstrip("\n"))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / known[options.name].name
    check_output(target)
    with written(target) as file:
        file.write(text.encode())
    say(f"wrote {target}")
    say(f"run it: {command_of(target, text)}")
    return 0
