r"""A recorded session as text that people read and write: what was sent, what was received.

    # transcript: 1
    # device: nRF9161-LACA
    # firmware: mfw_nrf91x1_2.0.4
    # origin: by hand
    > AT+CESQ
    @0.012 < +CESQ: 99,99,255,255,19,47
    < OK
    >| AT+CM
    >| GS=4\r
    <| >\x20
    ! closed

- `>` is sent to the modem and ends in the header's `terminator` (usually \r), `<` comes from it
  and ends in \r\n. With a bar (`>|`, `<|`) nothing is added: a piece, cut where the file says so.
- `@` is the time in seconds from the beginning. `! closed` is the end of the link.
- \r \n \t \\ and \xHH stand for bytes; all other text is UTF-8.
- `{redacted:…}` in what is sent stands for anything up to what follows it, `{redacted:…:12}` for
  12 bytes.
- A line that begins with # is the header before the first step, and a comment after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from at.protocol.command_redaction import without_secrets
from at.protocol.errors import TranscriptError

VERSION = "1"
RECEIVED_END = b"\r\n"
_HEADER = re.compile(r"#\s*([A-Za-z][A-Za-z-]*)\s*:\s*(.*?)\s*")
_STEP = re.compile(r"(?:@(\d{1,9}(?:\.\d{1,9})?)\s+)?([<>]\|?|!)(?: (.*))?", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.|$)", re.DOTALL)
_NAMED = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}
_READABLE = {value[0]: f"\\{name}" for name, value in _NAMED.items()}


class Direction(Enum):
    """The direction of a step, or the end of the link."""

    SENT = ">"
    RECEIVED = "<"
    CLOSED = "!"


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """One step: `data` are its bytes, whole; `at_s` its time in seconds, None where not noted.

    `line` is its line in the file, 0 where it is in none; two steps are equal whatever it is.
    """

    direction: Direction
    data: bytes
    at_s: float | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session. `header` has device, firmware, origin and the like, in lower-case names.

    `file` is where it was read from, None for nowhere; two are equal whatever it is.
    """

    steps: tuple[TranscriptStep, ...]
    header: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = field(default=None, compare=False)

    @property
    def terminator(self) -> bytes:
        """What ends a command."""
        return unescape(self.header.get("terminator", "\\r"))


def load_transcript(path: str | Path) -> Transcript:
    """Read a transcript's file. Raises TranscriptError."""
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise TranscriptError(f"cannot read the transcript {path}: {error.strerror}") from error
    try:
        return replace(parse_transcript(text), file=Path(path))
    except TranscriptError as error:
        raise TranscriptError(f"{path}: {error}", hint=error.hint) from error


def parse_transcript(text: str) -> Transcript:
    """Read a transcript. Raises TranscriptError, which names the line."""
    header: dict[str, str] = {}
    steps: list[TranscriptStep] = []
    terminator = b"\r"
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")  # noqa: PLW2901 - files may come from Windows
        if not line.strip():
            continue
        if line.startswith("#"):
            if not steps:
                header |= _header_line(line)
                terminator = _terminator(header, number)
            continue
        steps.append(_step(line, number, terminator))
    if header.get("transcript", VERSION) != VERSION:
        raise TranscriptError(
            f"a transcript of version {header['transcript']}; this program reads {VERSION}",
            hint="update cellagent",
        )
    return Transcript(tuple(steps), header)


def _header_line(line: str) -> dict[str, str]:
    """Return the key of a header line; none if it is a plain comment."""
    match = _HEADER.fullmatch(line)
    return {match.group(1).lower(): match.group(2)} if match else {}


def _terminator(header: Mapping[str, str], number: int) -> bytes:
    try:
        return unescape(header.get("terminator", "\\r"))
    except ValueError as error:
        raise TranscriptError(f"line {number}: {error}") from error


def _step(line: str, number: int, terminator: bytes) -> TranscriptStep:
    match = _STEP.fullmatch(line)
    if match is None:
        raise TranscriptError(
            f"line {number} is no step: {without_secrets(line[:60])!r}",
            hint="a step begins with >, <, >|, <| or !, a comment with #",
        )
    time, mark, text = match.group(1), match.group(2), match.group(3) or ""
    at_s = float(time) if time else None
    if mark == "!":
        if text.strip() != "closed":
            raise TranscriptError(f"line {number}: after ! only `closed` is known, not {text!r}")
        return TranscriptStep(Direction.CLOSED, b"", at_s, number)
    try:
        data = unescape(text)
    except ValueError as error:
        raise TranscriptError(f"line {number}: {error}") from error
    if len(mark) == 1:
        data += terminator if mark == ">" else RECEIVED_END
    elif not data:
        raise TranscriptError(f"line {number}: a piece without a byte")
    return TranscriptStep(Direction(mark[0]), data, at_s, number)


def format_transcript(transcript: Transcript) -> str:
    """Write a transcript. `parse_transcript` reads the same steps and header back."""
    lines = [f"# transcript: {VERSION}"]
    for name, value in transcript.header.items():
        if name != "transcript":
            lines.append(f"# {name}: {' '.join(value.split())}")
    lines += (format_step(step, transcript.terminator) for step in transcript.steps)
    return "\n".join(lines) + "\n"


def format_step(step: TranscriptStep, terminator: bytes = b"\r") -> str:
    """Write one step as a line, without a line end."""
    time = "" if step.at_s is None else f"@{step.at_s:.6f} "
    if step.direction is Direction.CLOSED:
        return f"{time}! closed"
    mark, data = step.direction.value, step.data
    end = terminator if step.direction is Direction.SENT else RECEIVED_END
    if end and data.endswith(end):
        data = data[: -len(end)]
    else:
        mark += "|"
    text = escape(data)
    return f"{time}{mark} {text}" if text else f"{time}{mark}"


def escape(data: bytes) -> str:
    r"""Write bytes as printable ASCII, the rest as \r, \n, \t, \\ and \xHH."""
    text = "".join(
        _READABLE.get(byte) or (chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}")
        for byte in data
    )
    # A blank at the end would be lost to the eye, and to many editors.
    return text[:-1] + "\\x20" if text.endswith(" ") else text


def unescape(text: str) -> bytes:
    """Read what `escape` wrote, or what a person did. Raises ValueError."""
    out = bytearray()
    index = 0
    for match in _ESCAPE.finditer(text):
        out += text[index : match.start()].encode("utf-8", "surrogateescape")
        index = match.end()
        name = match.group(1)
        if name[:1] == "x" and len(name) == 3:
            out.append(int(name[1:], 16))
        elif name in _NAMED:
            out += _NAMED[name]
        else:
            raise ValueError(f"no such escape: \\{name}")
    return bytes(out + text[index:].encode("utf-8", "surrogateescape"))


def commands(transcript: Transcript) -> Iterable[tuple[TranscriptStep, bytes]]:
    """Yield the sent steps, each with the bytes up to there that make one command."""
    pending = b""
    for step in transcript.steps:
        if step.direction is not Direction.SENT:
            continue
        pending += step.data
        if pending.endswith(transcript.terminator):
            yield step, pending
            pending = b""
