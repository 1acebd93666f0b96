"""How the documentation is built: `python -m sphinx -W docs docs/_build`, `-b man` for a man page.

The reference pages that repeat what the code says are made from the code at each build.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "docs")]

import generated  # noqa: E402
from pygments.lexers.special import TextLexer  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

import agent  # noqa: E402 - the paths above come first

project = "cellagent"
author = "the cellagent authors"
version = release = agent.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "cellagent"
exclude_patterns = ["_build"]
nitpicky = False
man_pages = [
    ("reference/generated/commands", "cellagent", "drive an nRF91 kit from its host", [author], 1)
]

generated.write_all(ROOT / "docs" / "reference" / "generated")


def setup(app: Sphinx) -> None:
    """Show diagrams as their text: who draws them loads a program from the network."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-process-docstring", _show_trees)


def _show_trees(*told: object) -> None:
    """Have a docstring's tree of names shown as it stands."""
    lines = told[-1]
    assert isinstance(lines, list)
    branches = [at for at, line in enumerate(lines) if line.startswith(("├", "└", "│"))]
    if branches:
        first, end = branches[0] - 1, branches[-1] + 1
        tree = [f"    {line}" for line in lines[first:end]]
        lines[first:end] = ["::", "", *tree, ""]
