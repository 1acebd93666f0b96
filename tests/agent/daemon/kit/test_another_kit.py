"""Another kit on the same port: what of the one before is not taken for its."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from agent.cloud.fota_jobs import FetchCurrentJob
from agent.console.fault_lines import FaultText
from agent.daemon.kit import updates
from agent.daemon.kit.kit import KitAgent
from agent.daemon.kit.positions import KitPositions
from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import Finding, FotaStatus, LastJob
from agent.daemon.status import StatusRegistry
from agent.fota.job_step import JobEvent
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob, journal_folder
from agent.tasks import cancel_and_wait
from at.tokens.jwt import Jwt
from tests.support.cloud.credential_calls import Modem as TokenMaker
from tests.support.cloud.credential_calls import claims_of
from tests.support.harness import virtual_time
from tests.support.modem.agent_kit import (
    imei_and_firmware_by_the_time,
    imei_by_the_time,
    is_other,
    kit_of,
    serve,
)
from tests.support.modem.line_modem import LineModem
from tests.support.page.statuses import NOW


def test_an_update_is_looked_for_at_once_where_another_kit_is_here_and_the_last_one_was_not_its(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def body(command: str) -> str | None:
        if command != "AT+CGSN=1":
            return modem.reads.get(command, "")
        if asyncio.get_running_loop().time() > 30.0:
            return '+CGSN: "490154203237518"'
        fota.wake.clear()
        return '+CGSN: "352656100367872"'

    modem = LineModem(body, lambda _command: 0.001)
    registry = StatusRegistry()
    kit = kit_of(modem, tmp_path, monkeypatch, registry)
    fota = next(concern for concern in registry.concerns if concern.name == "fota")
    assert isinstance(fota.status, FotaStatus)
    fota.status.last = LastJob("job-1", "SUCCEEDED", NOW.isoformat(), None)
    serve(kit, 200.0)
    assert fota.wake.is_set()
    assert fota.status.last is None


def test_a_kit_that_waits_for_the_rest_of_an_image_gets_it_though_another_one_was_here_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    KitStore(tmp_path, "lab", "kit").update(device_id="the-other")
    kit = kit_of(LineModem(lambda _command: ""), tmp_path, monkeypatch, StatusRegistry())
    assert kit.link.owed_bytes() == 0
    journal = Journal(journal_folder(tmp_path, "the-first"))
    journal.begin(OpenJob(job_id="job-1", device_id="the-first", document={}))
    for event in (JobEvent.START, JobEvent.PROVE, JobEvent.INSTALL):
        journal.advance(event)
    assert kit.link.owed_bytes() > 0


async def seen_of_both(kit: KitAgent, look: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Return what a look finds while the first kit is here, and what while the other is."""
    looking_after = asyncio.ensure_future(kit.link.run())
    await asyncio.sleep(20.0)
    first = await look()
    await asyncio.sleep(180.0)
    found = [first, await look()]
    await cancel_and_wait(looking_after)
    return found


def test_what_the_kit_before_lacked_is_not_told_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    kit._connection._credentials.findings = (Finding("the private key is gone", None),)
    kit._connection._provisioning.findings = (Finding("it took no commands", None),)

    async def told() -> set[str]:
        return {finding.what for finding in kit.link.concern.status.findings or ()}

    first, other = virtual_time.run(seen_of_both(kit, told))
    lacked = {"the private key is gone", "it took no commands"}
    assert lacked <= first
    assert not lacked & other


def test_another_kit_is_not_told_as_the_one_that_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    crash = FaultText("***** MPU FAULT *****", "MPU FAULT")
    virtual_time.run(kit.console.handle([crash]))
    assert kit.console.concern.status.crash is not None
    serve(kit, 100.0)
    assert kit.console.concern.status.crash is None
    assert not kit.console.take_fault()


def test_the_heartbeat_of_another_kit_counts_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    kit.link._was_up_s = 3600.0
    kit.events._counts["link_lost_count"] = 2
    serve(kit, 100.0)
    counted = kit.events._metrics()
    assert counted["link_lost_count"] == 0
    assert counted["link_up_s"] < 100.0


