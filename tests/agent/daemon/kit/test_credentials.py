"""What was in a kit's security tag and is there no more is told, with what brings it back."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.daemon.kit.credentials import KitCredentials
from agent.daemon.kit.store import KitStore
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.commands.running_agent import (
    Served,
    agent_on,
    concern_of,
    kit_to_crash,
    profile_with,
)
from tests.support.modem.line_modem import LineModem

TAG = 16842753


@pytest.fixture
async def modem() -> AsyncIterator[Modem]:
    modem = Modem(VirtualTransport(instant=True))
    await modem.open()
    yield modem
    await modem.close()


async def told(credentials: KitCredentials, modem: Modem) -> list[str]:
    await credentials.check(modem, TAG)
    return [str(finding) for finding in credentials.findings]


async def test_a_key_that_was_never_seen_is_not_missed(modem: Modem, tmp_path: Path) -> None:
    assert await told(KitCredentials(KitStore(tmp_path, "lab", "kit")), modem) == []


async def test_what_vanishes_is_told_after_a_restart_and_until_it_is_back(
    modem: Modem, tmp_path: Path
) -> None:
    credentials = KitCredentials(KitStore(tmp_path, "lab", "kit"))
    await modem.execute(f"AT%KEYGEN={TAG},2,0")
    await modem.execute(f'AT%CMNG=0,{TAG},0,"a certificate"')
    assert await told(credentials, modem) == []
    await modem.execute(f"AT%CMNG=3,{TAG},2")
    assert await told(credentials, modem) == []  # listed once a start: nothing restarted
    credentials.expect_loss()
    (said,) = await told(credentials, modem)
    assert f"the private key is gone from security tag {TAG}, where this agent saw it" in said
    assert f"`cellagent provision run --security-tag {TAG}`" in said
    again = KitCredentials(KitStore(tmp_path, "lab", "kit"))
    assert await told(again, modem) == [said]
    await modem.execute(f"AT%KEYGEN={TAG},2,0")
    assert await told(again, modem) == []


@pytest.mark.parametrize(
    "damaged", [f'temperature %CMNG: {TAG},2,"{"0" * 64}"', "OK"], ids=["within a row", "an OK"]
)
async def test_a_row_that_the_application_prints_into_is_no_key_that_is_gone(
    tmp_path: Path, damaged: str
) -> None:
    row = f'%CMNG: {TAG},2,"{"0" * 64}"'
    lists = [row, damaged, row]
    far = LineModem(lambda line: lists.pop(0) if "CMNG" in line else "")
    modem = Modem(far.transport)
    await modem.open()
    credentials = KitCredentials(KitStore(tmp_path, "lab", "kit"))
    assert await told(credentials, modem) == []
    credentials.expect_loss()
    assert await told(credentials, modem) == []
    assert not lists
    await modem.close()


async def test_an_empty_tag_is_told_with_all_that_it_held(modem: Modem, tmp_path: Path) -> None:
    credentials = KitCredentials(KitStore(tmp_path, "lab", "kit"))
    await modem.execute(f"AT%KEYGEN={TAG},2,0")
    await modem.execute(f'AT%CMNG=0,{TAG},0,"a certificate"')
    await told(credentials, modem)
    for kind in (0, 2):
        await modem.execute(f"AT%CMNG=3,{TAG},{kind}")
    credentials.expect_loss()
    (said,) = await told(credentials, modem)
    assert "the CA certificate, the private key are gone" in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
async def test_the_agent_tells_it_of_a_kit_that_it_knew_before(
    tmp_path: Path, cloud: Served
) -> None:
    where = profile_with(tmp_path, cloud)
    async with kit_to_crash(tmp_path) as kit:
        kit.receive(f"AT%KEYGEN={TAG},2,0\r".encode())
        async with agent_on(where) as agent:
            await agent.until("kit", "link", "well")
            await agent.stop()
        kit.receive(f"AT%CMNG=3,{TAG},2\r".encode())
        async with agent_on(where) as agent:
            status = await agent.until_status(
                lambda status: bool(concern_of(status, "kit", "link").get("findings"))
            )
            await agent.stop()
    (said,) = [
        finding["what"]
        for finding in concern_of(status, "kit", "link")["findings"]
        if "gone" in finding["what"]
    ]
    assert "the private key" in said
    assert sum("is gone from security tag" in line for line in agent.log) == 1
