"""Links of the documentation lead to a file of the repository, and to a heading of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor of a heading: small letters, no punctuation, hyphens for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links inside the repository."""
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def is_dead(target: str, page: Path) -> bool:
    """Whether a link of a page is dead: no file of the repository, or no heading of the file."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists() or not path.is_relative_to(ROOT):
        return True
    return bool(anchor) and path.suffix == ".md" and anchor not in anchors(path)


def dead_links(page: Path) -> list[str]:
    """The dead links of a page."""
    return [target for target in links(page) if is_dead(target, page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_of_a_page_is_dead(page: Path):
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("test_links.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A `title`, and more\n[a](#a-title-and-more) [b](#b) [c](none.md) `[d](e)`\n")
    assert dead_links(page) == ["#b", "none.md"]


def test_every_experiment_that_is_cited_is_in_the_log():
    """
    Constants and pages cite "log 141": the entry 141 is in docs/experiments/, and in the index.
    """
    folder = ROOT / "docs" / "experiments"
    entries = {
        int(number)
        for page in folder.glob("[0-9]*.md")
        for number in re.findall(r"^## Log (\d+)$", page.read_text(), re.MULTILINE)
    }
    assert entries == set(range(1, len(entries) + 1))
    listed = re.findall(r"^- \[(\d+)\]\(", (folder / "index.md").read_text(), re.MULTILINE)
    assert list(map(int, listed)) == sorted(entries)
    sources = [
        path
        for name in (
            "dialects",
            "passes",
            "lowering",
            "runtime",
            "frontend",
            "docs",
            "test",
            "benchmarks",
        )
        for path in (ROOT / name).rglob("*")
        if path.suffix in (".py", ".md", ".mlir")
    ]
    cited = {
        int(number)
        for path in sources
        for group in re.findall(r"\blog (\d+(?:(?:, | and )\d+)*)", path.read_text())
        for number in re.findall(r"\d+", group)
    }
    assert cited and cited <= entries


SOURCE = re.compile(
    r"`((?:dialects|passes|lowering|runtime|frontend|test|benchmarks|docs)/[\w./-]+)`"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path):
    # An experiment names the files of its day, and a how-to names future files of the reader.
    if page.parent.name == "experiments":
        return
    named = SOURCE.findall(page.read_text())
    made = ("my_pass", "my-pass")
    missing = [
        name for name in named if not (ROOT / name).exists() and not any(m in name for m in made)
    ]
    assert missing == []


@pytest.mark.parametrize("layer", ["passes", "runtime"])
def test_every_package_is_on_the_page_of_the_architecture(layer: str):
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = [path.parent.name for path in (ROOT / layer).glob("*/__init__.py")]
    assert packages and [name for name in packages if not re.search(f"`{name}/?`", page)] == []


def test_every_decision_is_in_the_index_with_its_title():
    folder = ROOT / "docs" / "decisions"
    index, pages = (folder / "index.md").read_text(), sorted(folder.glob("[0-9]*.md"))
    for page in pages:
        number, title = page.read_text().partition("\n")[0].removeprefix("# ").split(". ", 1)
        assert f"| {number} | [{title}]({page.name}) |" in index
        assert f"\n{page.stem}\n" in index
