"""What is wrong with the credential that a %CMNG command holds. Pure."""

from __future__ import annotations

import re

_LONGEST = 4096
_CERTIFICATE_TYPES = frozenset({"0", "1"})
_DASHES, _QUOTES = re.compile("[\u2010-\u2015]"), re.compile("[\u201c-\u201f]")
_TYPE = re.compile(r"AT%CMNG=0\s*,\s*\d+\s*,\s*(\d+)\s*,\s*\"?", re.IGNORECASE)


def defect_of(command: str) -> str:
    """Return the first defect of the text that a command writes, in words; "" for none."""
    match = _TYPE.match(command)
    if match is None:
        return ""
    if _QUOTES.search(command):
        return "its quotes are not straight ones"
    return defect_in(match[1], command[match.end() :].rstrip().removesuffix('"'))


def defect_in(kind: str, text: str) -> str:
    """Return the first defect of a PEM text of a %CMNG type, in words; "" for none."""
    if kind not in {*_CERTIFICATE_TYPES, "2"}:
        return ""
    checks = (
        ("\\n" in text or "\\r" in text, "line ends are spelt as \\n instead of being line ends"),
        (bool(_DASHES.search(text)), "its dashes are not plain ones"),
        ("-----BEGIN" not in text, "its BEGIN line is missing or spelt otherwise"),
        (text[:1] in {" ", "\t", "\n"}, "a blank stands before its BEGIN line"),
        ("-----END" not in text, "its END line is missing"),
        (
            kind in _CERTIFICATE_TYPES and "PRIVATE KEY" in text,
            f"it is a private key, written as type {kind}, which is for certificates",
        ),
        (kind == "2" and "BEGIN CERTIFICATE" in text, "it is a certificate, written as a key"),
        ("RSA PRIVATE KEY" in text, "it is an RSA key; the modem's tokens need an EC key"),
        ("\n" not in text.strip(), "it stands on one line, without its line ends"),
        (len(text) > _LONGEST, f"it is longer than {_LONGEST} characters"),
    )
    return next((words for wrong, words in checks if wrong), "")
