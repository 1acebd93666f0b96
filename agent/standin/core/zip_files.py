"""Zip files from outside: each member bounded, and every defect of the file as one error."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError),
    *(NotImplementedError, RuntimeError, OSError, ValueError),
)


class BadArchive(ValueError):
    """The bytes are no zip that can be read, or a part of it is not what it must be."""


@contextmanager
def opened(data: bytes) -> Iterator[zipfile.ZipFile]:
    """Yield the zip in `data`. Raises BadArchive, also for what reading a member raises."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    except BadArchive:
        raise
    except _BROKEN as error:
        # Of a zip with wrong offsets the library raises what its file raises.
        raise BadArchive(f"it is no archive that can be read: {error}") from error


def member(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """Return the content of a member. Raises BadArchive where it is absent or larger."""
    try:
        with archive.open(name) as file:
            content = file.read(most_bytes + 1)
    except KeyError as error:
        raise BadArchive(f"there is no {name}") from error
    if len(content) > most_bytes:
        raise BadArchive(f"{name} has more than {most_bytes} bytes")
    return content