def test_what_a_kit_prints_that_starts_behind_an_adapter_waits_until_its_modem_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may be another one: the port stays open where boards are changed behind it."""

    async def put_in_another() -> None:
        asyncio.get_running_loop().call_later(
            31.0, modem.transport.deliver, b"*** Booting nRF Connect SDK ***\r\n"
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(kit.link.run(), 50.0)

    named: list[str] = []
    store = SimpleNamespace(name_device=lambda _unnamed, device: named.append(device))
    outbox = SimpleNamespace(submit=lambda work: work(store))
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    wake = partial(named.append, "delivery is woken")
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry(), outbox, wake)
    monkeypatch.setattr(kit.console, "handle", AsyncMock())  # nothing is stored
    virtual_time.run(put_in_another())
    first, second, woken = "352656100367872", "490154203237518", "delivery is woken"
    assert named[named.index(first) :] == [first, woken, "", woken, second, woken]


def test_the_counts_of_the_status_begin_anew_with_another_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    links, console, events = (
        kit.link.concern.status,
        kit.console.concern.status,
        kit.events.concern.status,
    )
    of_the_kit = {"chunks", "dumps", "faults", "reboots", "damaged"}
    for name in of_the_kit:
        setattr(console, name, 3)
    kit._connection._restarts.count = 2
    links.restarts = events.modem_reset_count = events.fota_succeeded_count = console.lost = 2
    serve(kit, 100.0)
    assert {getattr(console, name) for name in of_the_kit} == {0}
    assert (links.restarts, events.modem_reset_count, events.fota_succeeded_count) == (0, 0, 0)
    assert console.lost == 2, "it is the agent's, who had no room for it"
    kit._connection.restarted("*** Booting nRF Connect SDK ***")
    assert links.restarts == 1


def test_what_another_kit_prints_before_its_modem_has_answered_is_counted_as_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def start() -> None:
        modem.transport.deliver(b"*** Booting nRF Connect SDK ***\r\n")
        asyncio.get_running_loop().call_soon(setattr, console, "chunks", 4)

    async def put_in_another() -> None:
        asyncio.get_running_loop().call_later(31.0, start)
        with suppress(TimeoutError):
            await asyncio.wait_for(kit.link.run(), 50.0)

    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    monkeypatch.setattr(kit.console, "handle", AsyncMock())  # nothing is stored
    console = kit.console.concern.status
    console.chunks = 3
    virtual_time.run(put_in_another())
    assert console.chunks == 1


def test_no_call_for_another_kit_goes_with_the_token_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def sign(_kit: KitAgent, subject: str, life_s: int) -> Jwt:
        made = TokenMaker(exp=int(time.time()) + life_s, jti="other" if is_other() else "first")
        return await made(subject, life_s)

    monkeypatch.setattr(KitAgent, "_ask_modem", sign)
    modem = LineModem(imei_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())
    call = FetchCurrentJob("kit")

    async def signed_for() -> object:
        credential = kit._client.keyring.choose(call)
        assert credential is not None
        return claims_of(await credential.headers(call))["jti"]

    assert virtual_time.run(seen_of_both(kit, signed_for)) == ["first", "other"]


def test_a_kit_is_located_and_asked_for_jobs_once_at_its_contact_and_not_at_each_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    located: list[float] = []
    pulled: list[float] = []

    async def find(*_: object) -> None:
        located.append(asyncio.get_running_loop().time())

    async def pull() -> None:
        pulled.append(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def runner(*_: object, **__: object) -> AsyncIterator[object]:
        yield SimpleNamespace(pull=pull, journal=SimpleNamespace(results=()))

    def body(command: str) -> str | None:
        if command == "AT+CEREG?":
            stat = 2 if int(asyncio.get_running_loop().time() / 70) % 2 else 1
            return f"+CEREG: 5,{stat}"
        return "mfw_nrf91x1_2.0.1" if command == "AT+CGMR" else ""

    monkeypatch.setattr(KitPositions, "find", find)
    monkeypatch.setattr(updates, "runner_of_kit", runner)
    modem = LineModem(body, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry())

    async def look_after() -> None:
        kit.start()
        await asyncio.sleep(800.0)
        await kit.stop()

    virtual_time.run(look_after())
    assert modem.received.count("AT+CEREG?") > 10
    assert (len(located), len(pulled)) == (1, 1)


def test_what_is_under_way_for_the_kit_before_ends_where_another_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun: list[tuple[str, bool]] = []
    ended: list[tuple[str, bool]] = []
    result = JobResult(
        job_id="job-1", status=JobStatus.SUCCEEDED, detail="v2 runs", at=NOW.isoformat()
    )

    async def work(name: str) -> None:
        begun.append((name, is_other()))
        await asyncio.sleep(1e6 if is_other() else 100.0)
        ended.append((name, is_other()))

    @asynccontextmanager
    async def runner(*_: object, **__: object) -> AsyncIterator[object]:
        journal = SimpleNamespace(results=() if is_other() else (result,))
        yield SimpleNamespace(pull=lambda: work("pull"), journal=journal)

    monkeypatch.setattr(KitPositions, "find", lambda *_: work("find"))
    monkeypatch.setattr(updates, "runner_of_kit", runner)
    modem = LineModem(imei_and_firmware_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, registry := StatusRegistry())

    async def look_after() -> None:
        kit.start()
        await asyncio.sleep(300.0)
        await kit.stop()

    virtual_time.run(look_after())
    assert sorted(begun) == [("find", False), ("find", True), ("pull", False), ("pull", True)]
    assert not ended, "it was done in the name of the other kit"
    assert not any(status.last for _, status in registry.statuses() if hasattr(status, "last"))
