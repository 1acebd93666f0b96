"""Updates as the running agent carries them out, and credentials that are refused."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.config.profile import KitSettings
from agent.daemon.kit.link import KitAway, KitLink
from agent.daemon.kit.store import KitStore
from agent.daemon.kit.updates import (
    JOB_END_KINDS,
    ExclusiveInstaller,
    KitUpdates,
    _PollingObserver,
    _StatusObserver,
    _WakeableClock,
)
from agent.daemon.snapshot import FotaStatus, LinkStatus
from agent.daemon.status import AgentEventKind, StatusRegistry
from agent.fota.jobs import FirmwareType, JobStatus
from agent.fota.journal import JobResult, Journal, journal_folder
from at.driver.modem import Modem
from at.imei import read_imei
from at.protocol.errors import LinkLost
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from tests.support.commands.command_line import cellagent
from tests.support.commands.running_agent import (
    PATIENCE_S,
    RunningAgent,
    agent_on,
    concern_of,
    virtual_kit,
)
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    DEVICE,
    device_profile,
    job_status,
    offer_update,
    onboard_device,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


@pytest.mark.contract("C6")
async def test_a_pending_update_is_carried_out_and_the_link_outlives_the_restart(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
    job_id = await offer_update(standin, image, "v2.0.1")
    await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
    async with agent_on(device_profile(tmp_path, standin)) as agent:
        status = await agent.until_status(
            lambda status: "last" in concern_of(status, "kit", "fota")
        )
        last = concern_of(status, "kit", "fota")["last"]
        assert (last["job"], last["status"]) == (job_id, "SUCCEEDED"), agent.log
        assert await job_status(standin, job_id) == "SUCCEEDED"
        port = str(tmp_path / "kit")
        done = await agent.run("modem", "at", "AT+CGMR", "--port", port, "--json")
        assert done.code == 0, done.err
        assert await agent.stop() == 0
    stages = [json.loads(line)["message"] for line in agent.log if '"fota"' in line]
    assert any("installing" in stage for stage in stages)
    assert sum("SUCCEEDED" in stage for stage in stages) == 1, stages
    assert last["proof"].partition(":")[0] in {"size-checked", "intact", "verified"}


async def turned_on(agent: RunningAgent) -> None:
    assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
    await agent.until_status(lambda status: concern_of(status, "kit", "link")["registration"] == 1)


async def ended(agent: RunningAgent) -> None:
    await agent.until_status(lambda status: "last" in concern_of(status, "kit", "fota"))


def updates_of(folder: Path) -> KitUpdates:
    """Return the updates of a kit as they are after a start of the agent."""
    registry = StatusRegistry()
    link = KitLink(KitSettings(), registry.add_concern(LinkStatus, "kit"), none)
    console: Any = None
    store = KitStore(folder, "lab", "kit")
    return KitUpdates(registry.add_concern(FotaStatus, "kit"), link, console, store)


async def none(_modem: Modem) -> None:
    return None


def test_a_kit_that_an_update_left_offline_is_told_of_until_it_is_back_once(tmp_path: Path):
    detail = "v2 runs; not back online: the SIM is missing"
    ends = [
        JobResult(job_id=id_, status=JobStatus.SUCCEEDED, detail=text, at="2026-01-01T00:00:00Z")
        for id_, text in (("a", "v1 runs; back online after 3 s"), ("b", detail))
    ]
    for _ in range(2):  # the second time after a restart of the agent
        updates = updates_of(tmp_path)
        updates.publish_ends(ends)
        (finding,) = updates.findings(is_back=False)
        assert finding.what == "since its update the kit is not back online: the SIM is missing"
    assert not list(updates.findings(is_back=True))
    for _ in range(2):
        assert not list(updates.findings(is_back=False)), "it went offline for another reason"
        updates = updates_of(tmp_path)
        updates.publish_ends(ends)


def test_what_lets_a_refused_job_pass_is_told_with_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    updates = updates_of(tmp_path)
    refused = JobResult(
        job_id="job-1",
        status=JobStatus.REJECTED,
        detail="older",
        at="2026-01-01T00:00:00Z",
        hint="`cellagent config set fota.allow_downgrade true` lets it pass",
    )
    _StatusObserver(updates.concern, updates._link, updates._console).ended(refused)
    assert caplog.messages == [f"job-1: REJECTED: older; try: {refused.hint}"]


async def test_what_failed_or_was_broken_off_is_tried_at_once_when_the_kit_is_back(tmp_path: Path):
    updates = updates_of(tmp_path)
    concern = updates.concern
    concern.set_well()
    updates.try_again()
    assert not concern.wake.is_set(), "what went well has its turn at the interval"
    for trouble in (
        lambda: _PollingObserver(concern).failed(LinkLost("away")),
        lambda: concern.set_waiting("a hold"),
        lambda: concern.record_failure(OSError()),
    ):
        trouble()
        updates.try_again()
        assert concern.wake.is_set()
        async with asyncio.timeout(PATIENCE_S):
            await _WakeableClock(concern).sleep(1e6)
        assert not concern.wake.is_set(), "the next sleep is a whole one"


async def test_pull_fills_up_what_a_killed_install_had_announced(standin: Any, tmp_path: Path):
    await onboard_device(standin)
    runner = ModemRunner(make_modem(VirtualOptions(instant=True, dialect="serial-modem")))
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
    where = device_profile(tmp_path, standin, settle_s=1, companion_port="")
    job_id = await offer_update(standin, image, "v2.0.1")
    is_killed = False

    def receive(data: bytes) -> None:
        nonlocal is_killed
        if not is_killed and b"#XDFUWRITE=0,8192" in data:
            pulling.kill()
            is_killed = True
        runner.receive(data)

    port = PtyServer(tmp_path / "kit", receive)
    runner.attach(Port.AT, port.send)
    runner.start()
    pulling = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "fota", "pull"), env={**os.environ, **where}
    )
    await asyncio.wait_for(pulling.wait(), PATIENCE_S)
    assert is_killed
    done = await cellagent("fota", "pull", "--json", environment=where)
    runner.stop()
    port.close()
    assert done.code == 0, done.err
    assert await job_status(standin, job_id) == "SUCCEEDED"


@pytest.mark.parametrize(
    "killed_at", [None, b"#XDFUINIT", b"#XDFUWRITE=0,8192", b"#XDFUAPPLY", b"#XRESET", b"AT+CFUN=1"]
)
async def test_an_update_ends_with_the_kit_online_as_it_was_found(
    standin: Any, tmp_path: Path, killed_at: bytes | None
):
    await onboard_device(standin)
    runner = ModemRunner(make_modem(VirtualOptions(instant=True, dialect="serial-modem")))
    where = device_profile(
        tmp_path,
        standin,
        "[profiles.bench.fota]\ninterval_s = 2",
        settle_s=1,
        keep_online="never",
        companion_port="",
    )
    is_offered, is_killed = asyncio.Event(), asyncio.Event()

    def receive(data: bytes) -> None:
        if killed_at and is_offered.is_set() and not is_killed.is_set() and killed_at in data:
            agent.process.kill()
            is_killed.set()
        runner.receive(data)

    port = PtyServer(tmp_path / "kit", receive)
    runner.attach(Port.AT, port.send)
    runner.start()
    try:
        async with agent_on(where) as agent:
            await agent.until("kit", "link", "well")
            await turned_on(agent)
            image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
            is_offered.set()
            job_id = await offer_update(standin, image, "v2.0.1")
            if killed_at is None:
                await ended(agent)
            else:
                await asyncio.wait_for(is_killed.wait(), PATIENCE_S)
                await agent.process.wait()
        async with agent_on(where) as agent:
            if killed_at is not None:
                await ended(agent)
            await agent.until_status(
                lambda status: "registration" in concern_of(status, "kit", "link")
            )
            assert "+CFUN: 1" in (await agent.run("modem", "at", "AT+CFUN?")).out
            await agent.stop()
    finally:
        runner.stop()
        port.close()
    assert await job_status(standin, job_id) == "SUCCEEDED"
    folder = journal_folder(Path(os.environ["CELLAGENT_STATE_DIR"]), DEVICE)
    assert "; back online after " in Journal(folder).results[-1].detail


async def test_a_damaged_journal_is_told_and_keeps_no_kit_from_its_link(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin)
    folder = journal_folder(Path(os.environ["CELLAGENT_STATE_DIR"]), DEVICE)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "journal.json").write_text("{")
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        await agent.stop()
    assert any("the FOTA journal cannot be read" in line for line in agent.log)
    assert (folder / "journal.damaged").read_text() == "{"


async def test_a_refused_credential_is_told_once_and_a_new_one_is_taken_at_reload(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin)
    good = where.pop("CELLAGENT_API_KEY")
    secrets = tmp_path / "secrets.toml"
    secrets.touch(0o600)
    secrets.write_text('[bench]\napi_key = "a-key-that-was-revoked"\n')
    async with agent_on(where) as agent:
        told = await agent.until("kit", "fota", "trouble")
        assert "401" in told["trouble"]
        assert (await agent.run("reload")).code == 0
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["phase"] == "well"
        secrets.write_text(f'[bench]\napi_key = "{good}"\n')
        assert (await agent.run("reload")).code == 0
        await agent.until("kit", "fota", "well")
        await agent.stop()
    refused = [
        json.loads(line)["message"] for line in agent.log if '"fota"' in line and "401" in line
    ]
    assert len(refused) == 1, agent.log
    assert good not in "\n".join(agent.log)


@pytest.mark.parametrize(
    ("imei", "is_here", "is_given"),
    [("356561000000007", True, False), ("", True, True), ("", False, False), ("its", True, True)],
)
async def test_an_image_is_given_to_the_kit_of_the_update_alone(
    imei: str, is_here: bool, is_given: bool
):
    """Another one may have come meanwhile; `its` stands for the IMEI of the one that is here."""

    class Inner:
        name = port = ""
        types: frozenset[FirmwareType] = frozenset()

        async def install(self, package: Any, progress: Any) -> str:
            given.append((package, progress))
            return ""

    async def serve(modem: Modem) -> None:
        if is_here:
            link.ready(modem)
        else:
            concern.record_failure(OSError())
        inner: Any = Inner()
        told = await read_imei(modem) if imei == "its" else imei
        installer = ExclusiveInstaller(inner, link, told)
        await installer.install(package, print)
        raise LinkLost("away")

    given: list[tuple[Any, Any]] = []
    package: Any = object()
    concern = StatusRegistry().add_concern(LinkStatus, "kit")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    with pytest.raises(LinkLost if is_here else KitAway):
        await link.run()
    assert given == [(package, print)] * is_given


def test_every_end_of_a_job_is_an_event_but_one_that_the_cloud_took_back():
    ends = {status: JOB_END_KINDS.get(status) for status in JobStatus if status.final}
    assert ends == {
        JobStatus.SUCCEEDED: AgentEventKind.FOTA_SUCCEEDED,
        JobStatus.FAILED: AgentEventKind.FOTA_FAILED,
        JobStatus.TIMED_OUT: AgentEventKind.FOTA_FAILED,
        JobStatus.REJECTED: AgentEventKind.FOTA_REJECTED,
        JobStatus.CANCELLED: None,
    }
