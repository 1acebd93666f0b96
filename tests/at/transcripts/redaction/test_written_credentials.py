"""Which credential a line writes, and its digest."""

from __future__ import annotations

from hashlib import sha256

import pytest

from at.transcripts.redaction.written_credentials import WrittenCredential, written_credential


def digest(content: bytes) -> bytes:
    return sha256(content).hexdigest().upper().encode()


@pytest.mark.parametrize(
    ("line", "content"),
    [
        (b'AT%CMNG=0,17,1,"a\nb"\r', b"a\nb"),
        (b'at%cmng = 0, 17 ,1 , "a"\r', b"a"),
        (b"at 'AT%CMNG=0,17,1,\"a\\nb\"'\r", b"a\r\nb"),
    ],
)
def test_a_written_credential_has_the_digest_that_the_modem_lists(
    line: bytes, content: bytes
) -> None:
    assert written_credential(line) == WrittenCredential(b"17", b"1", digest(content))


@pytest.mark.parametrize("line", [b"AT%CMNG=1\r", b"AT%CMNG=3,17,1\r", b'AT%CMNG=0,17,1,"a', b""])
def test_other_lines_write_none(line: bytes) -> None:
    assert written_credential(line) is None
