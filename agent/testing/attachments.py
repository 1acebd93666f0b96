"""Files of one test beside the JUnit report: what its kit printed, its core dumps, the requests."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent.files.private_files import replacing
from agent.redact import HIDDEN, redact
from at.transcripts.redaction.redactor import Redactor

if TYPE_CHECKING:
    from agent.testing.cloud import SeenRequest

_SHOWN_HEADERS = {"accept", "content-length", "content-type", "host", "if-match", "range",
                  "user-agent"}  # fmt: skip
"""The others may hold a credential."""


def attach(folder: Path, *, console: str, requests: Sequence[SeenRequest]) -> None:
    """Write what there is, without secrets and identities. Core dumps are as the kit printed them.

    Raises OSError.
    """
    clean = _cleaner()
    if console:
        _keep(folder / "console.log", clean(console))
        _keep_dumps(folder / "coredump", console)
    if requests:
        shown = (msgspec.json.encode(_shown(seen, clean)).decode() for seen in requests)
        _keep(folder / "requests.jsonl", "".join(f"{line}\n" for line in shown))


def _cleaner() -> Callable[[str], str]:
    """Return what cleans texts; an identity is the same made-up one in all of them."""
    redactor = Redactor(identity=True)

    def clean(text: str) -> str:
        lines = redact(text).encode("utf-8", "surrogateescape").splitlines(keepends=True)
        return b"".join(map(redactor.clean_answer, lines)).decode("utf-8", "backslashreplace")

    return clean


def _shown(seen: SeenRequest, clean: Callable[[str], str]) -> dict[str, object]:
    try:
        body: object = clean(seen.body.decode())
    except UnicodeDecodeError:
        body = {"bytes": len(seen.body)}
    return {
        "method": seen.method,
        "path": clean(seen.path),
        "query": clean(seen.query),
        "headers": {
            name: clean(value) if name in _SHOWN_HEADERS else HIDDEN
            for name, value in seen.headers.items()
        },
        "body": body,
        "status": seen.status,
    }


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=True) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def _keep_dumps(out: Path, console: str) -> None:
    from agent.cli.capture.dump_files import DumpFiles
    from agent.cli.capture.zephyr_dumps import find_dumps

    files = DumpFiles(out)
    for found in find_dumps([console.encode("utf-8", "backslashreplace")]):
        if isinstance(found, bytes):
            files.copy(io.BytesIO(found), usable=True)
        else:
            files.write(found)
