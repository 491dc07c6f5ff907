"""
Settings of Sphinx for the site of the pages: `make site`.

Pages are Markdown (MyST), readable in the repository as well.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent

project = "timetile"
copyright = "The timetile authors. Apache-2.0 WITH LLVM-exception"
author = "The timetile authors"

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["*.py", "requirements.txt"]

# Headings can be linked to, as on GitHub: architecture.md#levels.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Wide tables of figures and long lines of IR stay wide.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "timetile"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sourcelink = False
# Links to other sites are followed on request only: `make links`.
linkcheck_timeout = 20
linkcheck_retries = 2

FOLDER_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\.[^)#\s]*)\)")


def name_the_file(app: Sphinx, page: str, source: list[str]) -> None:
    """Replaces a link to a file outside docs/, without a page, by the file's name."""
    here = (DOCS / page).parent

    def replaced(link: re.Match[str]) -> str:
        target = (here / link[2]).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        return f"{link[1]} (`{target.relative_to(DOCS.parent)}` in the repository)"

    source[0] = FOLDER_LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> None:
    """Registers the changes of each page before reading."""
    app.connect("source-read", name_the_file)
