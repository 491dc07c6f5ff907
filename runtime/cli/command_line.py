"""
The command line: `timetile run`, `compile`, `explain`, `tune`, `example`, `cache` and `doctor`.
"""

from __future__ import annotations

import argparse
import re
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, get_args

import timetile
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.targets.target import NAMES
from timetile.runtime.cli import emit, example, explain, machine, run, tune
from timetile.runtime.cli.failures import WRONG_KERNEL, sentence
from timetile.runtime.cli.interrupts import ended_by_sigterm
from timetile.runtime.cli.options import NO_PROGRAM, CacheAction, Emit, Options
from timetile.runtime.cli.start import SHAPES
from timetile.runtime.cli.terminal import (
    Log,
    complain,
    discard_answer,
    discard_answer_that_fails,
    flush_answer,
    logging_to_stderr,
    tolerate_narrow_terminals,
)
from timetile.runtime.kernels.options import Halos
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.program.compiled_program import Executor

Command = Callable[[Options, Log], int]

NEAR = 0.75
"""The least likeness of a wrong option and the option meant, between 0 and 1."""

COMMANDS = "run|compile|explain|tune|example|cache|doctor"
"""What the command line does."""

LARGEST = 2**63 - 1
"""The largest number taken by options."""

LARGEST_DIGITS = 100
"""Digits, leading zeros included, above which a number is refused unread."""


class SentenceParser(argparse.ArgumentParser):
    """A parser with errors of one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        """End with one sentence, and exit status 2."""
        self.exit(2, f"timetile: {message}; see {self.prog} --help\n")


def unknown_option(parser: argparse.ArgumentParser, word: str) -> str:
    """A sentence about a word of the command line without a meaning, with the nearest option."""
    name, _, _ = word.partition("=")
    known = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", parser.format_help())
    near = get_close_matches(name, sorted(set(known)), 1, NEAR)
    hint = f"; write {near[0]}" if near else ""
    kind = "option" if word.startswith("-") else "argument"
    return f"{name} is no {kind} of {parser.prog}{hint}"


def natural(text: str) -> int:
    """An integer of 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    if len(text) > LARGEST_DIGITS or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {LARGEST}, the largest that fits")
    return int(text)


def positive(text: str) -> int:
    """An integer above zero."""
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("0 is not a number of 1 or more")
    return int(text)


def add_arithmetic_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change the last bits of results."""
    parser.add_argument(
        "--fp-contract",
        choices=get_args(FpContract),
        default="fast",
        help="fuse products and sums everywhere (the default), by fastmath flags only, or nowhere",
    )
    parser.add_argument(
        "--fp-division",
        choices=get_args(FpDivision),
        default="exact",
        help=(
            "quotients and roots: correctly rounded except for relaxing fastmath flags (the "
            "default), or approximate"
        ),
    )
    parser.add_argument(
        "--fp-reassoc",
        choices=get_args(FpReassoc),
        default="flags",
        help=(
            "sums are factored, and take terms by planes: all, those with fastmath flags (the "
            "default), or none"
        ),
    )


def add_program_options(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the options shared by `run`, `compile`, `explain` and `tune`."""
    parser.add_argument(
        "program",
        type=Path,
        nargs="?" if optional else None,
        default=NO_PROGRAM,
        metavar="PROGRAM.mlir",
        help="a function with a time loop; - for standard input",
    )
    parser.add_argument(
        "--function", metavar="NAME", help="the function, for programs with several functions"
    )
    parser.add_argument(
        "--arch", choices=NAMES, help="an architecture or a part; the GPU's own, or sm_90"
    )
    parser.add_argument(
        "--device", type=natural, metavar="N", help="the GPU's number, 0 unless given"
    )
    parser.add_argument("--depth", type=positive, metavar="N", help="time steps of a kernel")
    add_arithmetic_options(parser)
    parser.add_argument(
        "--halos",
        choices=get_args(Halos),
        default="compared",
        help="halos of buffers that take turns: compared before a run (the default), equal by "
        "promise, or each buffer's own",
    )
    parser.add_argument(
        "--bound-waits",
        action="store_true",
        help="report endless waits for blocks or warps instead of hanging",
    )
    parser.add_argument(
        "--pipeline", metavar="PASSES", help="replaces the passes from time loops to placed kernels"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="compile anew, and keep nothing on disk"
    )


