"""What a test holds against a record in a file: it is the same, or recorded anew on purpose."""

import os
from difflib import unified_diff
from pathlib import Path


def assert_recorded(file: Path, text: str) -> None:
    """Fail, with what differs, where `text` is not what `file` holds; with RECORD=1 it is now."""
    if os.environ.get("RECORD"):
        file.write_text(text, "utf-8")
    before = file.read_text("utf-8").splitlines(keepends=True)
    differs = "".join(unified_diff(before, text.splitlines(keepends=True), file.name, "now", n=0))
    test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]
    assert not differs, f"if that is meant: RECORD=1 ./scripts/test {test}\n{differs}"
