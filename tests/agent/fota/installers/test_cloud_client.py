"""A kit's own cloud client updates it, and this host watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ConfigError, ResourceUnavailable
from agent.fota.allowed_hosts import AllowedHosts
from agent.fota.download.downloader import Downloader
from agent.fota.download.requests import DownloadNetwork
from agent.fota.installers import cloud_client
from agent.fota.installers.base import InstallFailed
from agent.fota.installers.cloud_client import CloudClient, WithCloudClient, cloud_client_of
from agent.fota.installers.serial_modem import SerialModemInstaller
from agent.fota.jobs import FirmwareType, JobStatus
from agent.fota.journal import Journal
from agent.fota.releases import ReleaseNotKept
from agent.fota.runner import Planner, UpdateRunner
from agent.fota.verification import ProofLevel, TrustPolicy
from agent.wiring.update_sources import DeviceJobs, KitUpdates, UpdateSources
from at.commands.identity import ReadRevision
from at.commands.serial_modem.cloud import ReadCloudState
from at.driver.modem import Modem
from at.protocol.command import Command
from at.protocol.error_codes import rejection
from at.protocol.errors import CommandTimeout, ModemReset, NoAnswer
from at.protocol.line.items import Answer
from at.virtual.state import CredentialSlot
from at.virtual.transport import VirtualTransport
from tests.support.cloud.kit_gates import verdict_on
from tests.support.harness.manual_clock import ManualClock

APP, MODEM = FirmwareType.APP, FirmwareType.MODEM
KEY = "test-project-key-0123456789abcde"
NEW_MODULE, NEW_MODEM, NEW_APP = "mfw_nrf93m1_1.6.0", "mfw_nrf91x1_2.0.9", "2.1.0"
KITS = [("nrf93m1", MODEM, NEW_MODULE), ("serial", MODEM, NEW_MODEM), ("serial", APP, NEW_APP)]


@asynccontextmanager
async def kit(
    model: str, *faults: str, online: bool = True, instant: bool = True
) -> AsyncIterator[Modem]:
    options: dict[str, Any] = {"model": "nrf93m1"}
    if model == "serial":
        options = {"dialect": "serial-modem", "firmware": "serial-modem-2.0.0"}
    transport = VirtualTransport(faults=faults, instant=instant, **options)
    modem = Modem(transport)
    await modem.open()
    transport.modem.kit.saved.credentials["16842753,2"] = CredentialSlot("", "")
    try:
        if online:
            await go_online(modem, model)
        yield modem
    finally:
        await modem.close()


async def version_of(modem: Modem) -> str:
    try:
        return (await modem.send(ReadRevision())).revision
    except ModemReset:
        return "restarts"


async def go_online(modem: Modem, model: str) -> None:
    with modem.notices("+CEREG") as registered:
        await modem.execute("AT+CEREG=5")
        await modem.execute("AT+CFUN=1")
        # One that stayed on has nothing to tell.
        on = (await modem.execute("AT+CEREG?")).lines[0].split(",")[1] in {"1", "5"}
        while not on:
            on = (await anext(registered)).line.startswith(("+CEREG: 1", "+CEREG: 5"))
    if model == "serial":
        with modem.notices("#XNRFCLOUD") as ready:
            if (await modem.send(ReadCloudState())).ready:
                return
            assert (await modem.execute("AT#XNRFCLOUD=1")).ok
            async for notice in ready:
                if notice.line.startswith("#XNRFCLOUD: 1"):
                    return


def client_of(modem: Modem) -> CloudClient:
    client = cloud_client_of(modem, KEY, KEY)
    assert client is not None
    return client


def runner_of(
    modem: Modem, kind: FirmwareType, folder: Path, trust: TrustPolicy | None = None
) -> UpdateRunner:
    clock, allowed = ManualClock(), AllowedHosts(hosts=(), stand_in=True)
    installer = WithCloudClient(SerialModemInstaller(modem), client_of(modem))
    journal = Journal(folder)
    own = KitUpdates(client_of(modem), kind, "kit", installer, journal, again=False, now=clock.now)
    jobs: DeviceJobs = None  # type: ignore[assignment] - nothing may be asked of it
    return UpdateRunner(
        UpdateSources(jobs, [own], journal, asks_jobs=False),
        journal,
        Planner(allowed, trust or TrustPolicy(), installer, verdict_on("mfw_nrf91x1_2.0.4")),
        Downloader(DownloadNetwork(allowed), clock=clock),
        clock=clock,
    )


@pytest.mark.parametrize(("model", "kind", "version"), KITS)
async def test_it_is_found_downloaded_and_seen_by_the_version_that_runs_then(
    model: str, kind: FirmwareType, version: str, tmp_path: Path
) -> None:
    async with kit(model, f"release-offered={version}") as modem:
        runner = runner_of(modem, kind, tmp_path)
        plan = await runner.plan()
        assert plan is not None
        assert (plan.refusal, plan.needed) == ("", "checked by the kit")
        result = await runner.pull()
        assert result is not None
        assert (result.status, version in result.detail) == (JobStatus.SUCCEEDED, True)
        assert result.proof.startswith("checked by the kit")
        await go_online(modem, model)
        assert await runner.pull() is None
        await runner.close()


@pytest.mark.parametrize("silent_at", range(6))
async def test_a_kit_that_is_silent_once_is_asked_again_later_and_rejects_nothing(
    silent_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kit("nrf93m1", f"release-offered={NEW_MODULE}") as modem:
        send, asked = modem.send, 0

        async def silent_once(command: Command[object]) -> object:
            nonlocal asked
            asked += isinstance(command, ReadRevision)
            if isinstance(command, ReadRevision) and asked == silent_at + 1:
                raise CommandTimeout("no answer")
            return await send(command)

        monkeypatch.setattr(modem, "send", silent_once)
        runner = runner_of(modem, MODEM, tmp_path)
        result = None
        with suppress(CommandTimeout, NoAnswer):
            result = await runner.pull()
        result = result or await runner.pull()
        assert result is not None
        assert result.status is JobStatus.SUCCEEDED
        await runner.close()


@pytest.mark.parametrize(("model", "kind", "version"), KITS)
@pytest.mark.parametrize("fault", ["flash-failed", "update-reverted"])
async def test_one_that_does_not_stick_is_a_failure_and_not_tried_at_once_again(
    model: str, kind: FirmwareType, version: str, fault: str, tmp_path: Path
) -> None:
    async with kit(model, f"release-offered={version}", fault) as modem:
        runner = runner_of(modem, kind, tmp_path)
        result = await runner.pull()
        assert result is not None
        assert result.status is JobStatus.FAILED
        await go_online(modem, model)
        with pytest.raises(ReleaseNotKept, match="tried again from"):
            await runner.pull()
        await runner.close()


@pytest.mark.parametrize("require", list(ProofLevel))
async def test_fota_require_forbids_what_only_the_kit_checks(
    require: ProofLevel, tmp_path: Path
) -> None:
    async with kit("nrf93m1", f"release-offered={NEW_MODULE}") as modem:
        runner = runner_of(modem, MODEM, tmp_path, TrustPolicy(require))
        result = await runner.pull()
        assert result is not None
        assert (result.status, "checked by the kit" in result.detail) == (JobStatus.REJECTED, True)
        assert "mfw_nrf93m1_1.5.0" in (await modem.execute("AT+CGMR")).lines
        await runner.close()


def noted(modem: Modem, monkeypatch: pytest.MonkeyPatch, *, refused: int = 0) -> list[str]:
    """Return the lines that the modem is sent from now on; the first `refused` it refuses."""
    lines: list[str] = []
    send = modem.send

    async def noting(command: Command[object]) -> object:
        lines.append(command.encode())
        if len(lines) <= refused:
            raise rejection(lines[-1], Answer((), "ERROR"))
        return await send(command)

    monkeypatch.setattr(modem, "send", noting)
    return lines


async def test_a_download_that_went_on_after_a_kill_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with kit("serial", f"release-offered={NEW_MODEM}") as modem:
        with modem.notices("#XNRFCLOUDFOTA") as notices:
            assert (await modem.execute("AT#XNRFCLOUDFOTA=2")).ok
            async for notice in notices:
                assert notice.line.startswith("#XNRFCLOUDFOTA: 1,0")
                break
        lines = noted(modem, monkeypatch, refused=1)
        await client_of(modem).update(MODEM, lambda *_: None)
        begin = f'AT#XNRFCLOUDFOTA=2,"{KEY}"'
        assert lines == [begin, "AT#XNRFCLOUDFOTA=0", begin]
        assert NEW_MODEM in (await modem.execute("AT+CGMR")).lines


@pytest.mark.parametrize(
    ("model", "version", "restart"),
    [("serial", NEW_MODEM, "AT#XRESET"), ("nrf93m1", NEW_MODULE, "AT%FACTORYRESET")],
)
async def test_a_kit_that_restarts_in_its_download_is_not_waited_for_to_the_end(
    model: str, version: str, restart: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_client, "_LOOK_S", 0.1)
    async with kit(model, f"release-offered={version}", instant=False) as modem:
        resets: list[asyncio.Task[Answer]] = []

        def reset(*_progress: object) -> None:
            resets.append(asyncio.create_task(modem.execute(restart)))

        with pytest.raises(ModemReset, match="restarted before it had its update"):
            await client_of(modem).update(MODEM, reset)
        await asyncio.gather(*resets, return_exceptions=True)


async def test_each_type_is_asked_for_by_the_key_of_its_own_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = {APP: "a" * 32, MODEM: "b" * 32}
    async with kit("serial") as modem:
        lines = noted(modem, monkeypatch)
        client = cloud_client_of(modem, keys[APP], keys[MODEM])
        assert client is not None
        for kind, key in keys.items():
            await client.has_update(kind)
            assert lines[-1].endswith(f',"{key}"')


async def test_an_update_that_a_module_does_since_before_is_watched_to_its_end() -> None:
    offered = f"release-offered={NEW_MODULE}"
    async with kit("nrf93m1", offered, instant=False) as modem:
        assert (await modem.execute(f'AT%NRFCLOUDFOTA=3,"{KEY}"')).ok
        await client_of(modem).update(MODEM, lambda *_: None)
        async with asyncio.timeout(30):
            while await version_of(modem) != NEW_MODULE:
                pass


async def test_without_an_update_nothing_is_begun_and_without_a_session_that_is_said() -> None:
    for model, kind, _ in KITS:
        async with kit(model) as modem:
            assert not await client_of(modem).has_update(kind)
            with pytest.raises(InstallFailed, match="no update now"):
                await client_of(modem).update(kind, lambda *_: None)
    async with kit("serial", online=False) as modem:
        with pytest.raises(ResourceUnavailable) as told:
            await client_of(modem).has_update(APP)
        assert "AT#XNRFCLOUD=1" in told.value.hint
    async with kit("nrf93m1") as modem:
        without_key = cloud_client_of(modem, KEY, "")
        assert without_key is not None
        with pytest.raises(ConfigError, match="key of the project"):
            await without_key.has_update(MODEM)
