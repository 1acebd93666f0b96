"""Credentials that a recorded session writes with %CMNG, and their digests. Pure."""

import re
from dataclasses import dataclass
from hashlib import sha256

_WRITTEN = re.compile(
    rb"(?P<wrap>at\s+')?AT%CMNG\s*=\s*0\s*,\s*(?P<tag>\d+)\s*,\s*(?P<type>\d+)\s*,\s*"
    rb'"(?P<content>[^"]*)"',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WrittenCredential:
    """A credential by its place; `digest` is what the modem lists for its content."""

    tag: bytes
    type: bytes
    digest: bytes


def written_credential(line: bytes) -> WrittenCredential | None:
    """Return the credential that a command line writes, None if it writes none."""
    match = _WRITTEN.search(line)
    if match is None:
        return None
    content = match["content"]
    if match["wrap"]:  # a shell's firmware makes CR LF of two characters
        content = content.replace(b"\\n", b"\r\n")
    digest = sha256(content).hexdigest().upper().encode()
    return WrittenCredential(match["tag"], match["type"], digest)
