"""What is redacted, and what keeps its shape."""

from __future__ import annotations

import re

from secret_spellings import CANARY as SPELLED_SECRET
from secret_spellings import spelled

from at.transcripts.redaction import Redactor

CANARY = "c0ffee5ec2e7"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0." + CANARY * 7


def test_a_token_keeps_its_claims_and_loses_its_signature() -> None:
    cleaned = Redactor().clean(f'%JWT: "{TOKEN}"'.encode())
    assert cleaned.startswith(b'%JWT: "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.')
    assert re.fullmatch(rb'.*\."?A{86}"', cleaned)


def test_no_spelling_of_a_secret_command_or_answer_is_kept() -> None:
    redactor = Redactor()
    kept = [
        (name, spelling)
        for name, spelling, line, _sent in spelled()
        if SPELLED_SECRET in redactor.clean(line.encode() + b"\r\n").decode()
    ]
    assert kept == []


def test_an_identity_becomes_another_one_of_the_same_shape_everywhere() -> None:
    redactor = Redactor(identity=True)
    lines = [
        b'+CGSN: "352656100367872"',
        b"352656100367872",
        b"%XICCID: 8931089318104314834F",
        b"#XUUID: 50363154-3930-44d9-80d9-0b2d1f3f2b1f",
        b'AT%JWT=0,60,"nrf-352656100367872"',
    ]
    cleaned = [redactor.clean(line) for line in lines]
    assert not any(old in new for old, new in zip((b"352656100367872",) * 5, cleaned, strict=True))
    assert re.fullmatch(rb'\+CGSN: "(\d{15})"', cleaned[0])
    assert cleaned[1] == re.search(rb"\d{15}", cleaned[0]).group()  # type: ignore[union-attr]
    assert re.fullmatch(rb"%XICCID: \d{19}F", cleaned[2])
    assert re.fullmatch(rb"#XUUID: [0-9a-f-]{36}", cleaned[3])
    assert b'"nrf-' + cleaned[1] in cleaned[4]


def test_times_are_no_identities() -> None:
    line = b'%XTIME: "40","62110221219440","00"'
    assert Redactor(identity=True).clean(line) == line
    listed = b'%CMNG: 7,3,"' + b"A" * 64 + b'"'
    assert Redactor().clean(listed) == listed
