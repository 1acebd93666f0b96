"""What takes bytes from outside, each with what it may raise. Anything else is a defect.

A target gets any bytes. `refuses` are the errors that its docstring names.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from agent.errors import AgentError
from agent.standin.core.responses import Refused
from at.protocol.errors import AtError

TARGETS: dict[str, Target] = {}
STATUSES = (200, 201, 204, 206, 302, 400, 401, 403, 404, 409, 412, 422, 429, 500, 503)


@dataclass(frozen=True, slots=True)
class Target:
    """One reader of bytes."""

    name: str
    run: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]

    def take(self, data: bytes) -> None:
        """Run it. What it may not raise is raised."""
        try:
            self.run(data)
        except self.refuses:
            return


def target(*refuses: type[Exception]) -> Callable[[Callable[[bytes], object]], Target]:
    """Declare a target by its function, whose name it has."""

    def declare(run: Callable[[bytes], object]) -> Target:
        name = run.__name__
        TARGETS[name] = Target(name, run, refuses)
        return TARGETS[name]

    return declare


def in_pieces(data: bytes) -> Iterator[bytes]:
    """Cut bytes as their first one says: whole, by single bytes, or in pieces of that length."""
    step = data[0] if data else 0
    data = data[1:]
    yield from (data[at : at + step] for at in range(0, len(data), step)) if step else (data,)


def at_once(work: Coroutine[object, None, object]) -> None:
    """Run a coroutine that waits for nothing."""
    with contextlib.suppress(StopIteration):
        work.send(None)


def text(data: bytes) -> str:
    """Return any text: what is no UTF-8 stays in it as a terminal would have it."""
    return data.decode("utf-8", "backslashreplace")


@target()
def modem_output(data: bytes) -> None:
    """Framing, grammars and values: whatever a modem prints, however it is cut."""
    from at.decode import Decoder

    first, _, rest = data.partition(b"\n")
    decoder = Decoder(text(first) if first.startswith(b"AT") else None)
    for piece in in_pieces(rest if first.startswith(b"AT") else data):
        list(decoder.feed(piece))
    list(decoder.finish())


@target()
def modem_requests(data: bytes) -> None:
    """The virtual modem: whatever is written to it."""
    from at.virtual.transport import VirtualTransport

    modem = VirtualTransport(instant=True).modem
    for piece in in_pieces(data):
        modem.receive(piece, 1.0)


@target(AtError)
def values(data: bytes) -> None:
    """The parameters of an answer."""
    from at.protocol.values import split

    split(text(data))


@target()
def command_text(data: bytes) -> None:
    """A command line: its name, and what of it is secret."""
    from at.protocol.command import read_command
    from at.protocol.redaction.command_redaction import without_secrets

    read_command(text(data))
    without_secrets(text(data))


@target()
def console(data: bytes) -> None:
    """What an application prints: logs, chunks, core dumps."""
    from agent.console.line_classifier import ConsoleReader

    reader = ConsoleReader()
    for piece in in_pieces(data):
        reader.receive(piece)
    reader.finish()


@target(ValueError)
def zephyr_dump(data: bytes) -> None:
    """A core dump of a Zephyr application, with its registers and threads."""
    from agent.console.zephyr_coredump import parse_dump
    from agent.console.zephyr_threads import ThreadLayout, read_threads

    dump = parse_dump(data)
    offsets = tuple(data[-40:]) or (0,)
    read_threads(dump, data, ThreadLayout(offsets, word=8 if len(data) % 2 else 4))


@target(ValueError)
def device_coredump(data: bytes) -> None:
    """A core dump in the service's own form."""
    from agent.observability.coredumps.device_coredump import parse_device_coredump

    parse_device_coredump(data)


@target(ValueError, AgentError)
def linux_core(data: bytes) -> None:
    """An ELF core of a program on this host."""
    from agent.observability.coredumps.linux_core import loaded_modules, parse_linux_core
    from agent.observability.coredumps.recognise import recognise

    with as_file(data) as path, path.open("rb") as file:
        recognise(file)
        file.seek(0)
        core = parse_linux_core(file)
        loaded_modules(core, file)


@target(AgentError)
def elf_symbols(data: bytes) -> None:
    """The symbols of an application."""
    from agent.observability.coredumps.symbols import ElfSymbols

    with as_file(data) as path:
        ElfSymbols(path).locate(int.from_bytes(data[-4:], "little"))


