"""A download host on a real socket, whose answers can be made wrong one request at a time."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True)
class Fault:
    """What one answer does instead of the right thing."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    """Headers to leave out."""
    cut_after: int | None = None
    """Body bytes after which the connection is closed."""
    body: bytes | None = None
    no_ranges: bool = False
    shift: int = 0
    """Bytes by which the range starts elsewhere than asked, told truly."""
    short_end: int = 0
    """Bytes by which the range ends earlier, told truly."""
    chunked: bool = False
    endless: bool = False
    refuse: bool = False
    """Close without an answer."""
    stall_after: int | None = None
    """Body bytes after which nothing comes until the client leaves."""


@dataclass
class FileServer:
    content: bytes
    etag: str = '"v1"'
    faults: list[Fault] = field(default_factory=list)
    """For the next requests, one each; then all is well."""
    default: Fault = field(default_factory=Fault)
    requests: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0
    port: int = 0
    honour_if_range: bool = True

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        request = {":line": head[0]}
        for line in head[1:]:
            name, _, value = line.partition(":")
            if name:
                request[name.lower()] = value.strip()
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else self.default
        if fault.refuse:
            return False
        status, headers, body = self._answer(request, fault)
        headers = {**headers, **fault.headers}
        for name in fault.drop:
            headers.pop(name, None)
        if fault.chunked:
            headers.pop("content-length", None)
            headers["transfer-encoding"] = "chunked"
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        keeps = request.get("connection", "").lower() != "close"
        return await self._body(reader, writer, fault, body) and keeps

    async def _body(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault, body: bytes
    ) -> bool:
        end = next(n for n in (fault.cut_after, fault.stall_after, len(body)) if n is not None)
        for at in range(0, min(end, len(body)), 16384):
            piece = body[at : min(at + 16384, end)]
            self.sent += len(piece)
            writer.write(
                f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if fault.chunked else piece
            )
            await writer.drain()
        while fault.endless:
            self.sent += 65536
            writer.write(b"10000\r\n" + bytes(65536) + b"\r\n" if fault.chunked else bytes(65536))
            await writer.drain()
        if fault.stall_after is not None:
            await reader.read()
            return False
        if fault.cut_after is not None:
            return False
        if fault.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return "connection" not in fault.headers

    def _answer(self, request: dict[str, str], fault: Fault) -> tuple[int, dict[str, str], bytes]:
        size = len(self.content)
        headers = {"etag": self.etag} if self.etag else {}
        if fault.body is not None or (fault.status or 200) >= 300:
            body = fault.body or b""
            return fault.status or 200, {"content-length": str(len(body))}, body
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.get("range", ""))
        fresh = request.get("if-range", self.etag) == self.etag or not self.honour_if_range
        if asked and fresh and not fault.no_ranges:
            start = max(int(asked[1]) + fault.shift, 0)
            last = min(int(asked[2] or size - 1), size - 1) - fault.short_end
            if start >= size:
                return 416, {"content-range": f"bytes */{size}", "content-length": "0"}, b""
            body = self.content[start : last + 1]
            headers |= {
                "content-range": f"bytes {start}-{last}/{size}",
                "content-length": str(len(body)),
            }
            return 206, headers, body
        return 200, {**headers, "content-length": str(size)}, self.content

    def becomes(self, content: bytes, etag: str) -> None:
        """Put another file in the place of this one."""
        self.content, self.etag = content, etag


@asynccontextmanager
async def file_server(content: bytes, **options: object) -> AsyncIterator[FileServer]:
    server = replace(FileServer(content), **options)  # type: ignore[arg-type]
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()
