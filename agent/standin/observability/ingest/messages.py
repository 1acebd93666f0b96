"""Reassembles the chunks of a device into messages, and adds their content to the project."""

from dataclasses import dataclass
from enum import Enum

import msgspec

from agent.standin.observability.ingest import records
from agent.standin.observability.ingest.archives import add_archive
from agent.standin.observability.ingest.chunk_reassembly import Reassembler, Received, varint
from agent.standin.observability.ingest.coredumps import BadCoredump
from agent.standin.observability.ingest.event_decode import BadEvent, DeviceEvent, parse_events
from agent.standin.observability.project import SLUG, VERSION, Project
from agent.standin.observability.tables import WAITING_CHUNKS, WaitingChunk
from agent.standin.state import PROJECTS, Cloud

MAX_EXPANDED_BYTES = 16 * 1024 * 1024

_KEY_FOLLOWS = 0x40
_RUN_LENGTHS = 0x80
_KEY_BYTES = 32


class MessageKind(Enum):
    """Type of a message: the low six bits of its first byte."""

    COREDUMP = 1
    EVENT = 2
    LOG = 3
    CDR = 4
    MAR = 5


class BadMessage(ValueError):
    """The bytes are not a message of a known type."""


@dataclass(frozen=True, slots=True)
class WholeMessage:
    """One message, reassembled. `project_key` overrides the key of the request when it is there."""

    kind: MessageKind
    project_key: str | None
    payload: bytes


def parse_message(data: bytes) -> WholeMessage:
    """Parse the header of a message and expand its run-length code. Raises BadMessage."""
    if not data:
        raise BadMessage("an empty message")
    head, payload = data[0], data[1:]
    try:
        kind = MessageKind(head & 0x3F)
    except ValueError:
        raise BadMessage(f"message type {head & 0x3F} is not known") from None
    key = None
    if head & _KEY_FOLLOWS:
        # The key travels as a C string: its NUL belongs to it, and is not the payload's.
        if len(payload) <= _KEY_BYTES or payload[_KEY_BYTES]:
            raise BadMessage("the project key of the message is cut short")
        try:
            key = payload[:_KEY_BYTES].decode("ascii")
        except UnicodeDecodeError:
            raise BadMessage("the project key of the message is no text") from None
        payload = payload[_KEY_BYTES + 1 :]
    if head & _RUN_LENGTHS:
        payload = expand_runs(payload)
    return WholeMessage(kind, key, payload)


def expand_runs(data: bytes) -> bytes:
    """Expand the SDK's run-length code: n > 0 repeats one byte, n < 0 is -n literal bytes.

    Raises BadMessage when a run is cut short or the whole is longer than MAX_EXPANDED_BYTES.
    """
    out = bytearray()
    at = 0
    while at < len(data):
        count, at = _signed_varint(data, at)
        if count == 0:
            raise BadMessage("a run of no bytes")
        size = abs(count)
        if len(out) + size > MAX_EXPANDED_BYTES:
            raise BadMessage(f"it expands to more than {MAX_EXPANDED_BYTES} bytes")
        taken = data[at : at + (1 if count > 0 else size)]
        if len(taken) != (1 if count > 0 else size):
            raise BadMessage("the last run is cut short")
        out += taken * size if count > 0 else taken
        at += len(taken)
    return bytes(out)


def _signed_varint(data: bytes, at: int) -> tuple[int, int]:
    value, end = varint(data, at, "the length of a run", BadMessage)
    return (value >> 1) ^ -(value & 1), end


def add_message(project: Project, serial: str, message: bytes) -> None:
    """Add the content of a message to the project; errors go to the processing log.

    `serial` is that of the request; an event that names its own device overrides it.
    """
    try:
        parsed = parse_message(message)
        if parsed.project_key is not None:
            project = _by_key(project, parsed.project_key)
        if parsed.kind is MessageKind.COREDUMP:
            records.add_coredump(project, parsed.payload, serial)
        elif parsed.kind is MessageKind.MAR:
            add_archive(project, parsed.payload, serial)
        else:
            events = parse_events(parsed.payload)
            prepared = [(_prepare(event, serial), event.captured_unix_s) for event in events]
            for pushed, captured in prepared:
                records.add_event(project, pushed, captured)
    except (BadMessage, BadEvent, BadCoredump) as error:
        project.log("error", str(error), serial)


def _prepare(event: DeviceEvent, serial: str) -> records.PushedEvent:
    """Fill in fields that a device omits, and check its identifiers."""
    fields = {"device_serial": serial, "hardware_version": "unknown", **event.fields}
    fields.setdefault("software_version", fields.get("release_version", "0.0.0"))
    fields["type"] = event.type
    for name, rule in (("device_serial", SLUG), ("hardware_version", VERSION)):
        records.refuse_bad(fields[name], rule, name, BadEvent)
    return msgspec.convert(fields, records.PushedEvent)


def _by_key(project: Project, key: str) -> Project:
    """Return the project of a message's own key. Raises BadMessage for an unknown key."""
    for other in project.cloud.table(PROJECTS).values():
        if other.project_key == key:
            return Project(project.cloud, other.organization, other.slug)
    raise BadMessage("the project key in the message is not known")


class StoredReassembler:
    """The reassembler of a stand-in; incomplete messages are stored, so they survive a restart."""

    def __init__(self, cloud: Cloud) -> None:
        self._reassembler = Reassembler()
        self._table = cloud.table(WAITING_CHUNKS)
        self._rows: dict[str, list[str]] = {}
        self._last = 0
        for row, chunk in self._table.items():
            sender, _, number = row.rpartition("/")
            self._last = int(number)
            self._rows.setdefault(sender, []).append(row)
            self._reassembler.receive(sender, chunk.raw, chunk.at)

    def receive(self, project: Project, serial: str, raw: bytes) -> Received:
        """Add the next chunk of a device."""
        sender = f"{project.organization}/{project.slug}/{serial}"
        received = self._reassembler.receive(sender, raw, project.now)
        for other in received.ended_keys:
            for row in self._rows.pop(other, ()):
                self._table.delete(row)
        if received.is_incomplete:
            self._last += 1
            row = f"{sender}/{self._last}"
            self._rows.setdefault(sender, []).append(row)
            self._table.put(row, WaitingChunk(at=project.now, raw=raw))
        return received


def reassembler_of(cloud: Cloud) -> StoredReassembler:
    """Return the reassembler of a stand-in, created with its first chunk."""
    return cloud.of_tables(StoredReassembler, lambda: StoredReassembler(cloud))