@target()
def chunks(data: bytes) -> None:
    """Chunks of a device: both readers, ours and the stand-in's."""
    from agent.observability.ingest.chunk_codec import Reassembler
    from agent.standin.observability.ingest.chunk_reassembly import Reassembler as TheirReassembler

    ours, theirs = Reassembler(), TheirReassembler()
    for piece in in_pieces(data):
        ours.receive(piece)
        theirs.receive("kit", piece, 0.0)
    ours.finish()


@target(ValueError)
def message(data: bytes) -> None:
    """A whole message of a device, with its events."""
    from agent.observability.ingest.chunks import open_message
    from agent.observability.ingest.event_decode import NotDecodable, decode_payload

    try:
        decode_payload(open_message(data))
    except NotDecodable:
        return


@target(AgentError, ValueError)
def message_at_the_standin(data: bytes) -> None:
    """The same, and core dumps, as the stand-in reads them."""
    from agent.standin.observability.ingest.coredumps import parse_coredump
    from agent.standin.observability.ingest.event_decode import parse_events
    from agent.standin.observability.ingest.messages import parse_message

    for read in (parse_events, parse_coredump):
        try:
            read(data)
        except ValueError:
            continue
    parse_message(data)


@target(AtError)
def transcript(data: bytes) -> None:
    """A recording, as a person may have written it."""
    from at.transcripts.transcript import parse_transcript

    parse_transcript(text(data))


@target(AtError)
def imported_log(data: bytes) -> None:
    """A log of another tool, made a recording."""
    from at.transcripts.importer import import_log
    from at.transcripts.transcript import format_transcript, parse_transcript

    imported = import_log(data).transcript
    try:
        parse_transcript(format_transcript(imported))
    except AtError as error:
        raise AssertionError("what was imported cannot be read") from error


@target(AgentError)
def agnss(data: bytes) -> None:
    """A-GNSS data."""
    from agent.location.agnss_file import parse_agnss

    parse_agnss(data)


@target(AgentError)
def pgps(data: bytes) -> None:
    """Predictions of satellites."""
    from agent.location.pgps_file import parse_pgps

    parse_pgps(data)


@target(AtError)
def attestation(data: bytes) -> None:
    """COSE: what a modem attests, and the key that it made."""
    from at.tokens.attestation import read_attestation, read_generated_key, read_sign1

    for read in (read_attestation, read_generated_key):
        try:
            read(text(data))
        except AtError:
            continue
    read_sign1(data)


@target(AtError)
def signing_request(data: bytes) -> None:
    """A CSR or a key, in DER or PEM."""
    from at.tokens.csr import read_key_body
    from at.tokens.key_formats import load_public_key, load_public_keys

    for read in (load_public_key, load_public_keys):
        try:
            read(data)
        except AtError:
            continue
    read_key_body(data)


@target(AtError)
def token(data: bytes) -> None:
    """A JWT."""
    from at.tokens.jwt import read_jwt

    read_jwt(text(data))


@target(AgentError)
def image(data: bytes) -> None:
    """An image of MCUboot."""
    from agent.fota.image import read_image

    with as_file(data) as path:
        read_image(path)


@target(AgentError)
def job(data: bytes) -> None:
    """The document of a FOTA job."""
    import json

    from agent.fota.jobs import read_job

    try:
        document = json.loads(data)
    except ValueError:
        return
    if isinstance(document, dict):
        read_job("job", document)


@target(AgentError)
def profile(data: bytes) -> None:
    """A profile's file, as a person may have written it."""
    from agent.config import load

    with as_file(data) as path:
        load(environ={"CELLAGENT_CONFIG": str(path), "HOME": str(path.parent)})


@target(Refused)
def bundle(data: bytes) -> None:
    """A zip of firmware, and one of a device's files, as the stand-in takes them."""
    from agent.standin.core.zip_files import BadArchive
    from agent.standin.device_cloud.bundles import read_zip
    from agent.standin.observability.ingest.archives import read_archive

    with contextlib.suppress(BadArchive):
        read_archive(data)
    read_zip(data)


@target()
def access_points(data: bytes) -> None:
    """What `iw` prints of a scan."""
    from agent.location.wifi.iw import parse_iw

    parse_iw(text(data))


