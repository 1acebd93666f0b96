from __future__ import annotations

import base64

import pytest
from credential_calls import Push

from agent.auth.credential import Basic
from agent.config.secrets import Secret
from agent.errors import ConfigError


@pytest.mark.contract("O4.1", "O4.5")
async def test_basic_sends_email_and_secret_and_warns() -> None:
    credential = Basic("a@b.example", Secret("pass word"), is_password=True)
    sent = (await credential.headers(Push()))["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"a@b.example:pass word"
    assert "whole account" in credential.warning
    assert "pass word" not in repr(credential)
    key = Basic("a@b.example", Secret("user-key-1"), is_password=False, unattended=True)
    assert "stops working when its user leaves" in key.warning
    assert Basic("a@b.example", Secret("user-key-1"), is_password=False).warning == ""
    for cause in ("single", "removed"):
        assert cause in key.advice(401)
    with pytest.raises(ConfigError, match=r"account\.email"):
        Basic("a:b", Secret("user-key-1"), is_password=False)
