"""The nRF93M1's own cloud client: %NRFCLOUDLOCATION %NRFCLOUDMESSAGE %NRFCLOUDSHADOW %NRFCLOUDOBS*.

One request at a time. Its steps towards the cloud are notices: at.commands.nrf93m1.coap.
"""

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from at.commands.nrf93m1.coap import is_word
from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record, after_name, named_text, read_lines

LONGEST_MESSAGE = 511
SINGLE_CELL, MULTI_CELL, WIFI = 1, 2, 4

_WORDS = re.compile(r"[A-Za-z][A-Za-z_ ]{0,63}", re.ASCII)
_STATUS = ("SENT", "UPLOADED", "ACK RECEIVED", "coredump available")


class ModulePosition(Record, frozen=True):
    """%NRFCLOUDLOCATION: degrees, metres, and what the cloud used: 1 cell, 2 cells, 4 Wi-Fi.

    Without a position `status` has the words ("ACK RECEIVED").
    """

    lat: float | None = None
    lon: float | None = None
    uncertainty: float | None = None
    method: int | None = None
    status: str | None = None


class ModulePositionNotice(Notice, frozen=True):
    """%NRFCLOUDLOCATION behind the OK of its command."""

    value: ModulePosition


class CloudStatus(Record, frozen=True):
    """What follows the name in words: "SENT"."""

    status: str


class CloudStatusNotice(Notice, frozen=True):
    """%NRFCLOUDMESSAGE or %NRFCLOUDOBS: words."""

    value: CloudStatus


class ShadowAnswer(Record, frozen=True):
    """Answer of %NRFCLOUDSHADOW. The shape of a value that is read is not known: lines as given."""

    lines: tuple[str, ...]


class _TextsCommand(Command[ShadowAnswer], frozen=True):
    """One whose answer is kept as it stands."""

    def parse(self, lines: Sequence[str]) -> ShadowAnswer:
        """Return the texts behind the name."""
        return ShadowAnswer(read_lines(lines, lambda line: after_name(line, self.name)))


class ChunkUpload(Record, frozen=True):
    """%NRFCLOUDOBSUPLOAD: how many chunks went; None where another word came (`status`)."""

    chunks: int | None
    status: str


@at_command("AT%NRFCLOUDLOCATION=")
class LocateByModule(Command[ModulePosition | None], frozen=True):
    """AT%NRFCLOUDLOCATION=<method>,<fetch>: method 1-7, the sum of SINGLE_CELL, MULTI_CELL, WIFI.

    Without `fetch` the cloud keeps the position for itself. None: it comes as a notice.
    """

    method: int
    fetch: int = 1

    def encode(self) -> str:
        """Return the command. Raises UnsafeArgument for a method that there is not."""
        if not 1 <= self.method <= 7:
            raise UnsafeArgument(f"the method {self.method} is not in 1..7")
        return Command.encode(self)

    def parse(self, lines: Sequence[str]) -> ModulePosition | None:
        """Return the last line's position or words. Raises ParseError."""
        values = read_lines(lines, read_position)
        return values[-1] if values else None


@at_command("AT%NRFCLOUDMESSAGE=")
class SendByModule(Command[CloudStatus], frozen=True):
    """AT%NRFCLOUDMESSAGE=<json>: an object or a list, not in quotes; then SENT."""

    text: str
    opaque: ClassVar[bool] = True

    def encode(self) -> str:
        """Return the command. Raises UnsafeArgument for what is no JSON or is too long."""
        if len(self.text) > LONGEST_MESSAGE or self.text[:1] not in {"{", "["}:
            raise UnsafeArgument(
                f"a message is a JSON object or list of up to {LONGEST_MESSAGE} characters"
            )
        return f"AT{self.name}={self.text}"

    def parse(self, lines: Sequence[str]) -> CloudStatus:
        """Return the words. Raises ParseError."""
        return _status(named_text(lines, self.name), self.name)


@at_command("AT%NRFCLOUDSHADOW=")
class Shadow(_TextsCommand, frozen=True):
    """AT%NRFCLOUDSHADOW=<dotted.path>[,<value>]: writes what is reported, or reads what is desired.

    The value goes as it is: true, 5, a text.
    """

    path: str
    value: str | None = None
    opaque: ClassVar[bool] = True

    def encode(self) -> str:
        """Return the command. Raises UnsafeArgument."""
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", self.path, re.ASCII):
            raise UnsafeArgument("a path of a shadow is names with dots between them")
        end = "" if self.value is None else f",{self.value}"
        return f"AT{self.name}={self.path}{end}"


@at_command("AT%NRFCLOUDOBSHEARTBEAT")
class TakeHeartbeat(Command[CloudStatus | None], frozen=True):
    """AT%NRFCLOUDOBSHEARTBEAT: a heartbeat into the module's own queue; nothing is sent."""

    def parse(self, lines: Sequence[str]) -> CloudStatus | None:
        """Return the words, None for OK alone."""
        return _status(named_text(lines, self.name), self.name) if lines else None


@at_command("AT%NRFCLOUDOBSUPLOAD")
class UploadChunks(Command[ChunkUpload], frozen=True):
    """AT%NRFCLOUDOBSUPLOAD: sends what waits in the module's queue."""

    def read(self, fields: Fields) -> ChunkUpload:
        """Return the count. Raises ParseError."""
        status = fields.text("status")
        if not _is_status(status):
            raise fields.fail("status", "is no word")
        if status != "UPLOADED":
            return ChunkUpload(None, status)
        return ChunkUpload(fields.integer("chunks", 0, 10**6), status)


@at_command("AT%NRFCLOUDOBSUPLOAD=")
class UploadChunksTo(UploadChunks, frozen=True):
    """AT%NRFCLOUDOBSUPLOAD="<project key>"."""

    project_key: str


@at_command("AT%NRFCLOUDOBSFORWARD=")
class ForwardChunk(_TextsCommand, frozen=True):
    """AT%NRFCLOUDOBSFORWARD="<base64 chunk>": what it answers beyond OK is not known."""

    chunk: str


def read_position(line: str) -> ModulePosition:
    """Return the position, or the words, of a %NRFCLOUDLOCATION line. Raises ParseError."""
    text = after_name(line, "%NRFCLOUDLOCATION")
    if _is_status(text):
        return ModulePosition(status=text)
    fields = Fields.of(line, "%NRFCLOUDLOCATION")
    lat, lon = fields.decimal("lat", 90), fields.decimal("lon", 180)
    uncertainty = fields.decimal("uncertainty")
    method = fields.integer("method", SINGLE_CELL, WIFI)
    if uncertainty < 0 or method not in {SINGLE_CELL, MULTI_CELL, WIFI}:
        raise fields.fail("method", "is not 1, 2 or 4, or the uncertainty is negative")
    fields.end()
    return ModulePosition(lat, lon, uncertainty, method)


def _is_status(text: str) -> bool:
    return _WORDS.fullmatch(text) is not None and is_word(text, _STATUS)


def _status(text: str, name: str) -> CloudStatus:
    if not _is_status(text):
        raise ParseError(f"{name}: the answer is no words")
    return CloudStatus(text)


def _words_of(name: str) -> Callable[[str, str | None], Notice]:
    return lambda line, _: CloudStatusNotice(name, line, _status(after_name(line, name), name))


register(
    "%NRFCLOUDLOCATION",
    lambda line, _: ModulePositionNotice("%NRFCLOUDLOCATION", line, read_position(line)),
)
for _name in ("%NRFCLOUDOBS", "%NRFCLOUDMESSAGE"):
    register(_name, _words_of(_name))
