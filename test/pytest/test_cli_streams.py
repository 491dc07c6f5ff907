"""What a process of the command line does where nobody takes its answer."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", ["cache path", "compile {heat} --emit hardware --depth 1"])
def test_a_reader_that_leaves_is_no_error(command: str, heat: Path):
    """As in `timetile compile heat.mlir | head -1`."""
    script = "import sys; from timetile.runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = shlex.split(command.format(heat=heat))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_disk_under_the_answer_is_one_sentence(heat: Path):
    script = "import sys; from timetile.runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script, "compile", str(heat), "--emit", "temporal"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "timetile: cannot read or write: No space left on device\n"
