"""A board behind a real driver and the virtual modem: what it is, holds, writes and proves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.config.identity_keys import IdentityKeys, UntrustedSignature
from agent.provisioning.boards.board import BoardSwapped
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.planning.plan import OFFLINE_MODE, stored_digest
from at.commands.credentials import CredentialType
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected, NoModemTime, ParseError
from tests.support.modem.line_modem import LineModem, run_session
from tests.support.modem.signed_tokens import IDENTITY, attest
from tests.support.provisioning.virtual_tray import CA_CHAIN, TAG, Tray


async def test_a_fresh_board_holds_nothing_in_its_tag_and_knows_no_time(tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        state = await board.read()
        assert (state.imei, state.refusal, state.has_time) == (await board.imei(), "", False)
        assert state.uuid
        assert all(state.held(TAG, kind) is None for kind in CredentialType)
        assert await board.certificate(TAG) == ""
        await board.set_clock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        assert (await board.read()).has_time


async def test_a_time_that_a_restart_cleared_in_a_run_is_set_by_the_next(tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    async with tray.open(location) as board:
        with pytest.raises(NoModemTime) as never:
            await board.token("", 60, None)
        await board.set_clock(datetime.now(UTC))
        tray.transports[location.port].modem.kit.restart_modem()
        with pytest.raises(NoModemTime) as lost:
            await board.token("", 60, None)
    assert "`--set-clock`" in never.value.hint
    assert lost.value.hint.endswith("has restarted: run the same command again")


async def test_a_board_that_the_firmware_gate_refuses_is_asked_no_more(tmp_path: Path) -> None:
    tray = Tray(tmp_path, firmware="mfw_nrf9160_1.2.3", model="nrf9160")
    async with tray.open(tray.locations(1)[0]) as board:
        state = await board.read()
    assert (state.firmware, state.uuid, state.credentials) == ("mfw_nrf9160_1.2.3", "", ())
    assert "1.2.3" in state.refusal


def test_a_board_that_refuses_to_tell_its_firmware_is_refused_and_asked_no_more() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = {"AT+CGSN=1": '+CGSN: "352656100000009"'}.get
        state = await ModemBoard(modem).read()
        assert (state.imei, state.firmware, state.uuid) == ("352656100000009", "", "")
        assert "cannot be told from its answer to AT+CGMR" in state.refusal
        assert far.received[-1] == "AT+CGMR"

    run_session(work)


def test_the_uuid_of_a_board_is_asked_of_serial_modem_where_the_modem_s_answer_is_damaged() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = {
            "AT+CGSN=1": '+CGSN: "352656100000009"',
            "AT+CGMR": "mfw_nrf91x1_2.0.4",
            "AT%DEVICEUUID": "%DEVICEUUID: 50363154-3931-44f0",
            "AT#XUUID": "#XUUID: 50363154-3931-44f0-8022-121b6401627d",
            "AT+CGMM": "nRF9161-LACA",
            "AT%CMNG=1": "",
        }.get
        state = await ModemBoard(modem).read()
        assert state.uuid == "50363154-3931-44f0-8022-121b6401627d"

    run_session(work)


def test_a_board_that_attests_nothing_or_another_uuid_is_refused_where_keys_are_named() -> None:
    token = f'%ATTESTTOKEN: "{attest()}"'
    keys = IdentityKeys((IDENTITY.public_key(),), "keys.pem")

    async def work(modem: Modem, far: LineModem) -> None:
        board = ModemBoard(modem, keys)
        far.body = {"AT%ATTESTTOKEN": token}.get
        assert await board.require_attested("00010203-0405-0607-0809-0a0b0c0d0e0f") is True
        with pytest.raises(BoardSwapped, match="attests that it is 00010203"):
            await board.require_attested("50363154-3931-44f0-8022-121b6401627d")
        far.body = {}.get
        with pytest.raises(UntrustedSignature, match="does not attest"):
            await board.require_attested("00010203-0405-0607-0809-0a0b0c0d0e0f")
        assert await ModemBoard(modem).require_attested("anything: no key is named") is False
        assert far.received[-1] == "AT%ATTESTTOKEN"

    run_session(work)


async def test_what_is_written_is_listed_by_its_digest_until_it_is_deleted(tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        await board.set_mode(OFFLINE_MODE)
        await board.write(TAG, CredentialType.ROOT_CA, CA_CHAIN)
        held = (await board.read()).held(TAG, CredentialType.ROOT_CA)
        assert held is not None
        assert held.sha256 == stored_digest(CA_CHAIN)
        await board.delete(TAG, CredentialType.ROOT_CA)
        assert (await board.read()).held(TAG, CredentialType.ROOT_CA) is None
        await board.delete(TAG, CredentialType.ROOT_CA)  # one that is gone already


async def test_a_key_that_was_made_signs_tokens_and_names_its_device(tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        await board.set_mode(OFFLINE_MODE)
        made = await board.make_key(TAG)
        assert made.public_pem.startswith("-----BEGIN PUBLIC KEY-----")
        assert made.uuid == (await board.read()).uuid
        assert made.proof.startswith("the request is signed by its own key")
        await board.set_clock(datetime.now(UTC))
        assert (await board.token("", 600, TAG)).token.count(".") == 2


async def test_a_write_that_the_modem_refuses_is_raised(tmp_path: Path) -> None:
    tray = Tray(tmp_path, faults=("cmng-refused",))
    async with tray.open(tray.locations(1)[0]) as board:
        await board.set_mode(OFFLINE_MODE)
        with pytest.raises(CommandRejected):
            await board.write(TAG, CredentialType.ROOT_CA, CA_CHAIN)


async def test_content_that_the_modem_cannot_read_is_refused_with_its_defect(
    tmp_path: Path,
) -> None:
    tray = Tray(tmp_path, faults=("cmng-refused=527",))
    async with tray.open(tray.locations(1)[0]) as board:
        await board.set_mode(OFFLINE_MODE)
        with pytest.raises(CommandRejected) as refused:
            await board.write(TAG, CredentialType.ROOT_CA, CA_CHAIN.partition("-----END")[0])
    assert refused.value.hint.endswith("; its END line is missing")


def test_a_credential_whose_row_came_damaged_is_not_taken_for_gone() -> None:
    row = f'%CMNG: {TAG},2,"{"AB" * 32}"'
    told = iter([row.replace("%CMNG", "%CMNO"), row, row, row])

    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda command: next(told) if command == "AT%CMNG=1" else ""
        board = ModemBoard(modem)
        with pytest.raises(ParseError, match="lists other credentials"):
            await board.credentials()
        assert [held.tag for held in await board.credentials()] == [TAG]

    run_session(work)
