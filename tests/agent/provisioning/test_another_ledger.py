"""A key that only another ledger knows dies in no silence: the service says whether it has it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from agent.call import Response
from agent.provisioning.boards.board import BoardLocation, MadeKey
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import plan_boards
from agent.provisioning.running.outcome import Outcome
from agent.standin.faults import set_faults
from agent.standin.principal import DEVICE_KEYS
from at.commands.credentials import CredentialType
from at.tokens.jwt import Jwt, WrongAlgorithm
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.tray import registered_keys
from tests.support.provisioning.virtual_tray import (
    GOAL,
    TAG,
    PowerPulled,
    Tray,
    provision,
    station_of,
)

OTHER_TAG = 101
OTHER = replace(GOAL, security_tag=OTHER_TAG, second_tag=True)
BROKERS = replace(OTHER, registration=RegistrationMethod.NONE, prove=False)


async def run(standin: StandIn, folder: Path, tray: Tray, goal: Goal = GOAL) -> Outcome:
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240 - nothing else runs
    async with station_of(standin, folder, goal) as station:
        [outcome] = await provision(station, tray, 1)
    return outcome


@pytest.mark.contract("D10.8")
async def test_a_copy_of_the_ledger_does_not_take_the_key_of_another_tag_for_lost(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, copy = Tray(tmp_path), tmp_path / "copy"
    await run(standin, tmp_path, tray)
    copy.mkdir()
    shutil.copy(tmp_path / "ledger.sqlite", copy)
    await run(standin, tmp_path, tray, OTHER)
    before = registered_keys(standin)
    refused = await run(standin, copy, tray)
    assert (refused.outcome, refused.exit, refused.step) == ("refused", 4, "proof")
    assert refused.reason_code == "second-tag"
    assert f"the service has the key of tag {OTHER_TAG}" in refused.reason
    assert refused.hint.startswith("`--second-tag` allows it; if this ledger is a copy")
    assert registered_keys(standin) == before
    told = await run(standin, copy, tray, replace(GOAL, second_tag=True))
    assert told.outcome == "done"
    assert registered_keys(standin) != before
    async with station_of(standin, copy) as station:
        runs = await station.ledger.call(lambda ledger: ledger.runs(told.uuid))
    assert runs[-1].consent.startswith("--second-tag: the service has the key of tag")


async def test_a_new_ledger_does_not_put_a_new_key_in_the_place_of_one_at_work(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "first", tray, OTHER)
    before = registered_keys(standin)
    refused = await run(standin, tmp_path / "new", tray)
    assert (refused.outcome, refused.step, refused.writes) == ("refused", "other-keys", 0)
    assert registered_keys(standin) == before
    assert (await run(standin, tmp_path / "new", tray, replace(GOAL, second_tag=True))).ok


async def test_a_key_that_is_not_the_services_is_in_nobodys_way(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "broker", tray, BROKERS)
    first = await run(standin, tmp_path, tray)
    again = await run(standin, tmp_path, tray)
    assert (first.outcome, again.outcome) == ("done", "unchanged")
    table = standin.cloud.table(DEVICE_KEYS)
    [(name, _)] = table.items()
    table.delete(name)
    assert (await run(standin, tmp_path, tray)).outcome == "done"


async def test_a_key_is_asked_for_by_one_token_in_one_request(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "broker", tray, BROKERS)
    async with station_of(standin, tmp_path) as station:
        assert station.registrar is not None
        transport, sent = station.registrar.client.transport, []
        exchange = transport.exchange

        async def counted(method: str, url: str, **request: Any) -> Response:
            sent.append(f"{method} {urlsplit(url).path}")
            return await exchange(method, url, **request)

        monkeypatch.setattr(transport, "exchange", counted)
        [outcome] = await provision(station, tray, 1)
        notes = await station.ledger.call(lambda ledger: ledger.steps(outcome.uuid))
    assert "the service has none of them" in {note.detail for note in notes}
    before = sent[: sent.index("POST /v1/devices")]
    assert before[-2:] == [f"GET /v1/devices/{outcome.uuid}"] * 2, "and one for the identity key"
    assert before.count(before[-1]) == 2


async def test_with_no_proof_a_key_that_the_ledger_does_not_know_needs_a_word(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, unproven = Tray(tmp_path), replace(GOAL, prove=False)
    await run(standin, tmp_path / "broker", tray, BROKERS)
    refused = await run(standin, tmp_path, tray, unproven)
    assert (refused.outcome, refused.reason_code, refused.writes) == ("refused", "second-tag", 0)
    assert f"this ledger does not know the private key of tag {OTHER_TAG}" in refused.reason
    assert (
        refused.hint == "`--second-tag` allows it; leave out `--no-proof` to have the service asked"
    )
    assert (await run(standin, tmp_path, tray, replace(unproven, second_tag=True))).ok
    # This one gives the service no key.
    none = replace(unproven, registration=RegistrationMethod.NONE, security_tag=55)
    assert (await run(standin, tmp_path / "none", tray, none)).ok


class CutOffAtTheKey(Tray):
    """A tray whose boards lose power as a key is to be made in them, or, if `made`, has been."""

    made = False

    @asynccontextmanager
    async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with super().open(location) as board:
            make = board.make_key

            async def make_key(tag: int) -> MadeKey:
                if self.made:
                    await make(tag)
                raise PowerPulled

            board.make_key = make_key  # type: ignore[method-assign]
            yield board


BARE = replace(GOAL, certificate=CertificateSource.NONE, registration=RegistrationMethod.PUBLIC_KEY)
ALLOWED = replace(BARE, replace=frozenset({(TAG, int(CredentialType.CLIENT_PRIVATE_KEY))}))


@pytest.mark.contract("D10.8")
async def test_a_key_that_another_ledgers_run_made_where_one_was_begun_is_not_taken_for_that(
    standin: StandIn, tmp_path: Path
) -> None:
    """A bench died as it made a key; the board went to another one, and then came back."""
    tray, first = Tray(tmp_path), tmp_path / "first"
    with pytest.raises(PowerPulled):
        await run(standin, first, CutOffAtTheKey(tmp_path), BARE)
    made = await run(standin, tmp_path / "second", tray, BARE)
    assert made.outcome == "done"
    before = registered_keys(standin)
    refused = await run(standin, first, tray, BARE)
    assert (refused.outcome, refused.exit, refused.step) == ("refused", 4, "other-keys")
    assert (refused.reason_code, refused.writes) == ("would-overwrite", 0)
    assert f"the service has the key of tag {TAG}" in refused.reason
    assert f"`--replace {TAG}:2` deletes it" in refused.hint
    assert registered_keys(standin) == before
    assert (await run(standin, tmp_path / "second", tray, BARE)).outcome == "unchanged"
    told = await run(standin, first, tray, ALLOWED)
    assert told.outcome == "done"
    assert registered_keys(standin) != before
    async with station_of(standin, first) as station:
        runs = await station.ledger.call(lambda ledger: ledger.runs(told.uuid))
    assert runs[-1].consent.startswith(f"--replace {TAG}:2: the service has the key of tag")


async def test_a_key_that_was_begun_and_lost_is_made_again_once_the_service_says_it_has_it_not(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, cut_off = Tray(tmp_path), CutOffAtTheKey(tmp_path)
    cut_off.made = True
    with pytest.raises(PowerPulled):
        await run(standin, tmp_path, cut_off, BARE)
    async with station_of(standin, tmp_path, BARE) as station:
        [one] = await plan_boards(tray.locations(1), BARE, station.ledger, tray.open, station.now())
    steps = [step.step.value for step in one.plan.steps]
    assert steps[2:5] == ["clock", "other-keys", "clear"]
    assert steps.count("clock") == 1
    assert f"only --replace {TAG}:2 or --second-tag ends that one" in one.plan.words(
        ProvisioningStep.OTHER_KEYS
    )
    assert (await run(standin, tmp_path, tray, BARE)).outcome == "done"


class Ahead(Tray):
    """A tray whose modems are a day ahead."""

    @asynccontextmanager
    async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with super().open(location) as board:
            await board.set_clock(datetime.now(UTC) + timedelta(days=1))
            yield board


async def test_a_token_refused_for_its_time_tells_nothing_of_its_key(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Ahead(tmp_path)
    await run(standin, tmp_path / "first", Tray(tmp_path), OTHER)
    before = registered_keys(standin)
    refused = await run(standin, tmp_path / "new", tray, replace(GOAL, set_clock=False))
    assert (refused.exit, refused.step) == (4, "other-keys")
    assert "the modem's clock differs from the service's" in refused.reason
    assert "AT+CCLK=" in refused.hint
    assert registered_keys(standin) == before


async def test_a_token_refused_for_its_time_says_how_the_clock_is_set_and_gives_no_key_again(
    standin: StandIn, tmp_path: Path
) -> None:
    goal = replace(GOAL, set_clock=False)
    assert (await run(standin, tmp_path, Tray(tmp_path))).ok
    for _ in range(2):
        failed = await run(standin, tmp_path, Ahead(tmp_path), goal)
        assert (failed.outcome, failed.exit, failed.step) == ("failed", 5, "proof")
        assert failed.hint.startswith("the modem's clock differs from the service's: ")
        assert "AT+CCLK=" in failed.hint
    async with station_of(standin, tmp_path, goal) as station:
        steps = await station.ledger.call(lambda ledger: ledger.steps(failed.uuid))
    assert [one.state for one in steps if one.step == "register"] == ["begun", "done"]
    assert (await run(standin, tmp_path, Tray(tmp_path))).ok


async def test_where_the_service_gives_no_answer_it_is_given_no_key(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "first", tray, OTHER)
    before = registered_keys(standin)
    set_faults(standin.cloud, ["server-error=403*9@GET /v1/devices/*"])
    failed = await run(standin, tmp_path / "new", tray)
    assert (failed.outcome, failed.step, failed.writes) == ("failed", "other-keys", 0)
    assert registered_keys(standin) == before


async def test_a_key_that_signs_no_token_of_the_service_is_none_of_it(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "broker", tray, BROKERS)

    class SignsWithOneKey(Tray):
        @asynccontextmanager
        async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
            async with super().open(location) as board:
                sign = board.token

                async def token(subject: str, life_s: int, tag: int) -> Jwt:
                    if tag == OTHER_TAG:
                        raise WrongAlgorithm("RS256")
                    return await sign(subject, life_s, tag)

                board.token = token  # type: ignore[method-assign]
                yield board

    assert (await run(standin, tmp_path, SignsWithOneKey(tmp_path))).outcome == "done"


async def test_the_plan_tells_for_which_keys_the_service_is_asked(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path / "broker", tray, BROKERS)

    async def planned() -> dict[str, str]:
        async with station_of(standin, tmp_path) as station:
            [one] = await plan_boards(
                tray.locations(1), GOAL, station.ledger, tray.open, station.now()
            )
        return {step.step.value: step.words for step in one.plan.steps}

    first = await planned()
    assert list(first)[:4] == ["gate", "identity", "clock", "other-keys"]
    assert f"the key of tag {OTHER_TAG}" in first["other-keys"]
    assert list(first).count("clock") == 1
    await run(standin, tmp_path, tray)
    then = await planned()
    assert "other-keys" not in then
    assert f"the key of tag {OTHER_TAG}" in then["proof"]
