"""What README, the tutorial and the how-tos say, typed in the order of the page in a fresh home."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from shell_pages import ROOT, PageShell, is_run, saved, typed

PAGES = [ROOT / "docs" / "tutorial.md"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_command_of_the_page_does_what_the_page_says(page: Path) -> None:
    # Not pytest's folder: a table folds its long name.
    with tempfile.TemporaryDirectory(prefix="page-") as folder, PageShell(Path(folder)) as shell:
        for name, text in saved(page).items():
            (Path(folder) / name).write_text(text)
        for wanted in typed(page):
            if is_run(wanted.command):
                shell.run(wanted)
