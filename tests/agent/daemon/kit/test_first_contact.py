"""What a kit lacks, told with the way out: the virtual modem lacks one thing after another."""

from __future__ import annotations

from typing import TypeVar

import pytest

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.config import Secret
from agent.daemon.kit.first_contact import (
    SETTLE_S,
    Contact,
    FindingTracker,
    SettlingFinding,
    enable_registration_notices,
    findings,
    read_contact,
)
from agent.daemon.snapshot import Finding
from at.commands.registration import ReadRegistration
from at.driver.modem import Modem
from at.protocol.command import Command
from at.protocol.errors import CommandRejected
from at.virtual.transport import VirtualTransport

T = TypeVar("T")


async def contact_with(*faults: str, on: bool = True) -> tuple[Contact, list[str]]:
    modem = Modem(VirtualTransport(faults=faults, instant=True))
    await modem.open()
    try:
        if on:
            await modem.execute("AT+CFUN=1")
        contact = await read_contact(modem, "", 0.0)
        keyring = Keyring([ModemJwt(ask_modem(modem, 16842753))])
        return contact, [str(finding) for finding in findings(contact, keyring)]
    finally:
        await modem.close()


async def test_a_kit_that_lacks_nothing_is_left_in_peace():
    contact, found = await contact_with()
    assert found == []
    assert contact.device_id == "56495254-8f0b-c5c9-e65b-36ed0cf0f295"


class TurnedOnMeanwhile(Modem):
    """A modem that somebody turns on behind the question of its mode."""

    async def send(self, command: Command[T], *, timeout_s: float | None = None) -> T:
        if isinstance(command, ReadRegistration):
            await self.execute("AT+CFUN=1")
        return await super().send(command, timeout_s=timeout_s)


async def test_a_modem_that_is_registered_is_on_whatever_its_mode_was_before():
    modem = TurnedOnMeanwhile(VirtualTransport(instant=True))
    await modem.open()
    contact = await read_contact(modem, "", 0.0)
    await modem.close()
    assert contact.is_registered
    assert not contact.is_off
    assert not [each for each in findings(contact, Keyring([])) if "off" in each.what]


class RegistrationUntold(Modem):
    """A modem that refuses to tell its registration."""

    async def send(self, command: Command[T], *, timeout_s: float | None = None) -> T:
        if isinstance(command, ReadRegistration):
            raise CommandRejected("AT+CEREG?: ERROR")
        return await super().send(command, timeout_s=timeout_s)


async def test_a_registration_that_is_not_told_is_said_to_be_so_and_not_to_be_none():
    modem = RegistrationUntold(VirtualTransport(instant=True))
    await modem.open()
    await modem.execute("AT+CFUN=1")
    contact = await read_contact(modem, "", 0.0)
    await modem.close()
    assert contact.may_be_registered
    assert not contact.is_registered
    (said, *_) = findings(contact, Keyring([]))
    assert "does not tell whether it is on a network" in said.what
    assert "`cellagent modem at AT+CEREG?`" in (said.hint or "")


@pytest.mark.parametrize(
    ("faults", "on", "word", "way_out"),
    [
        ((), False, "the modem is off", "cellagent modem on"),
        (("no-sim",), True, "the SIM cannot be used: The modem sees no SIM", "put the SIM in"),
        (("not-registered=90",), True, "no usable SIM", "insert one"),
        (("denied=8",), True, "denies registration: The network's cause is EMM 8", "the state of"),
        (("not-registered=4",), True, "not registered", "antenna"),
        (("no-time",), True, "does not know the time", "AT+CCLK"),
        (("old-firmware",), True, "1.2.8", "update the modem firmware"),
    ],
)
async def test_what_is_missing_is_said_once_with_the_way_out(faults, on, word, way_out):
    _, found = await contact_with(*faults, on=on)
    (said,) = [text for text in found if word in text]
    assert way_out in said


@pytest.mark.contract("D1.3", "D1.4")
async def test_a_modem_whose_firmware_is_refused_is_asked_for_no_token():
    contact, found = await contact_with("old-firmware")
    assert contact.refusal
    assert not any("token" in text or "UUID" in text for text in found)


async def test_a_modem_that_the_agent_turns_on_itself_is_nothing_for_a_person_to_do():
    contact, _ = await contact_with(on=False)
    said, *_ = findings(contact, Keyring(), 30.0)
    assert "the agent does after 30 s (kit.keep_online, kit.settle_s)" in said.what
    assert "before" not in said.what, "with `always` it may never have been on"
    assert said.hint is None


async def test_no_credential_is_a_finding():
    contact, _ = await contact_with()
    (said,) = findings(contact, Keyring())
    assert "fetch current job: it needs" in str(said)
    assert not list(findings(contact, Keyring([ApiKey(Secret("an api key of a test"))])))


async def test_registration_notices_are_raised_and_never_lowered():
    modem = Modem(VirtualTransport(instant=True))
    await modem.open()
    try:
        await enable_registration_notices(modem)
        assert (await modem.send(ReadRegistration())).n == 5
        await modem.execute("AT+CEREG=2")
        await enable_registration_notices(modem)
        assert (await modem.send(ReadRegistration())).n == 2
    finally:
        await modem.close()


def test_a_finding_and_its_end_are_told_once():
    tracker, no_sim = FindingTracker(), Finding("no SIM", None)
    assert tracker.update([no_sim], 0.0) == ((no_sim,), ())
    assert tracker.update([no_sim], 60.0) == ((), ())
    assert tracker.update([], 120.0) == ((), (no_sim,))
    assert tracker.update([], 180.0) == ((), ())


def test_what_every_start_looks_like_is_told_only_if_it_stays():
    tracker, searching = FindingTracker(), SettlingFinding("not registered", None)
    assert tracker.update([searching], 0.0) == ((), ())
    assert tracker.has_unreported, "so it is looked at again soon"
    assert tracker.update([], 5.0) == ((), ()), "it settled, and nobody was troubled"
    tracker.update([searching], 10.0)
    assert tracker.update([searching], 10.0 + SETTLE_S) == ((searching,), ())
    assert not tracker.has_unreported


@pytest.mark.parametrize(
    ("fault", "at_once", "later"),
    [
        ("weak", None, "weak-signal"),
        ("band-locked", None, "band-lock"),
        ("supply-low", "supply-low", "supply-low"),
    ],
)
async def test_a_search_has_a_cause_once_it_lasts_and_a_modem_that_is_off_at_once(
    fault, at_once, later
):
    modem = Modem(VirtualTransport(faults=(fault,), instant=True))
    await modem.open()
    try:
        await modem.execute("AT+CFUN=1")
        first = await read_contact(modem, "", 0.0)
        second = await read_contact(modem, "", SETTLE_S, first)
    finally:
        await modem.close()
    told = [contact.cause and contact.cause.cause for contact in (first, second)]
    assert told == [at_once, later]


async def test_a_search_that_began_when_the_modem_was_turned_on_has_no_cause_yet():
    modem = Modem(VirtualTransport(faults=("band-locked",), instant=True))
    await modem.open()
    try:
        seen = await read_contact(modem, "", 0.0)
        await modem.execute("AT+CFUN=1")
        for now, cause in (100.0, None), (101.0, None), (100.0 + SETTLE_S, "band-lock"):
            seen = await read_contact(modem, "", now, seen)
            assert (seen.cause and seen.cause.cause) == cause
    finally:
        await modem.close()