def add_rank_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run` on several GPUs, and under mpiexec."""
    parser.add_argument(
        "--gpus", type=positive, metavar="N",
        help="the number of GPUs that share the domain",
    )  # fmt: skip
    parser.add_argument(
        "--parts", metavar="MxN",
        help="of several GPUs or processes, the number of parts along each axis",
    )  # fmt: skip
    parser.add_argument(
        "--exchange-every", type=positive, metavar="K",
        help="of several GPUs or processes, the steps between two exchanges; chosen unless given",
    )  # fmt: skip


def add_tune_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tune`."""
    add_program_options(parser, optional=True)
    parser.add_argument(
        "--args", type=Path, metavar="IN.npz", help="arrays as arg0, as arr_0 or by name"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="a scalar by name or position, 0.1 unless given; a field gets the value everywhere",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=positive, metavar="S", help="the limit of time, 20 unless given"
    )
    parser.add_argument(
        "--show", action="store_true", help="list the measured schedules kept in the cache"
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add_program_options(parser)
    parser.add_argument(
        "--steps", type=natural, metavar="N", help="replaces the loops' trip counts"
    )
    parser.add_argument(
        "--args", type=Path, metavar="IN.npz", help="arrays as arg0, as arr_0 or by name"
    )
    parser.add_argument(
        "--out", type=Path, metavar="OUT.npz", help="the fields after the run, as arg0"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="a scalar by name or position; a field gets the value everywhere",
    )  # fmt: skip
    parser.add_argument(
        "--init",
        choices=tuple(SHAPES),
        help="fill written fields without values with a shape",
    )
    parser.add_argument(
        "--random",
        type=natural,
        metavar="SEED",
        help="fill all other fields without values with random numbers",
    )
    parser.add_argument(
        "--random-range", action="append", default=[], metavar="FIELD=LOW:HIGH",
        help="range of a field's random numbers; default 0:1, and 0.05:0.15 for fields without "
            "writes",
    )  # fmt: skip
    parser.add_argument(
        "--snapshot-every", type=positive, metavar="K",
        help="write the fields after every K steps, beside OUT.npz or to the file of --keep",
    )  # fmt: skip
    parser.add_argument(
        "--keep", type=Path, metavar="RUN.zarr",
        help="a Zarr group, or an HDF5 file (.h5), for the last time level after every K steps",
    )  # fmt: skip
    parser.add_argument(
        "--first-step", type=natural, metavar="N",
        help="the number of the first step, 0 or the snapshot's unless given",
    )  # fmt: skip
    parser.add_argument("--executor", choices=get_args(Executor), help="gpu if present, else cpu")
    parser.add_argument(
        "--threads", type=positive, metavar="N",
        help="threads of the cpu executor; default TIMETILE_NUM_THREADS, or all cores",
    )  # fmt: skip
    add_rank_options(parser)
    parser.add_argument(
        "--check", action="store_true", help="compare with another executor, bit for bit"
    )
    parser.add_argument("--plot", type=Path, metavar="OUT.png", help="a picture of start and end")
    parser.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None,
        help="show how far the run is; on a terminal unless given",
    )  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="say nothing but warnings, errors and differences"
    )


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    about = (timetile.__doc__ or "").partition("\n")[0]
    parser = SentenceParser(prog="timetile", description=about)
    parser.add_argument("--version", action="version", version=f"timetile {timetile.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar=COMMANDS)

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, help=text, description=text)
        sub.add_argument("--verbose", action="store_true", help="show compilations and launches")
        sub.set_defaults(command=command, parser=sub)
        return sub

    add_run_options(add("run", run.run, "run a program on arrays"))

    sub = add("compile", emit.compile, "show a program at one level of the compiler")
    add_program_options(sub)
    sub.add_argument("-o", "--out", type=Path, metavar="FILE", help="stdout unless given")
    sub.add_argument("--emit", choices=get_args(Emit), default="ptx", help="ptx unless given")
    sub.add_argument(
        "--steps", type=natural, metavar="N", help="number of steps named in a bundle's header"
    )

    sub = add(
        "explain",
        explain.explain,
        "tell a program's predicted speed, its limits, and possible changes",
    )
    add_program_options(sub)
    sub.add_argument(
        "--all",
        action="store_true",
        help="show the time loop, the kernels, the cost model, the buffers, too",
    )
    sub.add_argument(
        "--steps", type=natural, metavar="N", help="count the launches of N steps, shown by --all"
    )
    sub.add_argument(
        "--gpus", type=positive, metavar="N", dest="of_gpus",
        help="show what exchanges between N GPUs cost; none is needed",
    )  # fmt: skip
    sub.add_argument(
        "--parts", metavar="MxN", help="of several GPUs, the number of parts along each axis"
    )

    add_tune_options(
        add("tune", tune.tune, "measure the best few schedules on the GPU, and keep the fastest")
    )

    sub = add("example", example.example, "list, show or write the examples")
    sub.add_argument("name", nargs="?", metavar="NAME", help="all are listed unless given")
    sub.add_argument("--out", type=Path, metavar="DIR", help="write the example to a file in DIR")

    sub = add("cache", machine.cache, "show, verify or clear the disk cache of kernels")
    sub.add_argument(
        "action", choices=get_args(CacheAction), metavar="|".join(get_args(CacheAction))
    )
    add("doctor", machine.doctor, "look for driver, GPU, assembler and cache")
    return parser


@in_standard_modes
def run_command(options: Options) -> int:
    """Run the chosen command, and explain a failure in one sentence. Returns the exit status."""
    with logging_to_stderr(verbose=options.verbose) as log:
        try:
            with ended_by_sigterm():
                code = options.command(options, log)
            flush_answer()
            return code
        except BrokenPipeError:
            # The reader of the output has left, as `head` does.
            discard_answer()
            return 1
        except (Exception, KeyboardInterrupt) as error:
            message, code = sentence(error)
            if options.verbose and code == WRONG_KERNEL:
                traceback.print_exc()
    discard_answer_that_fails()
    complain(message)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `timetile`: 0 for success, 2 for a failure the user can mend."""
    tolerate_narrow_terminals()
    try:
        options, unknown = make_parser().parse_known_args(arguments, namespace=Options())
        if unknown:
            options.parser.error(unknown_option(options.parser, unknown[0]))
    except SystemExit:
        discard_answer_that_fails()
        raise
    return run_command(options)
