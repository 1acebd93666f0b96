"""Hides keys and certificates in PEM that pass line by line, in a log or for want of a quote."""

import re

_PEM_MARK = re.compile(rb"-----(BEGIN|END) [A-Z ]*?(PRIVATE KEY|CERTIFICATE)-----")
_KEY_LINE = re.compile(rb"(?!(?:OK|ERROR|BEGIN|PRIVATE)\Z)[A-Za-z0-9+/]{4,}={0,2}")
_PEM_CUT = re.compile(rb"-----BEGIN (?!CERT|PUB|X509)")
_KEY_BEGIN = re.compile(rb"M(?:HcCAQE|GgCAQE|C4CAQA|IG.AgE|II...IBA)[A-Za-z0-9+/]{8}")
"""How the DER of a private key begins: SEC 1, PKCS #8, PKCS #1."""
_KEY_WORD = re.compile(
    rb"(?<![A-Za-z0-9+/=])(?:(?=[a-z0-9+/]*[A-Z])[A-Za-z0-9+/]{16,}={0,2}(?![A-Za-z0-9+/=])"
    rb"|[A-Za-z0-9+/]{2,}={1,2}(?![\w=])|[A-Za-z0-9+/]{4,}(?=\[[0-9:.,]{8}))"
)
"""A line of a key within a line of a log: also its last one, and what a log line cut off."""
KEY_LEFT = re.compile(rb"(?:OK|ERROR)\Z|AT[+%#*^]|[+%#*^][A-Z]\w*:")
"""What stands behind a key whose end was lost: a command, or what the modem says."""


class PemByLine:
    """Hides a key or a certificate that passes line by line: as a log, or for want of a quote."""

    def __init__(self) -> None:
        self._open = b""
        """What it is called of which the end is still to come."""
        self._lines: dict[bytes, bytes] = {}
        """What the lines so far are of: an echo may come after the whole key."""

    def clean(self, data: bytes) -> bytes:
        """Return a line without what is a key's by the lines before it."""
        marks = _PEM_MARK.findall(data)
        if marks:
            edge, kind = marks[-1]
            name = b"certificate" if kind == b"CERTIFICATE" else b"key"
            self._open = name if edge == b"BEGIN" else b""
            if self._open or name == b"key":
                words = filter(_KEY_LINE.fullmatch, data.split())
                self._lines.update(dict.fromkeys(words, name))
            return data
        text = data.strip()
        if self._open and KEY_LEFT.match(text):
            self._open = b""  # its end was lost
        elif not self._open and (_PEM_CUT.search(data) or _KEY_BEGIN.search(data)):
            self._open = b"key"  # its beginning was
        name = self._open or self._lines.get(text, b"")
        if name and _KEY_LINE.fullmatch(text):
            self._lines[text] = name
            return data.replace(text, b"{redacted:%b}" % name, 1)
        return _KEY_WORD.sub(self._word, data) if self._open else data

    def _word(self, match: re.Match[bytes]) -> bytes:
        self._lines[match.group()] = self._open
        return b"{redacted:%b}" % self._open
