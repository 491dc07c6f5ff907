"""Rows of results name commits of the project's history."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


def named_commits(text: str) -> set[str]:
    """The commits in the values of keys such as `commit`, in the text of results."""
    values = re.findall(r'"\w*commit\w*":\s*"([^"]*)"', text)
    return {commit for value in values for commit in COMMIT.findall(value)}


def history() -> set[str]:
    """The first seven digits of all commits."""
    asked = ["git", "-C", str(ROOT), "rev-list", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.returncode or (ROOT / ".git" / "shallow").exists():
        pytest.skip("the project's history is not here")
    return {line[:7] for line in found.stdout.split()}


def test_a_commit_of_a_result_is_of_the_history_or_was_rebased():
    """Commits of branches stand in `branch-commits.json`, each with commits of the history."""
    branches = json.loads((RESULTS / "branch-commits.json").read_text())["commits"]
    known = history()
    landed = [each[name] for each in branches.values() for name in ("base", "landed")]
    assert all(commit[:7] in known for commit in landed)
    known.update(commit[:7] for commit in branches)
    for path in sorted(RESULTS.glob("*.json")):
        lost = {c for c in named_commits(path.read_text()) if c[:7] not in known}
        assert not lost, f"{path.name} names {lost}: see branch-commits.json"
