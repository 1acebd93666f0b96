"""Where the files of a test are: its recording beside it, the others beside the JUnit report."""

import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from agent.files.paths import named_path

TRANSCRIPT = "session.transcript"
_LONGEST = 200
"""Bytes of a name; a file system takes 255, with what makes it unique and says what it is."""
_UNFIT = re.compile(r"[^\w.\[\]=,+-]")


def transcript_of(item: pytest.Item) -> Path:
    """Return the recording of a test: transcripts/MODULE/TEST.transcript beside its module."""
    name = file_name(item.nodeid.partition("::")[2])
    return item.path.parent.joinpath("transcripts", item.path.stem, f"{name}.transcript")


def folder_of(item: pytest.Item) -> Path | None:
    """Return the folder of a test's files, as in `report.files/` beside `report.xml`.

    It need not exist. None where pytest writes no report.
    """
    report = getattr(item.config.option, "xmlpath", None)
    if not report:
        return None
    # Beside it also where the test has gone to a folder of its own.
    whole = item.config.invocation_params.dir / named_path(report)
    return whole.with_suffix(".files") / file_name(item.nodeid)


def file_name(nodeid: str) -> str:
    """Return a test's id, or the end of it, as the name of a file of its own."""
    # As in URLs: two tests never have one file, though their parameters are AT#XPING and AT%XPING.
    name = _UNFIT.sub(lambda unfit: quote(unfit[0], safe=""), nodeid.replace("::", "."))
    begin = name.encode()[:_LONGEST].decode(errors="ignore")
    return name if name == begin else f"{begin}~{sha256(name.encode()).hexdigest()[:16]}"


def clear(folder: Path) -> None:
    """Remove what an earlier run left there."""
    for name in (TRANSCRIPT, "console.log", "requests.jsonl", "coredump*"):
        for left in folder.glob(name):
            left.unlink()
