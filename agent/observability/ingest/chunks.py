"""The call that pushes chunks: as the kit printed them, in order (clause O5.1). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.call import Call, Host, Request, Response, Scheme
from agent.observability.api.resource_names import check_slug

MAX_CHUNKS = 100
"""Chunks of one request; `agent.outbox.schedule` keeps to it."""
MAX_CHUNKS_BYTES = 256 * 1024
"""Bytes of one request, unless a single chunk is larger."""


@dataclass(frozen=True, slots=True)
class PushChunks(Call[None]):
    """Push chunks of one device: POST /api/v0/chunks/<device_serial>.

    One chunk goes as it is, several as the parts of a multipart/mixed body. Raises UsageError
    when the serial is no slug.
    """

    host: ClassVar[Host] = Host.CHUNKS
    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.PROJECT_KEY,)

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

    def parse(self, response: Response) -> None:
        """Return nothing: 202 means that they are queued, not that they can be read.

        Raises BadAnswer.
        """
        response.check_accepted()


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
    digest = hashlib.sha256(b"".join(chunks))
    while any(digest.hexdigest()[:32].encode() in chunk for chunk in chunks):
        digest.update(b"again")
    return digest.hexdigest()[:32]
