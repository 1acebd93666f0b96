"""The call that pushes chunks as the kit printed them, in order (clause O5.1); the message in them.

Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.call import Host, Request, Scheme, StatusCall
from agent.observability.api.resource_names import check_slug
from agent.observability.ingest.chunk_codec import decode_varint

MAX_CHUNKS = 100
"""Chunks of one request; `agent.outbox.schedule` keeps to it."""
MAX_CHUNKS_BYTES = 256 * 1024
"""Bytes of one request, unless a single chunk is larger."""


@dataclass(frozen=True, slots=True)
class PushChunks(StatusCall):
    """Push chunks of one device: POST /api/v0/chunks/<device_serial>.

    One chunk goes as it is, several as the parts of a multipart/mixed body. 409 means that the
    service has them already. Raises UsageError when the serial is no slug.
    """

    host: ClassVar[Host] = Host.CHUNKS
    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.PROJECT_KEY,)
    accepts: ClassVar[frozenset[int]] = frozenset({409})

    device_serial: str
    chunks: Sequence[bytes]
    request_id: str = ""
    """The same at every try; the service ignores what it does not know."""

    def request(self) -> Request:
        """Return the chunks in their order."""
        path = f"/api/v0/chunks/{check_slug('device_serial', self.device_serial)}"
        headers = {"x-request-id": self.request_id} if self.request_id else {}
        if len(self.chunks) == 1:
            headers["content-type"] = "application/octet-stream"
            return Request("POST", path, headers=headers, content=self.chunks[0])
        boundary = _boundary(self.chunks)
        headers["content-type"] = f"multipart/mixed; boundary={boundary}"
        return Request("POST", path, headers=headers, content=_multipart(self.chunks, boundary))


def _multipart(chunks: Sequence[bytes], boundary: str) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += (
            f"--{boundary}\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {len(chunk)}\r\n\r\n"
        ).encode()
        body += chunk + b"\r\n"
    return bytes(body + f"--{boundary}--\r\n".encode())


def _boundary(chunks: Sequence[bytes]) -> str:
    """Return a boundary that no chunk holds, the same for the same chunks."""
    import hashlib  # it loads OpenSSL, which whoever reads messages can do without

    digest = hashlib.sha256(b"".join(chunks))
    while any(digest.hexdigest()[:32].encode() in chunk for chunk in chunks):
        digest.update(b"again")
    return digest.hexdigest()[:32]


KINDS = {0: "none", 1: "coredump", 2: "event", 3: "log", 4: "cdr", 5: "mar"}
"""The low six bits of the first byte -> the kind of the message."""
MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes that a run-length coded payload may expand to: a few bytes can claim gigabytes."""

_KEY_FOLLOWS = 0x40
_RUN_LENGTH = 0x80
_KEY_SIZE = 32


@dataclass(frozen=True, slots=True)
class DeviceMessage:
    """A decoded message, without the project key that it may name; `payload` is expanded."""

    kind: str
    """A value of KINDS, or "unknown"."""
    payload: bytes


def open_message(data: bytes) -> DeviceMessage:
    """Decode a message. Raises ValueError if it is truncated or its run lengths are wrong."""
    if not data:
        raise ValueError("an empty message has no type")
    header, payload = data[0], data[1:]
    if header & _KEY_FOLLOWS:
        if len(payload) < _KEY_SIZE + 1 or payload[_KEY_SIZE]:
            raise ValueError("a project key of 32 characters and its NUL is announced, not there")
        payload = payload[_KEY_SIZE + 1 :]
    if header & _RUN_LENGTH:
        payload = expand(payload)
    return DeviceMessage(KINDS.get(header & 0x3F, "unknown"), payload)


def kind_of(data: bytes) -> str:
    """Return the kind of a message without decoding it; "unknown" for an empty one."""
    return KINDS.get(data[0] & 0x3F, "unknown") if data else "unknown"


def expand(coded: bytes, limit: int = MAX_EXPANDED) -> bytes:
    """Undo run-length coding: zigzag varint n, then n > 0 times one byte or -n literal bytes.

    Raises ValueError when the runs do not add up or exceed `limit` bytes.
    """
    plain = bytearray()
    at = 0
    while at < len(coded):
        number, at = decode_varint(coded, at)
        count = number >> 1 ^ -(number & 1)
        if len(plain) + abs(count) > limit:
            raise ValueError(f"the run lengths exceed {limit} bytes")
        size = 1 if count > 0 else -count
        run = coded[at : at + size]
        if count == 0 or len(run) != size:
            raise ValueError(f"a run of {count} at byte {at} of {len(coded)} does not fit")
        plain += run * count if count > 0 else run
        at += size
    return bytes(plain)
