"""Writes reference.md from signatures and docstrings. `--check` fails for an outdated page."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xdsl.ir import Attribute, Dialect, Operation
from xdsl.utils.str_enum import StrEnum

import timetile
from timetile.lowering import pipelines
from timetile.lowering.universe import DIALECTS, PASSES, TARGETS

PAGE = Path(__file__).parent / "reference.md"

OPENING = """\
# Reference

This page is made by `docs/make_reference.py` from the docstrings; a test keeps it current. The
command line is in [command_line.md](command_line.md), how it all fits together in
[architecture.md](architecture.md).

- [Python](#python)
- [Passes](#passes), [target](#target)
- [Dialects](#dialects): {dialects}
"""

PYTHON = (
    "stencil",
    "Model",
    "Field",
    "Scalar",
    "where",
    "coordinate",
    "extent",
    "StencilError",
    "compile",
    "CompiledProgram",
    "RunResult",
    "CompileError",
    "pipeline",
    "wait_for_schedules",
)

METHODS = {"Model": ("advance", "on", "program", "module", "mlir", "explain")}
"""Members of classes with a separate paragraph."""


def documentation(item: object) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(getattr(item, "__doc__", None) or "")
    return re.sub(r"\n(After\b)", r"\n\n\1", text)


def shown_parameter(parameter: inspect.Parameter) -> str:
    """`name: type = default`."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    text += f": {parameter.annotation}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def signature(name: str, item: Any) -> str:
    """`name(a: int, *, b: int = 1) -> int`; long signatures have one parameter a line."""
    found = inspect.signature(item)
    shown: list[str] = []
    for parameter in found.parameters.values():
        keyword_only = parameter.kind is parameter.KEYWORD_ONLY
        if keyword_only and not any(text.startswith("*") for text in shown):
            shown.append("*")
        if parameter.name != "self":
            shown.append(shown_parameter(parameter))
    result = found.return_annotation
    arrow = "" if result in (None, "None") else f" -> {result}"
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) <= 90:
        return line
    return f"{name}(\n" + "".join(f"    {s},\n" for s in shown) + f"){arrow}"


def python() -> Iterator[str]:
    """The names offered by `import timetile`."""
    yield "## Python\n"
    for name in PYTHON:
        item: Any = getattr(timetile, name)
        yield f"### timetile.{name}\n"
        if inspect.isfunction(item):
            yield f"```python\n{signature(name, item)}\n```\n"
        elif name == "CompiledProgram":
            yield f"```python\n{signature('program', item.__call__)}\n```\n"
        yield f"{documentation(item)}\n"
        for method in METHODS.get(name, ()):
            member: Any = getattr(item, method)
            head = method if isinstance(member, property) else signature(method, member)
            yield f"```python\n{head}\n```\n\n{documentation(member)}\n"
    yield "### Parts of the pipeline\n"
    yield "In `timetile.lowering.pipelines`, for frontends that put passes of their own between:\n"
    for part in (pipelines.temporal_passes, pipelines.tile_passes, pipelines.thread_passes):
        text = " ".join(documentation(part).split())
        yield f"- `{signature(part.__name__, part)}`: {text}"
    yield ""
    yield "### Environment\n"
    yield (
        "- `TIMETILE_CACHE_DIR`: below which the folder of the disk cache lies, in place of the "
        "user's own."
    )
    yield (
        "- `TIMETILE_CACHE_SIZE`: the bytes that its entries have together at most (`500M`, "
        "`2G`), 1 GiB unless set."
    )
    yield "- `TIMETILE_NUM_THREADS`: the threads of the executor `cpu`, in place of all cores."
    yield "- `TIMETILE_PROCESSES`: the processes that compile side by side, in place of one a core."
    yield "- `TIMETILE_TUNE`: if 1, the first run of a program on a GPU measures schedules."
    yield (
        "- `TIMETILE_WAIT_FOR_SCHEDULES`: if 1, no run begins before its schedule is chosen: see "
        "`timetile.wait_for_schedules`."
    )
    yield "- `TIMETILE_TRIALS`: if 0, no long run on a GPU tries other schedules on its own steps."
    yield '- Messages go to `logging.getLogger("timetile")`.\n'


def words_of(hint: Any) -> list[str]:
    """The words of an option's type, an enumeration or a Literal; none for other types."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    kind = kinds[0] if len(kinds) == 1 else hint
    if get_origin(kind) is Literal:
        return list(map(str, get_args(kind)))
    return list(map(str, kind)) if isinstance(kind, type) and issubclass(kind, StrEnum) else []


def options(item: Any) -> Iterator[str]:
    """The options of a pass or a target: the fields of the dataclass."""
    if not dataclasses.is_dataclass(item):
        return
    fields = [f for f in dataclasses.fields(item) if f.name != "name"]
    if not fields:
        return
    hints = get_type_hints(item)
    yield "| option | type | default |\n|---|---|---|"
    for found in fields:
        kind = str(found.type).removesuffix(" | None").replace("|", "\\|")
        if words := words_of(hints[found.name]):
            kind = ", ".join(words)
        default = "" if found.default is None else f"`{found.default}`"
        yield f"| `{found.name.replace('_', '-')}` | `{kind}` | {default} |"
    yield ""


def text_of_pass(item: Any) -> str:
    """A pass is documented at the beginning of its file, unless several passes share the file."""
    own = documentation(item)
    if "module's documentation" not in own:
        return own
    return documentation(inspect.getmodule(item)).split(": ", 1)[1]


def passes() -> Iterator[str]:
    yield "## Passes\n"
    yield (
        "As `xdsl-opt -p 'name{option=value}'` takes them, in the order of the pipeline. What an "
        "option without a default is about is read from the loop's schedule, or chosen.\n"
    )
    ordered = dict.fromkeys([item.name for item in timetile.pipeline()] + list(PASSES))
    for name in ordered:
        item = PASSES[name]()
        text = text_of_pass(item)
        yield f"### {name}\n\n{text[0].upper()}{text[1:]}\n"
        yield from options(item)
    yield "## Target\n"
    for name, factory in TARGETS.items():
        yield f"### -t {name}\n\n{documentation(factory())}\n"
        yield from options(factory())


def entry(item: type[Operation] | type[Attribute]) -> str:
    """One operation, type or attribute."""
    text = re.sub(r"\n*Example:\s*\n?", "\n\nExample:\n", documentation(item))
    return f"#### {item.name}\n\n{text.strip()}\n"


def dialects() -> Iterator[str]:
    yield "## Dialects\n"
    for name, factory in DIALECTS.items():
        dialect: Dialect = factory()
        yield f"### {name}\n"
        about = documentation(import_module(f"timetile.dialects.{name}")).split(": ", 1)[1]
        yield f"{about[0].upper()}{about[1:]}\n"
        for item in (*dialect.operations, *dialect.attributes):
            yield entry(item)


def page() -> str:
    """The whole page."""
    names = ", ".join(f"[{name}](#{name})" for name in DIALECTS)
    parts = [OPENING.format(dialects=names), *python(), *passes(), *dialects()]
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        sys.exit("docs/reference.md is not current; run `make docs`")


if __name__ == "__main__":
    main()
