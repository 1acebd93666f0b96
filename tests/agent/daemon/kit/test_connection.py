"""The connection to a kit's modem: how often it is looked at, and what it prints meanwhile."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import cbor2
import pytest

from agent.config.profile import OutboxSettings
from agent.daemon.kit import link, updates
from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import FotaStatus
from agent.daemon.status import StatusRegistry
from agent.errors import Unreachable
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult
from agent.observability.ingest.chunk_codec import encode
from agent.outbox import Outbox
from agent.outbox.items import unnamed
from agent.tasks import cancel_and_wait
from at.protocol.errors import CommandTimeout, LinkLost
from at.virtual.console import export_lines
from at.virtual.server.pty import PtyServer
from tests.support.harness import virtual_time
from tests.support.modem.agent_kit import (
    imei_and_firmware_by_the_time,
    imei_by_the_time,
    kit_of,
    serve,
)
from tests.support.modem.line_modem import LineModem
from tests.support.outbox.outboxes import totals
from tests.support.page.statuses import NOW


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
    level, looks = "0", list[float]()

    def body(command: str) -> str | None:
        nonlocal level
        now = asyncio.get_running_loop().time()
        is_off = now < 30.0
        if command.startswith("AT+CEREG="):
            level = command[-1]
        if is_off:
            level = "0"  # functional mode 0 ends all notices
        if command == "AT+CEREG?":
            looks.extend([] if is_off else [now])
            return f"+CEREG: {level},0"
        return f"+CFUN: {0 if is_off else 1}" if command == "AT+CFUN?" else ""

    modem = LineModem(body, lambda _command: 0.001)
    modem.reads = {}
    serve(kit_of(modem, tmp_path, monkeypatch, StatusRegistry()), 200.0)
    assert level == "5"
    # It may have registered before it was asked for them: it is looked at anew, without a notice.
    assert any(5.0 < look - looks[0] < 20.0 for look in looks)
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
