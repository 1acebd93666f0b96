from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import redact as sink
from agent.config import Secret
from agent.redact import redact
from tests.support.modem.secret_spellings import CANARY as SPELLED_SECRET
from tests.support.modem.secret_spellings import spelled

CANARY = "canary-5f1c9e-of-the-test"


@pytest.mark.parametrize(
    "text",
    [
        f"key {CANARY}.",
        f"https://x.example/?key={CANARY}",
        "Authorization: Bearer abcdefghijkl.mnop",
        "authorization: bearer unregistered-token-0123456789",
        "Basic dXNlcjpwYXNzd29yZA==",
        "token oat_Abc123-x was refused",
        "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "cut eyJhbGciOiJFUzI1NiJ9.eyJzdWIi",
        "-----BEGIN PRIVATE KEY-----\nabcdef0123\n-----END PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nabcdef0123 (cut)",
        "the proxy http://me:abcdef@proxy.example:3128",
        "(b'location', b'https://x.example/f?X-Amz-Security-Token=abcdef%2F&X-Amz-Date=1')",
        "(b'location', b'https://x.example/f?X-Amz-Date=1&X-Amz-Signature=abcdef')",
        "https://x.example/f?sv=2024&sig=abcdef%2B1%3D&se=1",
    ],
)
def test_what_is_or_looks_like_a_secret_is_hidden(text: str) -> None:
    Secret(CANARY)
    hidden = redact(f"before {text} after" if "cut)" not in text else f"before {text}")
    assert "[secret]" in hidden
    for part in (CANARY, "abcdef", "oat_A", "eyJhbGci", "unregistered", "dXNlcj", "c2lnbmF0"):
        assert part not in hidden
    assert hidden.startswith("before")


def test_each_of_many_beginnings_of_a_token_is_looked_at_once() -> None:
    """By the square of their number these would take minutes, beyond the limit of a test."""
    assert redact("eyJ" * 1_000_000) == "eyJ" * 1_000_000
    assert redact("eyJ" * 9 + ".x") == "[secret]"


def test_no_spelling_of_a_command_or_answer_shows_its_secret() -> None:
    kept = [
        (name, spelling)
        for name, spelling, line, _sent in spelled()
        if SPELLED_SECRET in redact(f"/dev/ttyACM0: {line}")
    ]
    assert kept == []


@pytest.mark.contract("D10.6", "O4.2")
def test_a_secret_that_begins_with_another_is_hidden_whole_in_each_of_its_forms() -> None:
    for number in range(20):
        Secret(f"evaluation-{'/x' * number}")
    longest = f"evaluation-{'/x' * 19}"
    assert redact(longest) == redact(quote(longest, safe="")) == "[secret]"


@given(value=st.text(min_size=4, max_size=60), around=st.text(max_size=20))
def test_any_registered_value_is_hidden_wherever_it_stands(value: str, around: str) -> None:
    sink._known, sink._compiled = set(), (0, None)
    Secret(value)
    assert value not in redact(around + value + around).replace("[secret]", "\0")
