"""A board's run ends done, refused or failed; one that was cut off is made good by a rerun."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import agent
from agent.config.identity_keys import IdentityKeys
from agent.errors import DeadlineExceeded
from agent.provisioning.boards import board as board_module
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.planning.goal import CertificateSource, Goal, KeyOrigin, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import plan_boards, run_board
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.steps.registrar import Registrar
from at.driver.modem import Modem
from at.protocol.errors import LinkLost
from at.virtual.families import functional_mode, keys
from tests.support.cloud.standin import StandIn
from tests.support.keys.operator_ca import NAME, make_ca, openssl_verifies
from tests.support.modem.signed_tokens import OTHER, keygen
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import (
    GOAL,
    TAG,
    PowerPulled,
    Tray,
    provision,
    station_of,
)


@pytest.mark.parametrize(
    "goal",
    [
        replace(
            GOAL, certificate=CertificateSource.NONE, registration=RegistrationMethod.PUBLIC_KEY
        ),
        replace(GOAL, key_origin=KeyOrigin.HOST, certificate=CertificateSource.SELF_SIGNED),
        replace(
            GOAL,
            registration=RegistrationMethod.CLAIM,
            certificate=CertificateSource.NONE,
            prove=False,
        ),
        replace(GOAL, id_prefix="nrf-"),
        replace(GOAL, registration=RegistrationMethod.NONE, prove=False),
    ],
    ids=["public-key", "host-key", "claim", "imei-id", "no-registration"],
)
async def test_every_way_ends_with_a_board_that_is_done(
    standin: StandIn, tmp_path: Path, goal: Goal
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.reason) == ("done", "")
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes) == ("unchanged", 0)


@pytest.mark.contract("D1.3")
async def test_old_firmware_is_refused_before_anything_is_written(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, firmware="mfw_nrf9160_1.2.3", model="nrf9160")
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        [location] = tray.locations(1)
        begun = station.run_at(location, "L-1")._run
    assert (outcome.outcome, outcome.step, outcome.exit, outcome.writes) == (
        "refused",
        "gate",
        4,
        0,
    )
    assert outcome.reason_code == "firmware"
    assert (begun.label, begun.port, begun.security_tag, begun.cellagent) == (
        "L-1", location.port, GOAL.security_tag, agent.__version__,
    )  # fmt: skip


@pytest.mark.parametrize("command", [2, 13], ids=["as it is opened", "as it is written to"])
async def test_a_modem_that_restarts_meanwhile_is_only_to_be_run_again(
    standin: StandIn, tmp_path: Path, command: int
) -> None:
    tray = Tray(tmp_path, faults=(f"reset-mid-command={command}",))
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert "the modem restarted" in outcome.reason
    assert outcome.hint == "run the same command again: what is done is left alone"


async def test_the_mode_is_put_back_by_the_run_after_one_that_was_killed(
    standin: StandIn, tmp_path: Path
) -> None:
    """The host alone dies: the kit stays in the mode in which it took the credentials."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    transport = tray.transport(location.port)
    modem = Modem(transport)
    await modem.open()
    board = ModemBoard(modem)

    @asynccontextmanager
    async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
        yield board

    def die(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.WRITE:
            board.set_mode = dead  # type: ignore[method-assign]
            raise PowerPulled

    async def dead(_mode: int) -> None:
        raise LinkLost("the process that would is dead")

    await board.set_mode(1)
    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, same_kit, die)
    assert (await board.read()).mode == 4
    board = ModemBoard(modem)
    async with station_of(standin, tmp_path) as station:
        outcome = await run_board(location, station, same_kit, lambda *_: None)
        assert outcome.outcome == "done", outcome.reason
    assert (await board.read()).mode == 1
    await board.set_mode(4)  # by somebody else, whose choice it stays
    async with station_of(standin, tmp_path) as station:
        await run_board(location, station, same_kit, lambda *_: None)
    assert (await board.read()).mode == 4
    await modem.close()


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_mode_that_the_modem_acknowledges_and_does_not_take_fails_the_run(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """At the second try at once, the board is as it was, and right."""
    modem = Modem(Tray(tmp_path).transport("board0"))
    await modem.open()
    board = ModemBoard(modem)
    await board.set_mode(1)

    @asynccontextmanager
    async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
        yield board

    async with station_of(standin, tmp_path) as station:
        [location] = Tray(tmp_path).locations(1)
        switch_on, tries = functional_mode.switch_on, itertools.count(1)

        def refused(*given: Any) -> None:
            if next(tries) > refusals:
                switch_on(*given)

        with monkeypatch.context() as patched:
            patched.setattr(functional_mode, "switch_on", refused)
            first = await run_board(location, station, same_kit, lambda *_: None)
        says = (
            "the modem's mode could not be put back: it answers OK to AT+CFUN=1, and is in mode 4"
        )
        reason, outcome = ("", "done") if refusals == 1 else (says, "failed")
        assert (first.outcome, first.reason, first.step) == (outcome, reason, "restore")
        assert (first.exit, (await board.read()).mode) == ((1, 4) if reason else (0, 1))
        again = await run_board(location, station, same_kit, lambda *_: None)
    assert (again.outcome, again.reason, again.writes) == ("unchanged", "", 0)
    assert (await board.read()).mode == 1
    await modem.close()


@pytest.mark.parametrize(
    "step", [step for step in ProvisioningStep if step is not ProvisioningStep.RESTORE]
)
async def test_power_pulled_at_a_step_is_made_good_by_a_rerun(
    standin: StandIn, tmp_path: Path, step: ProvisioningStep
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    def pull(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is step:
            raise PowerPulled

    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, tray.open, pull)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.ok, outcome.reason
        [record] = await station.ledger.call(boards_of)
        async with tray.open(location) as board:
            held = [one for one in await board.credentials() if one.tag == TAG]
    assert sorted(one.type for one in held) == [0, 1, 2]
    assert record.registered_key


async def test_being_stopped_puts_the_mode_back_and_is_recorded(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    reached = asyncio.Event()
    modes: list[int] = []

    @asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as board:
            await board.set_mode(1)
            try:
                yield board
            finally:
                modes.append((await board.read()).mode)

    def at_key(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.KEY:
            reached.set()

    async with station_of(standin, tmp_path) as station:
        task = asyncio.create_task(run_board(location, station, opened, at_key))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [record] = await station.ledger.call(boards_of)
    assert modes == [1]
    assert (record.outcome, record.reason) == ("unfinished", "it was stopped")


@pytest.mark.parametrize(
    ("registration", "waits"),
    [
        (RegistrationMethod.ONBOARD, (Registrar, "host_clock_ahead_s")),
        (RegistrationMethod.CLAIM, (ModemBoard, "take_commands")),
    ],
    ids=["for the time", "for the kit to take commands"],
)
async def test_being_stopped_while_the_service_does_not_answer_waits_for_no_answer(
    standin: StandIn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registration: RegistrationMethod,
    waits: tuple[type, str],
) -> None:
    monkeypatch.setattr(board_module, "_LONGEST_COMMAND_S", 0.0)
    tray = Tray(tmp_path, firmware="serial-modem-2.0.0", provisioning=standin.urls["provisioning"])
    [location] = tray.locations(1)
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def silent(*_: object, **__: object) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    monkeypatch.setattr(*waits, silent)
    async with station_of(standin, tmp_path, replace(GOAL, registration=registration)) as station:
        task = asyncio.create_task(run_board(location, station, tray.open, lambda *_: None))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert given_up.is_set()


def keys_of(tray: Tray) -> IdentityKeys:
    """Return the key of the tray's first board, which has been open once."""
    return IdentityKeys((tray.identity_key(tray.locations(1)[0]),), "keys.pem")


async def proof_of_the_key(station: Station, uuid: str) -> str:
    steps = await station.ledger.call(lambda ledger: ledger.steps(uuid))
    return [step.detail for step in steps if (step.step, step.state) == ("key", "done")][-1]


async def test_a_board_that_attests_with_a_named_key_is_done_and_the_ledger_says_verified(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        await board.attestation()  # makes the identity key of the virtual kit
    tray.identity_keys = keys_of(tray)
    async with station_of(standin, tmp_path) as station:
        [planned] = await plan_boards(
            tray.locations(1), GOAL, station.ledger, tray.open, station.now()
        )
        assert planned.plan.steps[1].words.endswith(", attestation verified")
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.reason) == ("done", "")
        assert (await proof_of_the_key(station, outcome.uuid)).endswith("attestation verified")


async def test_without_a_key_the_ledger_says_not_checked_and_says_it_once(
    standin: StandIn, tmp_path: Path
) -> None:
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, Tray(tmp_path), 1)
        proof = await proof_of_the_key(station, outcome.uuid)
    assert (outcome.outcome, proof.count("not checked"), "verified" in proof) == ("done", 1, False)


async def test_a_board_that_attests_with_another_key_is_refused_before_anything_is_written(
    standin: StandIn, tmp_path: Path
) -> None:
    stranger = IdentityKeys((OTHER.public_key(),), "keys.pem")
    tray = Tray(tmp_path, identity_keys=stranger)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.exit, outcome.writes) == ("refused", 4, 0)
        assert "the signature of its attestation is wrong" in outcome.reason
        record = await station.ledger.call(lambda ledger: ledger.board(outcome.uuid))
        assert record is not None
        assert (record.outcome, record.reason) == ("refused", outcome.reason)
        [planned] = await plan_boards(
            tray.locations(1), GOAL, station.ledger, tray.open, station.now()
        )
        assert (planned.exit, planned.plan.refusal) == (4, outcome.reason)


async def test_a_key_whose_answer_is_signed_by_another_is_not_registered_and_made_again(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        await board.attestation()
    tray.identity_keys = keys_of(tray)
    true = keys._attested
    with monkeypatch.context() as patched:
        patched.setattr(
            keys, "_attested", lambda kit, tag, content, body: keygen(body, tag=tag, aad=b"")
        )
        async with station_of(standin, tmp_path) as station:
            [outcome] = await provision(station, tray, 1)
            assert (outcome.outcome, outcome.step, outcome.exit) == ("refused", "key", 4)
            record = await station.ledger.call(lambda ledger: ledger.board(outcome.uuid))
    assert record is not None
    assert (record.public_key, record.registered_key, record.outcome) == ("", "", "refused")
    assert true is keys._attested
    async with station_of(standin, tmp_path) as station:
        [again] = await provision(station, tray, 1)
    assert (again.outcome, again.reason) == ("done", "")


async def test_a_board_whose_certificate_ended_is_refused_until_another_key_is_allowed(
    standin: StandIn, tmp_path: Path
) -> None:
    goal = replace(GOAL, certificate_life=timedelta(0))
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, goal) as station:
        [first] = await provision(station, tray, 1)
        [planned] = await plan_boards(
            tray.locations(1), GOAL, station.ledger, tray.open, station.now()
        )
        [refused] = await provision(station, tray, 1)
        assert (refused.outcome, refused.reason_code, refused.writes) == ("refused", "rekey", 0)
        assert planned.plan.refusal == refused.reason
        assert re.search(r" ended on \d{4}-\d\d-\d\d: another key, with", refused.reason)
        assert f"`--rekey --replace {TAG}:1` allows it" in refused.hint
        station.goal = replace(GOAL, certificate=CertificateSource.NONE)
        [wants_none] = await provision(station, tray, 1)
        assert wants_none.outcome == "unchanged", "it is no matter where none is wanted"
        station.goal = replace(GOAL, rekey=True, replace=frozenset({(TAG, 1)}))
        [again] = await provision(station, tray, 1)
        [left] = await provision(station, tray, 1)
        kept = await station.ledger.call(lambda ledger: ledger.keys(first.uuid))
    assert (first.outcome, again.outcome, left.outcome) == ("done", "done", "unchanged")
    assert [key.retired_at is None for key in kept] == [False, True]
    assert len({key.certificate for key in kept}) == 2


@pytest.mark.parametrize(
    "is_cut_off", [False, True], ids=["a board that is made", "one that a kill cut off"]
)
async def test_a_certificate_of_another_ca_is_replaced_once_that_is_allowed(
    standin: StandIn, tmp_path: Path, is_cut_off: bool
) -> None:
    tray = Tray(tmp_path)
    (tmp_path / "other").mkdir()
    file, key = make_ca(tmp_path / "other")
    other = DeviceCa.load(file, key, lambda: "")
    async with station_of(standin, tmp_path) as station:
        assert station.device_ca is not None
        ours = station.goal = replace(GOAL, ca=station.device_ca.certificate)
        [made] = await provision(station, tray, 1)
        [same] = await provision(station, tray, 1)
        assert (made.outcome, same.outcome) == ("done", "unchanged")
        station.device_ca = other
        station.goal = replace(GOAL, ca=other.certificate)
        if is_cut_off:  # what an interrupted run deleted is made by the CA of now
            async with tray.open(tray.locations(1)[0]) as board:
                await board.delete(TAG, 1)
        else:
            [planned] = await plan_boards(
                tray.locations(1), station.goal, station.ledger, tray.open, station.now()
            )
            [refused] = await provision(station, tray, 1)
            assert (refused.outcome, refused.exit, refused.writes) == ("refused", 4, 0)
            assert planned.plan.refusal == refused.reason
            assert f"another CA than the profile's, {NAME.rfc4514_string()};" in refused.reason
            assert f"`--replace {TAG}:1` allows it" in refused.hint
            station.goal = replace(station.goal, replace=frozenset({(TAG, 1)}))
        [again] = await provision(station, tray, 1)
        [left] = await provision(station, tray, 1)
        [kept] = await station.ledger.call(lambda ledger: ledger.keys(made.uuid))
        assert (again.outcome, left.outcome) == ("done", "unchanged")
        openssl_verifies(file, kept.certificate)
        station.goal = replace(ours, certificate=CertificateSource.NONE)
        [wants_none] = await provision(station, tray, 1)
    assert wants_none.outcome == "unchanged", "it is no matter where none is wanted"


async def test_a_certificate_is_not_deleted_for_one_that_the_board_cannot_have(
    standin: StandIn, tmp_path: Path
) -> None:
    """A key that the modem made signs no certificate of its own."""
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        await provision(station, tray, 1)
        station.goal = replace(
            GOAL,
            key_origin=KeyOrigin.HOST,
            certificate=CertificateSource.SELF_SIGNED,
            replace=frozenset({(TAG, 1)}),
        )
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.writes) == ("unchanged", 0)


async def test_a_request_with_the_certificate_before_is_not_taken_for_that_of_this_one(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(_registrar: Registrar, _request: str) -> None:
        raise DeadlineExceeded("no answer came")

    tray = Tray(tmp_path)
    (tmp_path / "other").mkdir()
    other = DeviceCa.load(*make_ca(tmp_path / "other"), lambda: "")
    async with station_of(standin, tmp_path) as station:
        with monkeypatch.context() as patch:
            patch.setattr(Registrar, "wait", cut_off)
            [first] = await provision(station, tray, 1)
        [sent] = await station.ledger.call(lambda ledger: ledger.keys(first.uuid))
        station.device_ca = other
        station.goal = replace(GOAL, ca=other.certificate, replace=frozenset({(TAG, 1)}))
        [again] = await provision(station, tray, 1)
        [kept] = await station.ledger.call(lambda ledger: ledger.keys(first.uuid))
    assert (first.step, again.outcome) == ("register", "done")
    assert sent.request_id != kept.request_id
    assert sent.public_key == kept.public_key
