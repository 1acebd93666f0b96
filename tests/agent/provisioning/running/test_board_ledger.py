"""What a run notes of its board, and how it ends in the ledger."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from agent.provisioning.ledger import BoardBusy
from agent.provisioning.ledger.opening import open_ledger
from agent.provisioning.planning.plan import ProvisioningStep
from tests.support.provisioning.claimed_boards import (
    END,
    claimed,
    failed,
    ledger_of,
    one_message,
    steps,
)
from tests.support.provisioning.ledgers import UUID


async def test_what_was_done_goes_with_the_next_step_and_is_there_before_it(address: str) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.KEY, "10")
        run.finish_key("", "PEM", "digest")
        await run.begin(ProvisioningStep.WRITE, "10:1")
        assert await steps(ledger, UUID) == [("key", "begun"), ("key", "done"), ("write", "begun")]


async def test_no_note_follows_one_that_was_refused_and_the_run_hears_of_it(address: str) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        run.finish(ProvisioningStep.LIMITS, label="")
        run.finish(ProvisioningStep.CLOCK)
        with pytest.raises(ValueError, match="label"):
            await run.begin(ProvisioningStep.KEY, "10")
        assert await steps(ledger, UUID) == []
        await run.conclude(failed("key", "ledger", "it was refused"))
        record = await ledger.call(lambda to: to.board(UUID))
        assert record is not None
        assert (record.outcome, record.reason) == ("failed", "it was refused")


async def test_a_board_on_two_ports_stays_with_the_first_of_them(address: str) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        with pytest.raises(BoardBusy, match="two ports"):
            await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.KEY, "10", writes=1)
        assert await steps(ledger, UUID) == [("key", "begun")]


async def test_a_step_that_was_announced_and_never_begun_is_no_write_at_the_end(
    address: str,
) -> None:
    chain = ProvisioningStep.CA_CHAIN, "10:0 AB"
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.OFFLINE, "1", announces=chain)
        assert await steps(ledger, UUID) == [("offline", "begun"), ("ca-chain", "begun")]
        await run.conclude(failed("offline", "modem", "ERROR"))
        noted = await steps(ledger, UUID)
        record = await ledger.call(lambda to: to.board(UUID))
    assert noted[2:] == [("ca-chain", "refused"), ("offline", "failed")]
    assert record is not None
    assert (record.writes, run.writes) == (0, 0)


async def test_a_step_that_was_announced_is_recorded_and_counted_once(address: str) -> None:
    chain = ProvisioningStep.CA_CHAIN, "10:0 AB"
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.OFFLINE, "1", announces=chain)
        await run.begin(*chain, writes=1)
        run.finish(ProvisioningStep.CA_CHAIN)
        await run.conclude(END)
        noted = await steps(ledger, UUID)
        record = await ledger.call(lambda to: to.board(UUID))
    assert noted == [("offline", "begun"), ("ca-chain", "begun"), ("ca-chain", "done")]
    assert record is not None
    assert (record.writes, run.writes) == (1, 1)


async def test_a_run_that_cannot_be_concluded_lets_its_board_go(address: str) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        run.finish(ProvisioningStep.LIMITS, label="")
        with pytest.raises(ValueError, match="label"):
            await run.conclude(END)
        await claimed(ledger, UUID)


async def test_a_claim_that_was_broken_off_lets_its_board_go(address: str) -> None:
    async with ledger_of(address) as ledger:
        async with one_message(ledger):
            claim = asyncio.create_task(claimed(ledger, UUID))
            await asyncio.sleep(0)
            claim.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claim
        await claimed(ledger, UUID)


async def test_a_write_that_the_board_refused_is_none_and_the_first_end_is_the_end(
    address: str,
) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.KEY, "10", writes=1)
        run.refused(ProvisioningStep.KEY, "ERROR", writes=1)
        await run.conclude(failed("key", "modem", "ERROR"))
        await run.conclude(END)
        record = await ledger.call(lambda to: to.board(UUID))
    assert record is not None
    assert (record.writes, run.writes) == (0, 0)
    assert (record.outcome, record.reason) == ("failed", "ERROR")


async def test_what_the_service_is_about_to_get_is_on_disk_before(address: str) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        with closing(open_ledger(address, "reads", writes=False)) as other:
            await run.keep_attestation("a token")
            record = other.board(UUID)
            assert record is not None
            assert record.attestation == "a token"
            await run.begin_registration("onboard nrf-1", "onboard")
            assert [note.step for note in other.steps(UUID)] == ["register"]


async def test_what_was_begun_is_told_until_it_is_done_and_a_new_key_has_no_certificate(
    address: str,
) -> None:
    async with ledger_of(address) as ledger:
        run = await claimed(ledger, UUID)
        await run.begin(ProvisioningStep.KEY, "10 kept.pem", writes=1)
        assert await run.last_begun(ProvisioningStep.KEY) == "10 kept.pem"
        run.finish_key("made by the modem", "PEM", "digest")
        run.finish(ProvisioningStep.CERTIFICATE, certificate="of the key before")
        assert await run.last_begun(ProvisioningStep.KEY) == ""
        run.finish_key("", "PEM 2", "digest 2")
        assert (run.record.public_key, run.record.certificate) == ("PEM 2", "")
