"""Updates by the nRF93M1's own client: %NRFCLOUDFOTA %HTTPFOTADL, notices %FOTA %HTTPURC.

OK comes first. Between UPGRADING and the line RDY the port is dead: that is no fault. The words for
an error are not known: another word is carried, and ends nothing.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence

from at.commands.nrf93m1.coap import is_word
from at.protocol.command import Command, OkCommand, Parameters, at_command
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.line.answer_or_notice import is_chunk_reply
from at.protocol.notices import Notice, register_readers
from at.protocol.values import Fields, Record, single_line

HOST_CHECK, HOST_CHUNK, MODEM_CHECK, MODEM_UPDATE, FORGET = range(5)
_WORD = re.compile(r"[A-Z][A-Z0-9_]{1,39}", re.ASCII)
_PHRASE = re.compile(r"[A-Z][A-Z0-9_ ]{1,39}", re.ASCII)
_MOST_BYTES = 2**31 - 1
# Word -> the names of its numbers.
_NUMBERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("CHECKING", "UPDATE_AVAILABLE", "NO_UPDATE", "ERASING", "VERIFYING", "VERIFIED"),
            *("UPGRADING", "APPLY"),
        ),
        (),
    ),
    "ZONE": ("zone", "bytes"),
    "DOWNLOADING": ("bytes",),
    "DOWNLOAD_DONE": ("bytes",),
    "UPDATING": ("percent",),
    "DONE": ("result",),
}
_HTTP_STEPS = (
    *("HTTPSTART", "DOWNLOAD START", "DOWNLOADING", "DOWNLOADED", "VERIFIED", "DOWNLOAD ERROR"),
    "VERIFICATION FAILURE",
)
_MAY_BE_BARE = frozenset({"DOWNLOADING"})
# Written by the loader, and therefore in quotes.
_LOADER = frozenset({"APPLY", "UPDATING", "DONE"})
_HIGHEST = {"percent": 100, "zone": 255}


class UpdateStep(Record, frozen=True):
    """A line of %FOTA: its word, and its numbers; `parameters` those of a word not known here."""

    step: str
    zone: int | None = None
    bytes: int | None = None
    percent: int | None = None
    result: int | None = None
    parameters: tuple[str | None, ...] = ()


class UpdateNotice(Notice, frozen=True):
    """%FOTA."""

    value: UpdateStep


class HttpEvent(Record, frozen=True):
    """A line of %HTTPURC: what it is of ("FOTA"), its word, and the numbers behind it."""

    service: str
    step: str
    percent: int | None = None
    cause: int | None = None
    detail: int | None = None


class HttpNotice(Notice, frozen=True):
    """%HTTPURC."""

    value: HttpEvent


class ImageChunk(Record, frozen=True):
    """A piece of the host's own image, whose CRC agrees; `has_more` says that others follow."""

    data: bytes
    crc16: str
    has_more: int


@at_command(f"AT%NRFCLOUDFOTA={HOST_CHUNK}")
class FetchImageChunk(Command[ImageChunk], frozen=True):
    """AT%NRFCLOUDFOTA=1,<index>: one piece of the image that mode 0 found."""

    index: int

    def owns(self, line: str) -> bool:
        """Return whether it is the piece: lines of the other name are steps."""
        return is_chunk_reply(line)

    def parse(self, lines: Sequence[str]) -> ImageChunk:
        """Return the piece. Raises ParseError unless its CRC agrees."""
        row = Fields.of(single_line(lines, self.name), "%FOTA")
        try:
            data = b64decode(row.text("the piece"), validate=True)
        except (binascii.Error, ValueError):
            raise ParseError("%FOTA: the piece is not base64") from None
        crc = row.text("crc16")
        # Whether it is written in decimal or in hex is not known.
        if format(crc16(data), "d") != crc and f"{crc16(data):04x}" != crc.lower().removeprefix(
            "0x"
        ):
            raise ParseError("%FOTA: the CRC of the piece is not the one that it states")
        has_more = row.integer("has_more", 0, 1)
        row.end()
        return ImageChunk(data, crc, has_more)


@at_command("AT%NRFCLOUDFOTA=")
class UpdateByModule(OkCommand, frozen=True):
    """AT%NRFCLOUDFOTA=<mode>[,"<project key>"]: 2 checks for modem firmware, 3 also installs it.

    4 forgets the address of the host's own image. OK comes first: wait for UpdateNotice.
    """

    mode: int
    project_key: str | None = None

    def parameters(self) -> Parameters:
        """Return mode and key. Raises UnsafeArgument."""
        if self.mode not in {MODEM_CHECK, MODEM_UPDATE, FORGET}:
            raise UnsafeArgument(f"mode {self.mode} is not 2, 3 or 4")
        return self.mode, self.project_key


@at_command(f"AT%NRFCLOUDFOTA={HOST_CHECK}")
class CheckHostImage(OkCommand, frozen=True):
    """AT%NRFCLOUDFOTA=0,...: whether there is a release for the host's own program."""

    project_key: str
    hardware_version: str
    software_type: str
    software_version: str


def crc16(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE: polynomial 0x1021, start 0xFFFF."""
    return binascii.crc_hqx(data, 0xFFFF)


def _update_step(fields: Fields) -> UpdateStep:
    is_quoted = fields.peek().quoted
    step = fields.text("step")
    names = _NUMBERS.get(step)
    if not _WORD.fullmatch(step) or not is_word(step, _NUMBERS):
        raise fields.fail("step", "is no word")
    if names is None:
        rest = tuple(fields.optional_text("parameter") for _ in range(fields.left))
        return UpdateStep(step, parameters=rest)
    if is_quoted != (step in _LOADER):
        raise fields.fail("step", "is quoted as no such word is")
    if step in _MAY_BE_BARE and not fields.left:
        names = ()
    numbers = {name: fields.integer(name, 0, _HIGHEST.get(name, _MOST_BYTES)) for name in names}
    return UpdateStep(step, **numbers)  # type: ignore[arg-type]


def _http_event(fields: Fields) -> HttpEvent:
    service, step = fields.quoted("service"), fields.quoted("step")
    words = is_word(service, ("FOTA",)) and is_word(step, _HTTP_STEPS)
    if not (_PHRASE.fullmatch(service) and _PHRASE.fullmatch(step) and words):
        raise fields.fail("step", "is no word")
    if step == "DOWNLOADING":
        return HttpEvent(service, step, percent=fields.integer("percent", 0, 100))
    cause = fields.optional_integer("cause", 0, 99999) if fields.left else None
    detail = fields.optional_integer("detail", -99999, 99999) if fields.left else None
    if detail is None and step.endswith(("ERROR", "FAILURE")):
        raise fields.fail("detail", "is missing")
    return HttpEvent(service, step, cause=cause, detail=detail)


register_readers(UpdateNotice, {"%FOTA": _update_step})
register_readers(HttpNotice, {"%HTTPURC": _http_event})
