"""Base64url without padding, as JOSE and the modem write it."""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode

from at.errors import ParseError

_TEXT = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


def decode(text: str, what: str) -> bytes:
    """Return the bytes of `text`; `what` names it in an error, which never shows it.

    Raises ParseError. The other alphabet and padding are taken, as some firmware wrote them.
    """
    plain = text.rstrip("=").replace("+", "-").replace("/", "_")
    if not _TEXT.fullmatch(plain) or len(plain) % 4 == 1:
        raise ParseError(f"{what} is not base64url")
    try:
        return urlsafe_b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        raise ParseError(f"{what} is not base64url") from None
