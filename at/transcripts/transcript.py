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

In version 2 (`# transcript: 2`), a step may also have rules for what varies
(`at.transcripts.rules`), be optional (`?> AT+CSQ`), a fault (`! silence 3`), or an edge of steps
in any order.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, AnyStr

from at.protocol.errors import TranscriptError
from at.transcripts.exchanges import split_exchanges
from at.transcripts.rules import unescape
from at.transcripts.steps import TERMINATOR, VERSION, StepReader, TranscriptStep, format_step

LARGEST = 256 * 1024 * 1024
"""Bytes of a transcript or a log: days of a modem's talk. A device may have no end."""
_PIECE = 65536
_BEGINNING = re.compile(r"\s*(?:#|@[\d.]+ |\??[<>!])")
_HEADER = re.compile(r"#\s*([A-Za-z][A-Za-z-]*)\s*:\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session. `header` has device, firmware, origin and the like, in lower-case names.

    `file` is where it was read from, None for nowhere; two are equal whatever it is.
    """

    steps: tuple[TranscriptStep, ...]
    header: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = field(default=None, compare=False)

    @property
    def version(self) -> str:
        """What version its text has."""
        return self.header.get("transcript", VERSION)

    @property
    def terminator(self) -> bytes:
        """What ends a command."""
        given = self.header.get("terminator")
        return TERMINATOR if given is None else unescape(given)

    def pauses_s(self) -> dict[int, float]:
        """Return the seconds between each step and the one before it, by line: also its command."""
        timed = [step for step in self.steps if step.at_s is not None]
        return {
            step.line: (step.at_s or 0.0) - (before.at_s or 0.0) for before, step in pairwise(timed)
        }


def load_transcript(path: str | Path) -> Transcript:
    """Read a transcript's file. Raises TranscriptError."""
    file = Path(path)
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            # An editor of Windows puts its mark before what it saves.
            text = read_session(opened).removeprefix("\ufeff")
    except OSError as error:
        raise TranscriptError(f"cannot read the transcript {path}: {error.strerror}") from error
    if "\0" in text:
        what = f"{path}: this is no text in UTF-8"
        hint = "save it as UTF-8, or decompress it first: `iconv -f utf-16`, `gunzip`"
        raise TranscriptError(what, hint=hint, file=file)
    try:
        return replace(parse_transcript(text), file=file)
    except TranscriptError as error:
        what = f"{path}: {error}"
        hint = error.hint
        if not _BEGINNING.match(text):
            hint = (
                f"if it is a terminal's log, `cellagent modem import {shlex.quote(str(path))} "
                f"--output session.transcript` makes a transcript of it; else {hint}"
            )
        raise TranscriptError(what, hint=hint, line=error.line, file=file) from error


def read_session(source: IO[AnyStr]) -> AnyStr:
    """Return the whole of a transcript or a log. Raises TranscriptError for one without end."""
    # Piece by piece: whoever asks for so many bytes at once has to have the memory for them.
    # A short one is the last: a terminal that is read beyond its end waits for another Ctrl-D.
    pieces = [source.read(_PIECE)]
    while len(pieces[-1]) == _PIECE and len(pieces) <= LARGEST // _PIECE:
        pieces.append(source.read(_PIECE))
    data = pieces[0][:0].join(pieces)
    if len(data) > LARGEST:
        raise TranscriptError(
            f"{source.name}: over {LARGEST >> 20} MiB, or without end: no session of a modem",
            hint="cut out the part that matters",
        )
    return data


def parse_transcript(text: str) -> Transcript:
    """Read a transcript. Raises TranscriptError, which names the line."""
    header: dict[str, str] = {}
    steps: list[TranscriptStep] = []
    reader = StepReader(header)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")  # noqa: PLW2901 - files may come from Windows
        if not line.strip():
            continue
        if line.startswith("#"):
            if not steps and (key := _header_line(line)):
                header |= key
                try:
                    reader = StepReader(header)
                except TranscriptError as error:
                    what = f"line {number}: {error}"
                    raise TranscriptError(what, hint=error.hint, line=number) from error
            continue
        steps.append(reader.step(line, number))
    transcript = Transcript(tuple(steps), header)
    split_exchanges(transcript.steps, transcript.terminator)
    return transcript


def _header_line(line: str) -> dict[str, str]:
    """Return the key of a header line; none if it is a plain comment."""
    match = _HEADER.fullmatch(line)
    return {match.group(1).lower(): match.group(2)} if match else {}


def format_transcript(transcript: Transcript) -> str:
    """Write a transcript. `parse_transcript` reads the same steps and header back."""
    lines = [f"# transcript: {transcript.version}"]
    for name, value in transcript.header.items():
        if name != "transcript":
            lines.append(f"# {name}: {' '.join(value.split())}")
    end, version = transcript.terminator, transcript.version
    lines += (format_step(step, end, version) for step in transcript.steps)
    return "\n".join(lines) + "\n"
