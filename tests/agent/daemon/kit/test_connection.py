"""The connection to a kit's modem: how often it is looked at, and what another kit changes."""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import cbor2
import pytest

from agent.auth.credential import Keyring
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.config.profile import KitSettings, OutboxSettings, Profile
from agent.console.fault_lines import FaultText
from agent.daemon.kit import link, updates
from agent.daemon.kit.kit import KitAgent
from agent.daemon.kit.positions import KitPositions
from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import Finding, FotaStatus, LastJob
from agent.daemon.status import StatusRegistry
from agent.errors import Unreachable
from agent.fota.job_step import JobEvent
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob, journal_folder
from agent.http import HttpClient
from agent.observability.ingest.chunk_codec import encode
from agent.outbox import Outbox
from agent.outbox.items import unnamed
from agent.tasks import cancel_and_wait
from at.protocol.errors import CommandTimeout, LinkLost
from at.tokens.jwt import Jwt
from at.virtual.console import export_lines
from at.virtual.server.pty import PtyServer
from tests.support.cloud.credential_calls import Modem as TokenMaker
from tests.support.cloud.credential_calls import claims_of
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem
from tests.support.outbox.outboxes import totals
from tests.support.page.statuses import NOW

NO_OUTBOX = SimpleNamespace(submit=lambda _work: None)


def kit_of(
    modem: LineModem,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: StatusRegistry,
    outbox: Any = NO_OUTBOX,
    wake_delivery: Callable[[], None] = lambda: None,
    console_port: str = "",
) -> KitAgent:
    monkeypatch.setattr(link, "transport_of", lambda *_, **__: modem.transport)
    nowhere: Any = None
    return KitAgent(
        "kit",
        Profile(kit=KitSettings(port="/dev/ttyACM0", console_port=console_port)),
        HttpClient(nowhere, {}, Keyring([])),
        registry=registry,
        outbox=outbox,
        store=KitStore(folder, "lab", "kit"),
        wake_delivery=wake_delivery,
    )


def serve(kit: KitAgent, seconds: float) -> None:
    async def limited() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(kit.link.run(), seconds)

    virtual_time.run(limited())


def test_a_kit_that_sends_a_notice_with_each_answer_is_not_checked_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def body(command: str) -> str | None:
        modem.transport.deliver(b'+CEREG: 5,"76C1","0102DA04",7\r\n')
        return modem.reads.get(command, "")

    modem = LineModem(body, lambda _command: 0.001)
    serve(kit_of(modem, tmp_path, monkeypatch, StatusRegistry()), 60.0)
    assert 10 < modem.received.count("AT+CEREG?") < 70


def test_a_modem_that_was_off_is_asked_for_its_notices_of_registration_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    level = "0"

    def body(command: str) -> str | None:
        nonlocal level
        is_off = asyncio.get_running_loop().time() < 30.0
        if command.startswith("AT+CEREG="):
            level = command[-1]
        if is_off:
            level = "0"  # functional mode 0 ends all notices
        if command == "AT+CEREG?":
            return f"+CEREG: {level},0"
        return f"+CFUN: {0 if is_off else 1}" if command == "AT+CFUN?" else ""

    modem = LineModem(body, lambda _command: 0.001)
    modem.reads = {}
    serve(kit_of(modem, tmp_path, monkeypatch, StatusRegistry()), 200.0)
    assert level == "5"
    off = "the modem is off (functional mode 0): it hears no network"
    assert f"no longer: {off}" in caplog.messages


@pytest.mark.contract("O3.4")
async def test_what_a_kit_prints_while_its_modem_is_put_back_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    printed = export_lines(b"\x02 a message that is longer than one chunk " * 8)

    def body(command: str) -> str | None:
        if command == "AT+CMEE=0":
            modem.transport.deliver("".join(f"{line}\r\n" for line in printed).encode())
        return modem.reads.get(command, "")

    modem = LineModem(body)
    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as outbox:
        kit = kit_of(modem, tmp_path, monkeypatch, registry := StatusRegistry(), outbox)
        running = asyncio.create_task(kit.link.run())
        while kit.link.modem is None:
            await registry.changed()
        await cancel_and_wait(running)
        assert "AT+CMEE=0" in modem.received
        assert totals(outbox).waiting == len(printed)


