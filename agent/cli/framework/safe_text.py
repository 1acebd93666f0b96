"""Text that is safe to show on a terminal."""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, and the characters that reorder or hide text around them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def printable(text: str) -> str:
    r"""Return `text` with every control and direction character written as `\x1b`, `\u202e`."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