@target(AgentError)
def network_manager(data: bytes) -> None:
    """NetworkManager's answer about an access point and its last scan: values with their types.

    They are written as JSON, `[type, value]`: bytes of D-Bus itself are for the library to read.
    """
    import json

    from dbus_fast import Message, MessageType, Variant

    from agent.location.wifi import networkmanager

    def typed(value: object) -> object:
        if isinstance(value, dict):
            return {name: Variant(*one) for name, one in value.items()}
        return Variant(*value) if isinstance(value, list) else value

    try:
        kind, value = json.loads(data)
        answer = Message(
            message_type=MessageType.METHOD_RETURN, reply_serial=1, signature=kind,
            body=[typed(value)],
        )  # fmt: skip
        answer._marshall(negotiate_unix_fd=False)  # a value that is not of its type
    except Exception:  # noqa: BLE001 - no message that a bus would pass on
        return

    class Bus:
        async def call(self, _question: object) -> object:
            return answer

    for read in (networkmanager._access_point, networkmanager._last_scan_ms):
        with contextlib.suppress(networkmanager._Refused):
            at_once(read(Bus(), "/"))  # type: ignore[arg-type]


@target(AgentError, AtError)
def smp_answers(data: bytes) -> None:
    """What a kit's SMP server answers while it is updated: CBOR, a line of it for each request."""
    import asyncio
    from unittest.mock import patch

    from smp.header import OP, Flag, Header
    from smpclient.transport.serial import SMPSerialTransport

    from agent.fota.installers.base import Package
    from agent.fota.installers.mcuboot import McubootInstaller
    from agent.fota.jobs import FirmwareType, Job

    answers = data.split(b"\n;")

    asked: list[Header] = []

    async def nothing(*_: object) -> bytes:
        return b""

    async def send(_: SMPSerialTransport, data: bytes) -> None:
        asked[:] = [Header.loads(data[: Header.SIZE])]

    async def receive(_: SMPSerialTransport) -> bytes:
        body = answers.pop(0) if len(answers) > 1 else answers[0]
        (to,) = asked
        op = OP.WRITE_RSP if to.op is OP.WRITE else OP.READ_RSP
        return Header(
            op, to.version, Flag(0), len(body), to.group_id, to.sequence, to.command_id
        ).BYTES + body  # fmt: skip

    async def updated(image: Path) -> None:
        installer = McubootInstaller("kit")
        package = Package(Job("job", FirmwareType.APP, "", (), 8), (image,), "2.0.0", "ab" * 32)
        await installer._mode()
        await installer.running(FirmwareType.APP)
        await installer.install(package, lambda *_: None)
        await installer.confirm(package)

    in_its_place = patch.multiple(
        SMPSerialTransport,
        connect=nothing, disconnect=nothing, read_serial=nothing, send=send, receive=receive,
    )  # fmt: skip
    with as_file(b"an image") as image, in_its_place:
        asyncio.run(updated(image))


@target(ValueError)
def control_lines(data: bytes) -> None:
    """The control socket: a request to the agent, its answers, notices to a window."""
    from agent.daemon.control import protocol

    kinds = (protocol.StatusAnswer, protocol.ErrorAnswer, protocol.MomentsAnswer)
    readers: list[Callable[[dict[str, Any]], object]] = [
        protocol.request_of,
        protocol.notice_of,
        *(partial(protocol.convert, kind=kind) for kind in kinds),
    ]
    for line in data.splitlines():
        message = protocol.parse(line)
        for read in readers:
            with contextlib.suppress(ValueError):
                read(message)


@target(AgentError)
def http_answer(data: bytes) -> None:
    """What a service answers: its first byte says to which call, its second how it went."""
    from agent.call import Response
    from agent.http.refusals import refusal
    from tests.support.cloud.every_call import CALLS

    data = data.ljust(2, b"\0")
    call, status = CALLS[data[0] % len(CALLS)], STATUSES[data[1] % len(STATUSES)]
    head, _, body = data[2:].rpartition(b"\r\n\r\n")
    lines = (line.partition(": ") for line in text(head).splitlines())
    response = Response(status, {name.lower(): value for name, _, value in lines}, body)
    if status in range(200, 300) or status in call.accepts:
        call.parse(response)
    else:
        now = datetime.fromtimestamp(1_790_000_000, UTC)
        raise refusal(call.title, response, now=now, advise=call.advice)


class as_file:  # noqa: N801 - it stands where a function would
    """A file with these bytes, in a folder of its own, while it is needed."""

    def __init__(self, data: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory())
        self._path = Path(self._folder.name, "input")
        self._path.write_bytes(data)

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _memory() -> str | None:
    """A file system in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
