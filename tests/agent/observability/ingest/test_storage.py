"""A large file in parts."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import AgentError, InvalidRequest, Unavailable
from agent.http import HttpTransport
from agent.http.refusals import MAX_TEXT
from agent.observability.ingest.storage import (
    UploadUrlExpired,
    complete_parts,
    completion_body,
    part_bounds,
    put_bytes,
)

REFUSED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>EntityTooLarge</Code><Message>'
    b"The upload &gt; the limit of\x1b[31m /kits/x?Test-Signature=0123&amp;Test-Date=1"
    b"</Message><Resource>/kits/x?Test-Signature=0123</Resource></Error>"
)


@asynccontextmanager
async def a_storage(
    status: int, body: bytes, *, announced: int | None = None
) -> AsyncIterator[str]:
    """A server on loopback that answers each request so and closes the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        length = len(body) if announced is None else announced
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        with suppress(ConnectionError):  # the client has read enough
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/kits/x?Test-Signature=0123"


async def refusal_of(url: str, *, in_parts: bool = False) -> AgentError:
    transport = HttpTransport()
    if in_parts:
        sent = complete_parts(transport, url, b"")
    else:
        sent = put_bytes(transport, url, io.BytesIO(), (0, 0))
    with pytest.raises(AgentError) as caught:
        await sent
    await transport.close()
    return caught.value


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidRequest), (403, UploadUrlExpired), (410, UploadUrlExpired), (503, Unavailable)],
)
async def test_a_refusal_of_the_storage_has_its_own_words_and_no_signature(status, kind, in_parts):
    async with a_storage(status, REFUSED) as url:
        error = await refusal_of(url, in_parts=in_parts)
    assert type(error) is kind
    assert str(error) == (
        f"the storage answered {status} to the upload: "
        "EntityTooLarge: The upload > the limit of [31m /kits/x?…"
    )


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize(
    ("body", "announced"),
    [(REFUSED, 10_000), (REFUSED + bytes(1_000_000), None)],
    ids=["cut", "long"],
)
async def test_a_refusal_that_is_cut_or_long_is_the_same_refusal(body, announced):
    async with a_storage(403, body, announced=announced) as url:
        error = await refusal_of(url)
    assert type(error) is UploadUrlExpired
    assert "EntityTooLarge" in str(error)


@pytest.mark.contract("O5.3")
async def test_a_part_that_was_taken_is_done_before_the_rest_of_the_answer():
    left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\netag: "1"\r\ncontent-length: 1\r\n\r\n')
        await reader.read()  # the byte that is left never comes
        writer.close()
        left.set()

    transport = HttpTransport()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/kits/x"
        async with asyncio.timeout(20):  # a body that does not come is given up later
            assert await put_bytes(transport, url, io.BytesIO(), (0, 0)) == '"1"'
        await transport.close()
        await left.wait()


@given(words=st.binary(max_size=2000))
def test_what_a_storage_says_is_bounded_and_has_no_control_character(words):
    async def refused() -> AgentError:
        async with a_storage(400, b"<Error><Message>" + words + b"</Message></Error>") as url:
            return await refusal_of(url)

    text = str(asyncio.run(refused()))
    assert text.isprintable()
    assert len(text) < MAX_TEXT + 50


def test_parts_cover_the_file_and_are_all_alike_but_the_last():
    assert part_bounds(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert part_bounds(10, 1) == [(0, 10)]


@pytest.mark.contract("O5.3")
async def test_a_storage_that_fails_after_its_200_has_not_completed_the_parts():
    """An object store answers 200 before it joins the parts, and says of that in the body."""
    failed = (
        b'<?xml version="1.0" encoding="UTF-8"?>\n\n  \n<Error><Code>InternalError</Code>'
        b"<Message>We encountered an internal error. Please try again.</Message></Error>"
    )
    async with a_storage(200, failed) as url:
        error = await refusal_of(url, in_parts=True)
    assert type(error) is Unavailable
    assert str(error) == (
        "the storage could not complete the upload: "
        "InternalError: We encountered an internal error. Please try again."
    )


def test_what_completes_the_parts_names_them_in_order():
    assert completion_body(['"a"', "b<"]) == (
        b'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part>'
        b"<Part><PartNumber>2</PartNumber><ETag>b&lt;</ETag></Part></CompleteMultipartUpload>"
    )
