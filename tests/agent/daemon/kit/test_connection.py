"""The connection to a kit's modem: how often it is looked at."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.auth.credential import Keyring
from agent.config.profile import KitSettings, Profile
from agent.daemon.kit import link
from agent.daemon.kit.kit import KitAgent
from agent.daemon.status import StatusRegistry
from agent.http import HttpClient
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem


def test_a_kit_that_sends_a_notice_with_each_answer_is_not_checked_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def body(command: str) -> str | None:
        modem.transport.deliver(b'+CEREG: 5,"76C1","0102DA04",7\r\n')
        return modem.reads.get(command, "")

    modem = LineModem(body, lambda _command: 0.001)
    monkeypatch.setattr(link, "transport_of", lambda *_, **__: modem.transport)
    nowhere: Any = None
    outbox: Any = SimpleNamespace(submit=lambda _work: None)
    client = HttpClient(nowhere, {}, Keyring([]))
    kit = KitAgent(
        "kit",
        Profile(kit=KitSettings(port="/dev/ttyACM0")),
        client,
        registry=StatusRegistry(),
        outbox=outbox,
        state_dir=tmp_path,
        wake_delivery=lambda: None,
    )

    async def minute() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(kit.link.run(), 60.0)

    virtual_time.run(minute())
    assert 10 < modem.received.count("AT+CEREG?") < 70
