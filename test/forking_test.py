"""
A format of lit's tests without the start of a process for every command: xdsl-opt, filecheck, diff
and a line of Python run in processes forked after all imports, or in lit's process if the command
changes nothing there. `not` stands before a command that has to fail. Tests with other commands,
and tests with a command that ends otherwise, run in lit's own shell, which reports the end. As in
pytest, questions for IR have quick answers, and operations of equal forms are verified once.
"""

from __future__ import annotations

import filecmp
import gc
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from filecheck.main import main as filecheck
from xdsl.irdl import OpDef
from xdsl.tools.xdsl_opt import main as xdsl_opt

from support.known_forms import verify_new_forms
from support.plain_classes import ask_by_bases
from support.quick_ir import answer_quickly
from timetile.lowering.universe import TIMETILE_UNIVERSE

lit: Any = SimpleNamespace(
    runner=import_module("lit.TestRunner"),
    formats=import_module("lit.formats"),
    commands=import_module("lit.ShCommands"),
    parser=import_module("lit.ShUtil"),
    test=import_module("lit.Test"),
)
"""Modules of lit; lit has no types."""

Redirection = tuple[tuple[Any, ...], str]
"""
The operator, with the number of the file if the line has a number, and the place of the output.
"""


class Command(Protocol):
    """A command of a line, as parsed by lit."""

    args: list[str]
    redirects: list[Redirection]


class Pipeline(Protocol):
    """Commands in a pipe, as parsed by lit: each reads the output of the command before."""

    commands: list[Command]


def diff() -> None:
    """Whether two files hold the same bytes, as a status."""
    first, second = sys.argv[1:]
    sys.exit(not filecmp.cmp(first, second, shallow=False))


def python() -> None:
    """Runs the text behind `-c`; its arguments follow."""
    _, option, text, *arguments = sys.argv
    assert option == "-c"
    sys.argv = [option, *arguments]
    exec(text, {"__name__": "__main__"})


PROGRAMS: dict[str, Callable[[], object]] = {
    "xdsl-opt": xdsl_opt,
    "filecheck": filecheck,
    "diff": diff,
    "python": python,
}

ONLY_LOOK = ("filecheck", "diff")
"""Programs that only read, and keep nothing for the next run in a process."""

REDIRECTIONS = {(">",): 1, (">", 2): 2, (">&", 2): 2}
"""Known redirections, by the file number: `> file`, `2> file` and `2>&1`."""


def commands_of(test: Any) -> list[Pipeline] | None:
    """The pipelines of a test's RUN lines; None for lines with anything but programs in pipes."""
    script = lit.runner.parseIntegratedTestScript(test)
    if isinstance(script, lit.test.Result):
        return None
    paths = lit.runner.getTempPaths(test)
    substitutions = lit.runner.getDefaultSubstitutions(test, *paths)
    lines: list[str] = lit.runner.applySubstitutions(script, substitutions)
    pipelines = [pipeline for line in lines if (pipeline := parsed(line)) is not None]
    return pipelines if len(pipelines) == len(lines) else None


def parsed(line: str) -> Pipeline | None:
    """A line as a pipeline of known programs; None for any other line."""
    match = re.fullmatch(lit.runner.kPdbgRegex, line)
    text = line if match is None else match.group(2)
    found = lit.parser.ShParser(text, pipefail=True).parse()
    if not isinstance(found, lit.commands.Pipeline) or found.negate:
        return None
    pipeline: Pipeline = found
    known = all(
        command.args[fails(command)] in PROGRAMS
        and all(how in REDIRECTIONS for how, _ in command.redirects)
        for command in pipeline.commands
    )
    return pipeline if known else None


def fails(command: Command) -> bool:
    """Whether the program behind `not` has to fail, other than by a signal."""
    return command.args[0] == "not"


def succeeds(pipeline: Pipeline) -> bool:
    """
    Whether all programs of a pipeline end as they have to; each runs after the end of the program
    before.
    """
    given = os.open(os.devnull, os.O_RDONLY)
    right = True
    for command in pipeline.commands:
        answer = os.memfd_create("answer")
        failing = fails(command)
        status = run(command.args[failing:], command.redirects, given, answer)
        right &= status > 0 if failing else status == 0
        os.close(given)
        given = answer
        os.lseek(given, 0, os.SEEK_SET)
    os.close(given)
    return right


def looked(words: list[str], given: int) -> int:
    """The status of a program that only reads, in this process; the output is dropped."""
    own, sys.argv = sys.argv, words
    before = sys.stdin
    try:
        with (
            open(given, closefd=False) as sys.stdin,
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            PROGRAMS[words[0]]()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        return 1
    finally:
        sys.argv, sys.stdin = own, before
    return 0


def run(words: list[str], redirections: Sequence[Redirection], given: int, answer: int) -> int:
    """The status of a program with input and output files, given by their numbers."""
    if words[0] in ONLY_LOOK and not redirections:
        return looked(words, given)
    sys.stdout.flush()
    sys.stderr.flush()
    if process := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    status = 1
    try:
        os.dup2(given, 0)
        os.dup2(answer, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        redirect(redirections)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = words
        PROGRAMS[words[0]]()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def redirect(redirections: Sequence[Redirection]) -> None:
    """The redirections of a command's line, in order."""
    for how, where in redirections:
        if how[0] == ">&":
            os.dup2(int(where), REDIRECTIONS[how])
            continue
        path = Path(where)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), REDIRECTIONS[how])


class ForkingTest(lit.formats.ShTest):
    """Tests of lit's internal shell, run in forked processes if possible."""

    def __init__(self) -> None:
        lit.formats.ShTest.__init__(self, execute_external=False)
        if can_fork():
            for factories in (TIMETILE_UNIVERSE.all_passes, TIMETILE_UNIVERSE.all_targets):
                for factory in factories.values():
                    factory()
            ask_by_bases()
            answer_quickly()
            OpDef.verify = verify_new_forms
            # Forked processes share what is imported, and end before a search for garbage pays.
            gc.freeze()
            gc.disable()

    def execute(self, test: Any, litConfig: Any) -> Any:
        pipelines = commands_of(test) if can_fork() else None
        if pipelines and all(succeeds(pipeline) for pipeline in pipelines):
            return lit.test.Result(lit.test.PASS, "")
        return lit.formats.ShTest.execute(self, test, litConfig)


def can_fork() -> bool:
    """Whether the format works on this system: only Linux is supported."""
    return sys.platform == "linux"
