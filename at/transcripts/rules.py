r"""What varies in a step of a transcript of version 2: `{int}`, `{hex}`, `{imei}`, `{any}`. Pure.

A rule may give an example, `{int:19}`: what a replay prints of it in an answer. `\{` is a brace.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from at.protocol.check_digit import ends_in_luhn_digit, luhn_digit
from at.protocol.errors import TranscriptError
from at.protocol.redaction.command_redaction import MARKER
from at.transcripts.redaction.made_up import TEST_TAC

_ESCAPE = r"\\(x[0-9A-Fa-f]{2}|.|$)"
_ESCAPES = re.compile(_ESCAPE, re.DOTALL)
_WITH_RULES = re.compile(
    _ESCAPE + r"|\{([A-Za-z][\w-]*)(?::((?:[^}\\]|\\.)*))?\}", re.DOTALL | re.ASCII
)
_LIKE_A_RULE = re.compile(r"\{(?=[A-Za-z][\w-]*[:}])", re.ASCII)
_NAMED = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}
_BRACES = {"{": b"{", "}": b"}"}
_READABLE = {value[0]: f"\\{name}" for name, value in _NAMED.items()}
IMEI_DIGITS = 15
_TEST_IMEI = TEST_TAC + "000000"


class Rule(Enum):
    """What may stand at a place: its name, its pattern, and what a replay prints there."""

    ANY = "any", rb"[^\r\n]*", "any"
    """Anything up to the end of the line, also nothing."""
    INT = "int", rb"-?[0-9]+", "0"
    HEX = "hex", rb"[0-9A-Fa-f]+", "00"
    IMEI = "imei", rb"[0-9]{15}", _TEST_IMEI + luhn_digit(_TEST_IMEI)
    """15 digits, the last of which is the check digit of the others."""

    def __init__(self, word: str, pattern: bytes, example: str) -> None:
        self.word, self.pattern, self.example = word, pattern, example.encode()

    def holds(self, data: bytes) -> bool:
        """Return whether `data` is what the rule stands for."""
        if re.fullmatch(self.pattern, data) is None:
            return False
        return self is not Rule.IMEI or ends_in_luhn_digit(data.decode())


_BY_WORD = {rule.word: rule for rule in Rule}


@dataclass(frozen=True, slots=True)
class Varying:
    """A rule in a step: its example is in the data from `begin` to `end`; `given` by the file."""

    begin: int
    end: int
    rule: Rule
    given: bool = False

    def text(self, data: bytes) -> str:
        """Return it as the file has it."""
        example = escape(data[self.begin : self.end]).replace("}", "\\x7d")
        return f"{{{self.rule.word}:{example}}}" if self.given else f"{{{self.rule.word}}}"


def escape(data: bytes) -> str:
    r"""Write bytes as printable ASCII, the rest as \r, \n, \t, \\ and \xHH."""
    return _with_end(_escaped(data))


def _with_end(text: str) -> str:
    """Spell out a blank at the end: it would be lost to the eye, and to many editors."""
    return text[:-1] + "\\x20" if text.endswith(" ") else text


def _escaped(data: bytes) -> str:
    return "".join(
        _READABLE.get(byte) or (chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}")
        for byte in data
    )


def write_rules(data: bytes, varying: tuple[Varying, ...]) -> str:
    """Write what `read_rules` reads."""
    text, done = "", 0
    for one in varying:
        text += _literal(data[done : one.begin]) + one.text(data)
        done = one.end
    return _with_end(text + _literal(data[done:]))


def _literal(data: bytes) -> str:
    def braced(match: re.Match[str]) -> str:
        return "{" if MARKER.match(match.string, match.start()) else "\\{"

    return _LIKE_A_RULE.sub(braced, _escaped(data))


def unescape(text: str) -> bytes:
    """Read what `escape` wrote, or what a person did. Raises ValueError."""
    return _read(text, _ESCAPES)[0]


def read_rules(text: str) -> tuple[bytes, tuple[Varying, ...]]:
    """Read the text of a step of version 2: its bytes, and what varies.

    Raises ValueError for an escape, TranscriptError for a rule.
    """
    return _read(text, _WITH_RULES)


def _read(text: str, tokens: re.Pattern[str]) -> tuple[bytes, tuple[Varying, ...]]:
    if "\\" not in text and "{" not in text:
        return text.encode("utf-8", "surrogateescape"), ()
    out, done = bytearray(), 0
    varying: list[Varying] = []
    for match in tokens.finditer(text):
        escaped = match[1]
        if escaped is None and MARKER.fullmatch(match.group()):
            continue
        out += text[done : match.start()].encode("utf-8", "surrogateescape")
        done = match.end()
        if escaped is None:
            rule, example = _rule(match)
            varying.append(Varying(len(out), len(out) + len(example), rule, match[3] is not None))
            out += example
        elif escaped[:1] == "x" and len(escaped) == 3:
            out.append(int(escaped[1:], 16))
        elif escaped in _NAMED:
            out += _NAMED[escaped]
        elif tokens is _WITH_RULES and escaped in _BRACES:
            out += _BRACES[escaped]
        else:
            raise ValueError(f"no such escape: \\{ascii(escaped)[1:-1]}")
    return bytes(out + text[done:].encode("utf-8", "surrogateescape")), tuple(varying)


def _rule(match: re.Match[str]) -> tuple[Rule, bytes]:
    """Return the rule that stands in braces, and its example. Raises TranscriptError."""
    rule = _BY_WORD.get(match[2])
    if rule is None:
        near = get_close_matches(match[2], _BY_WORD, n=1)
        known = f"{{{near[0]}}}?" if near else "there are " + ", ".join(_BY_WORD)
        raise TranscriptError(
            f"{ascii(match.group())[1:-1]} is no rule",
            hint=f"{known}; a brace of the text itself is \\{{",
        )
    if match[3] is None:
        return rule, rule.example
    example = unescape(match[3])
    if not rule.holds(example):
        raise TranscriptError(
            f"{match[3]!a} is no {{{rule.word}}}",
            hint=f"write {{{rule.word}}}, or an example: {{{rule.word}:{rule.example.decode()}}}",
        )
    return rule, example
