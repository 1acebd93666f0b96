"""What the virtual kit downloads by itself (#XFOTA): plain http from this machine, nothing else."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from at.virtual.tcp_server import is_loopback

_LARGEST = 16 * 1024 * 1024
_PATIENCE_S = 30.0


async def download(url: str) -> bytes | None:
    """Return the body behind a URL; None if there is none. HTTP/1.0, one answer, no redirects."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or not is_loopback(parts.hostname):
        return None
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    request = f"GET {target} HTTP/1.0\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            try:
                writer.write(request.encode("ascii", "strict"))
                answer = await reader.read(1)
                while len(answer) < _LARGEST and (piece := await reader.read(65536)):
                    answer += piece
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return None
    head, blank, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split()
    if not blank or len(status) < 2 or status[1] != b"200":
        return None
    length = next(
        (
            v
            for k, _, v in (line.partition(b":") for line in head.split(b"\r\n"))
            if k.lower() == b"content-length"
        ),
        None,
    )
    if length is not None and length.strip().isdigit() and int(length) != len(body):
        return None
    return body