@pytest.mark.contract("O5.2")
@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
async def test_what_a_kit_prints_on_its_own_console_waits_until_its_modem_tells_which_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    printed = export_lines(b"\x02 a message that is longer than one chunk " * 8)
    modem = LineModem(imei_by_the_time)
    with (
        closing(PtyServer(tmp_path / "console", lambda _typed: None)) as console,
        Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as outbox,
    ):
        registry = StatusRegistry()
        kit = kit_of(modem, tmp_path, monkeypatch, registry, outbox, console_port=console.port)
        reaching = asyncio.create_task(kit.link.run())
        while kit.link.modem is None:
            await registry.changed()
        await cancel_and_wait(reaching)  # it went, and another one is there, whose modem is silent
        assert kit.device_id
        hearing = asyncio.create_task(kit.console.run(kit.settings))
        while kit.console.write is None:
            await registry.changed()
        console.send("".join(f"{line}\r\n" for line in printed).encode())
        while totals(outbox).waiting < len(printed):
            await registry.changed()
        await cancel_and_wait(hearing)
        listed = outbox.transact(lambda store: store.list_items(100))
        assert {item.device for item in listed} == {unnamed("kit")}


@pytest.mark.contract("O3.4")
async def test_what_a_kit_prints_that_does_not_answer_yet_is_stored_and_waits_for_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As one that starts while its port is opened; it may be another than the one before."""

    def print_and_go(_asked: bytes) -> None:
        modem.transport.deliver("".join(f"{line}\r\n" for line in printed).encode())
        modem.transport.unplug()

    modem = LineModem(lambda _command: "")
    modem.transport.far_end = print_and_go
    printed = export_lines(b"\x02 a message that is longer than one chunk " * 8)
    KitStore(tmp_path, "lab", "kit").update(known_id="the-first", port="/dev/ttyACM0")
    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as outbox:
        kit = kit_of(modem, tmp_path, monkeypatch, StatusRegistry(), outbox)
        assert kit.link.concern.status.device_id == kit.device_id == "the-first"
        with pytest.raises(LinkLost):
            await kit.link.run()
        assert totals(outbox).waiting == len(printed)
        assert kit.link.concern.status.device_id is None


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


def is_other() -> bool:
    """Whether another kit is here by now, in the place of the first."""
    return asyncio.get_running_loop().time() > 30.0


def imei_by_the_time(command: str) -> str | None:
    imei = "490154203237518" if is_other() else "352656100367872"
    return f'+CGSN: "{imei}"' if command == "AT+CGSN=1" else ""


def imei_and_firmware_by_the_time(command: str) -> str | None:
    return "mfw_nrf91x1_2.0.1" if command == "AT+CGMR" else imei_by_the_time(command)


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


@pytest.mark.parametrize("error", [Unreachable("no network", sent=False), CommandTimeout("late")])
def test_how_a_job_ended_is_told_where_the_look_for_another_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    """The cloud may not have been told yet: it is asked again, and the result is known here."""
    result = JobResult(
        job_id="job-1", status=JobStatus.SUCCEEDED, detail="v2 runs", at=NOW.isoformat()
    )

    @asynccontextmanager
    async def runner(*_: object, **__: object) -> AsyncIterator[object]:
        pull = AsyncMock(side_effect=error)
        yield SimpleNamespace(pull=pull, journal=SimpleNamespace(results=(result,)))

    async def look_after() -> None:
        kit.start()
        await asyncio.sleep(30.0)
        await kit.stop()

    monkeypatch.setattr(updates, "runner_of_kit", runner)
    modem = LineModem(imei_and_firmware_by_the_time, lambda _command: 0.001)
    kit = kit_of(modem, tmp_path, monkeypatch, registry := StatusRegistry())
    virtual_time.run(look_after())
    (fota,) = (status for _, status in registry.statuses() if isinstance(status, FotaStatus))
    assert str(error) in str(fota.trouble)
    assert fota.last is not None
    assert (fota.last.job, fota.last.status) == ("job-1", "SUCCEEDED")


async def test_what_a_kit_sends_after_a_hold_does_not_go_under_the_version_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kit = kit_of(LineModem(), tmp_path, monkeypatch, StatusRegistry())
    event = {2: 1, 3: 1, 7: "kit", 10: "main", 9: "1.0.0", 6: "board-1", 4: {}}
    for chunk in encode(b"\x02" + cbor2.dumps(event), 80):
        kit.events.names.observe(chunk)
    assert kit.events.names.identity().software_version == "1.0.0"
    async with link.hold(kit.link, "west flash"):
        pass
    assert kit.events.names.identity().software_version == "unknown"


async def test_a_line_for_a_console_that_is_away_is_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kit = kit_of(LineModem(), tmp_path, monkeypatch, StatusRegistry())
    kit.console.held_port.name = "/dev/ttyACM1"
    with pytest.raises(link.KitAway, match="console is not open") as refused:
        await kit.type_line("kernel uptime")
    assert refused.value.hint == "`cellagent status` says why"
