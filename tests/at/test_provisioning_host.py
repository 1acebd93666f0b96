"""The host does what a kit's provisioning client asks, and says why it failed and what is next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from at import provisioning_host
from at.commands.serial_modem.cloud import ReadCloudState
from at.commands.serial_modem.provisioning import ProvisioningEvent
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected, ParseError, ProvisioningFailed
from at.virtual.modem import VirtualModem
from at.virtual.transport import VirtualTransport

SM2 = "serial-modem-2.0.0"


@asynccontextmanager
async def kit(*lines: str, **options: Any) -> AsyncIterator[tuple[Modem, VirtualModem]]:
    transport = VirtualTransport(instant=True, **{"firmware": SM2, **options})
    modem = Modem(transport)
    await modem.open()
    try:
        for line in lines:
            assert (await modem.execute(line)).ok
        yield modem, transport.modem
    finally:
        await modem.close()


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("mode", [0, 1, 4])
async def test_the_radio_goes_off_and_on_as_often_as_the_kit_asks(rounds: int, mode: int) -> None:
    faults = (f"provisioning-rounds={rounds}",)
    async with kit(f"AT+CFUN={mode}", faults=faults) as (modem, virtual):
        await provisioning_host.take_commands(modem)
        assert virtual.kit.registered
        assert virtual.kit.session.provisioning is None


@pytest.mark.parametrize("status", range(-6, 0))
async def test_each_failure_has_a_cause_and_a_next_step(status: int) -> None:
    async with kit("AT+CFUN=1", faults=(f"provisioning-failed={status}",)) as (modem, _):
        with pytest.raises(ProvisioningFailed, match=f"#XNRFPROV: {status}") as failed:
            await provisioning_host.take_commands(modem)
        assert failed.value.hint
    assert provisioning_host.failure_of(ProvisioningEvent.DONE) is None


async def test_a_client_that_says_nothing_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning_host, "NEXT_S", 0.05)
    async with kit("AT+CFUN=1", faults=("provisioning-silent",)) as (modem, _):
        with pytest.raises(ProvisioningFailed, match="said nothing"):
            await provisioning_host.take_commands(modem)


async def test_a_kit_that_restarts_is_not_waited_for() -> None:
    async with kit("AT+CFUN=1", faults=("provisioning-silent",)) as (modem, virtual):
        virtual.kit.schedule(0.0, lambda: virtual.kit.notify("#XNRFPROV: 1"))
        taking = asyncio.create_task(provisioning_host.take_commands(modem))
        while virtual.kit.active:  # noqa: ASYNC110 - the virtual modem has no event for it
            await asyncio.sleep(0)
        virtual.kit.schedule_restart(0.0)
        with pytest.raises(ProvisioningFailed, match="restarted while it took") as failed:
            async with asyncio.timeout(30):
                await taking
        assert "start it again" in failed.value.hint


async def test_a_client_without_an_end_is_given_up() -> None:
    async with kit("AT+CFUN=1", faults=("provisioning-rounds=99",)) as (modem, _):
        with pytest.raises(ProvisioningFailed, match="20 times"):
            await provisioning_host.take_commands(modem)


@pytest.mark.parametrize(
    ("options", "has"),
    [
        ({}, True),
        ({"firmware": "serial-modem-1.0.0"}, False),
        ({"firmware": "2.0.4", "dialect": "at-host"}, False),
    ],
)
async def test_only_serial_modem_2_has_a_client(options: dict[str, str], has: bool) -> None:
    async with kit(**options) as (modem, _):
        assert await provisioning_host.has_client(modem) is has
        if not has:
            with pytest.raises(CommandRejected):
                await provisioning_host.take_commands(modem)


async def test_a_notice_that_breaks_its_grammar_is_no_answer() -> None:
    async with kit("AT+CFUN=1", faults=("provisioning-silent",)) as (modem, virtual):
        virtual.kit.schedule(0.0, lambda: virtual.kit.notify("#XNRFPROV: 11"))
        with pytest.raises(ParseError):
            await provisioning_host.take_commands(modem)
        assert virtual.kit.active


async def test_the_radio_is_on_again_after_a_session_that_failed_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provisioning_host, "NEXT_S", 0.05)
    async with kit("AT+CFUN=1", faults=("provisioning-silent",)) as (modem, virtual):
        virtual.kit.schedule(0.0, lambda: virtual.kit.notify("#XNRFPROV: 1"))
        with pytest.raises(ProvisioningFailed, match="said nothing") as failed:
            await provisioning_host.take_commands(modem)
        assert "`cellagent modem at 'AT#XRESET'`" in failed.value.hint
        assert virtual.kit.active
        assert virtual.kit.registered


async def test_an_open_session_is_renewed_after_credentials_were_written() -> None:
    start = ("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1,1")
    for rounds, said in ((0, []), (1, ["0,1", "1,1"])):
        faults = (f"provisioning-rounds={rounds}",)
        async with kit(*start, faults=faults) as (modem, virtual):
            with modem.notices("#XNRFCLOUD") as notices:
                await provisioning_host.take_commands(modem)
                assert (await modem.execute("AT")).ok
                heard = [notices.queue.get().line for _ in range(len(notices.queue))]
            assert [line.partition(": ")[2] for line in heard] == said
            assert virtual.kit.session.cloud_ready


async def test_a_modem_that_says_nothing_keeps_the_session_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReadCloudState, "timeout_s", 0.05)
    async with kit("AT+CFUN=1") as (modem, virtual):
        virtual.kit.powered = False
        await provisioning_host.renew_cloud_session(modem)
        virtual.kit.powered = True


async def test_a_kit_that_does_not_get_online_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning_host, "ONLINE_S", 0.05)
    async with kit(faults=("denied=8",)) as (modem, _):
        with pytest.raises(ProvisioningFailed, match="The network's cause is EMM 8") as failed:
            await provisioning_host.go_online(modem)
    assert "Ask the SIM's provider" in failed.value.hint
