"""What is wrong with the credential that a %CMNG command holds. Pure."""

import re

_LONGEST = 4096
_CERTIFICATE_TYPES = frozenset({"0", "1"})
_DASHES, _QUOTES = re.compile("[\u2010-\u2015]"), re.compile("[\u201c-\u201f]")
_BEGIN, _END = (re.compile(f"-----{word} ([A-Z0-9 ]+)-----") for word in ("BEGIN", "END"))
_RSA = re.compile(r"RSA PRIVATE KEY|PRIVATE KEY-----\s*MII")
"""By its label, or by the length that its DER begins with: an EC key is shorter than 256 bytes."""
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
    begun, ended = _BEGIN.search(text), _END.search(text)
    label = begun[1] if begun else ""
    wanted = "CERTIFICATE" if kind in _CERTIFICATE_TYPES else "PRIVATE KEY"
    checks = (
        ("\\n" in text or "\\r" in text, "line ends are spelt as \\n instead of being line ends"),
        (bool(_DASHES.search(text)), "its dashes are not plain ones"),
        (begun is None, "its BEGIN line is missing or spelt otherwise"),
        (text[:1] in {" ", "\t", "\n"}, "a blank stands before its BEGIN line"),
        (ended is None, "its END line is missing"),
        (ended is not None and ended[1] != label, "its BEGIN and END lines name different things"),
        (
            not label.endswith(wanted),
            f"it is a {label.lower()}, written as type {kind}, which is for a {wanted.lower()}",
        ),
        (bool(_RSA.search(text)), "it is an RSA key; the modem's tokens need an EC key"),
        ("\r\r" in text, "its lines end in CR CR LF"),
        ("\n" not in text.strip(), "it stands on one line, without its line ends"),
        (len(text) > _LONGEST, f"it is longer than {_LONGEST} characters"),
    )
    return next((words for wrong, words in checks if wrong), "")
