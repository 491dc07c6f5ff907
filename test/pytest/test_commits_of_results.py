"""Results say where, with what, how and at which commit they were made; commits are of history."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


FACTS = {
    "device": re.compile(r'"(device|machine|arch)":'),
    "versions": re.compile(r'"(versions|xdsl|numpy|driver|toolkit|compiler)":'),
    "command": re.compile(r'"command":'),
    "commit": re.compile(r'"\w*commit\w*":'),
}
"""What each file of results says, by the keys that say it."""

NOT_MEASURED = ("branch-commits", "ptx-hashes")

OLDER = {
    "device": {"devito-tests"},
    "versions": {
        "arrays-h200", "batches-h200", "h100-devito", "h200-growth", "h200-growth-3d", "h200-large",
        "h200-search", "h200-search-3d", "math-h200", "order-of-terms-h100", "part-costs",
        "part-schedules", "points", "program-schedules-h200", "programs-h200", "python-h200",
        "real-counters-h200", "several-gpus", "several-gpus-predicted", "several-gpus-ways",
        "simulations", "storage-schedules-h200", "strips-h200", "sweeps", "sweeps-first-axis",
        "sweeps-last-axis", "sweeps-lines", "sweeps-one-line", "sweeps-rows", "sweeps-sections",
        "system-schedules",
    },
    "command": {
        "convolutions", "h200-growth", "h200-growth-3d", "h200-large", "h200-rules", "h200-search",
        "h200-search-3d", "part-costs", "points", "several-gpus-predicted", "sweeps",
        "sweeps-last-axis",
    },
    "commit": set[str](),
}  # fmt: skip
"""Files from before, which lack a fact: no new file may."""


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


@pytest.mark.parametrize("fact", FACTS)
def test_results_say_how_they_were_made(fact: str):
    texts = {path.stem: path.read_text() for path in RESULTS.glob("*.json")}
    lacking = {name for name, text in texts.items() if FACTS[fact].search(text) is None}
    assert lacking <= {*OLDER[fact], *NOT_MEASURED}
