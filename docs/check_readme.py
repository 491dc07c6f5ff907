"""Runs the commands and the Python of README.md, from the root, and fails where one of them does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def main() -> None:
    commands, programs = blocks("sh"), blocks("python")
    if not commands or not programs:
        sys.exit("README.md has no commands or no Python")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        # The tools beside this interpreter, whether or not its environment is active.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "TIMETILE_CACHE_DIR": f"{folder}/cache"}
        scripts = [["bash", "-euo", "pipefail", "-c", text] for text in commands]
        # One after the other in one process: later blocks use earlier names.
        scripts.append([sys.executable, "-c", "\n".join(programs)])
        for script in scripts:
            done = subprocess.run(script, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            if done.returncode:
                sys.exit(f"README.md: this fails:\n{script[-1]}")


if __name__ == "__main__":
    main()
