"""Makes a kit's update runner from its profile, for a command and for the agent's loop.

The profile says where an image may come from, what it must prove, and how it gets onto the kit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agent.auth.modem_jwt import ask_modem
from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.config import Configuration, Profile
from agent.config.private_files import make_private_folder
from agent.errors import ConfigError, CredentialMissing, RefusedByRule, ResourceUnavailable
from agent.fota.allowed_hosts import AllowedHosts
from agent.fota.download.downloader import AsyncClock, Downloader, LoopClock
from agent.fota.download.requests import DownloadNetwork
from agent.fota.fetch import ImageFetcher
from agent.fota.install import Installation
from agent.fota.installers.base import Installer
from agent.fota.jobs import Execution, JobStatus, read_execution
from agent.fota.journal import Journal
from agent.fota.reporter import JobReporter, JobSource, UpdateObserver
from agent.fota.runner import Planner, UpdateRunner
from agent.fota.verification import TrustPolicy, load_public_key, parse_level
from agent.http import HttpClient
from agent.http.download_targets import is_loopback_url
from agent.wiring.service_client import connect
from at.device_uuid import read_device_uuid
from at.driver.modem import Modem
from at.firmware_gate import read_verdict
from at.ports.process_lock import HeldByAnother, ProcessLock
from at.protocol.errors import CommandRejected, ParseError


@dataclass(frozen=True, slots=True)
class DeviceJobs:
    """The jobs of one device, over one client. `scheme` names one kind of credential."""

    client: HttpClient
    device_id: str
    scheme: Scheme | None = None

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none. Raises as HttpClient.send."""
        body = await self.client.send(FetchCurrentJob(self.device_id), scheme=self.scheme)
        return None if body is None else read_execution(body)

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        """Report a state. Raises as HttpClient.send."""
        call = UpdateJob(self.device_id, job_id, status.value, detail)
        await self.client.send(call, scheme=self.scheme)


async def device_id_of(modem: Modem | None) -> str:
    """Return the modem's UUID, the device's id where the profile names none. Raises ConfigError."""
    if modem is None:
        raise ConfigError("kit.device_id is not set, and no port is there to ask the modem")
    try:
        return await read_device_uuid(modem)
    except (CommandRejected, ParseError) as untold:
        raise ConfigError(
            "the modem does not tell its UUID", hint="name the device's id in kit.device_id"
        ) from untold


class JobsHeld(ResourceUnavailable):
    """Another process carries out this kit's jobs."""

    kind = "fota-busy"


def allowed_hosts_of(profile: Profile) -> AllowedHosts:
    """Return where images may come from; a device cloud on this machine is the stand-in."""
    return AllowedHosts(
        hosts=profile.fota.hosts, stand_in=is_loopback_url(profile.hosts.device_cloud)
    )


def network_of(profile: Profile) -> DownloadNetwork:
    """Return how download hosts are reached: by a proxy only where the profile trusts it."""
    return DownloadNetwork(
        hosts=allowed_hosts_of(profile),
        ca_file=os.path.expanduser(profile.hosts.ca_file),  # noqa: PTH111 - "" stays ""
        proxy=profile.hosts.proxy if profile.fota.trust_proxy else "",
    )


def trust_of(profile: Profile) -> TrustPolicy:
    """Return what images must prove. Raises UsageError for a key file that holds none."""
    fota = profile.fota
    digests = tuple(digest.strip().lower().removeprefix("sha256:") for digest in fota.digests)
    for digest in digests:
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise ConfigError(f"fota.digests: {digest[:70]!r} is no SHA-256 in hex")
    key_file = fota.public_key_file
    return TrustPolicy(
        require=parse_level(fota.require),
        allow_downgrade=fota.allow_downgrade,
        digests=digests,
        key=load_public_key(Path(key_file).expanduser()) if key_file else None,
    )


def needs_modem(profile: Profile) -> bool:
    """Return whether the kit's AT port is needed: for its id, its versions or the installer."""
    return (
        _installer_name(profile) != "mcuboot" or not profile.kit.device_id or bool(profile.kit.port)
    )


def installer_of(profile: Profile, modem: Modem | None, observer: UpdateObserver) -> Installer:
    """Return the installer that the profile names. Raises ConfigError.

    "auto" takes what is configured: a command, else an MCUboot port, else the AT port itself.
    The virtual modem takes images as Serial Modem does.
    """
    fota = profile.fota
    chosen = _installer_name(profile)
    if chosen == "command":
        from agent.fota.installers.command import CommandInstaller

        return CommandInstaller(fota.command, fota.command_timeout_s, modem)
    if chosen == "mcuboot":
        from agent.fota.installers.mcuboot import McubootInstaller

        if not fota.mcuboot_port:
            raise ConfigError(
                "fota.installer is mcuboot, and fota.mcuboot_port names no port",
                hint="`cellagent ports` lists them",
            )
        return McubootInstaller(fota.mcuboot_port, profile.kit.baud, observer.overheard)
    from agent.fota.installers.serial_modem import SerialModemInstaller

    if modem is None:
        raise ConfigError("installing over the AT port needs the kit's port", hint="--port PORT")
    return SerialModemInstaller(modem, modem_fetches=fota.modem_fetches)


def make_runner(
    cloud: JobSource,
    installer: Installer,
    journal: Journal,
    downloader: Downloader,
    *,
    hosts: AllowedHosts,
    trust: TrustPolicy,
    firmware_refusal: str = "",
    clock: AsyncClock | None = None,
    observer: UpdateObserver | None = None,
) -> UpdateRunner:
    """Return a runner of these parts. Hold `sole_worker(journal.folder)`; `close` the runner.

    `firmware_refusal` is why the modem's firmware is too old, "" where it is not.
    """
    clock, observer = clock or LoopClock(), observer or UpdateObserver()
    return UpdateRunner(
        cloud,
        journal,
        Planner(hosts, trust, installer, firmware_refusal),
        JobReporter(cloud, journal, clock, observer),
        ImageFetcher(downloader, journal, trust, observer),
        Installation(installer, journal, clock, observer),
    )


async def runner_for(
    stack: contextlib.AsyncExitStack,
    profile: Profile,
    state_dir: Path,
    client: HttpClient,
    *,
    modem: Modem | None,
    observer: UpdateObserver | None = None,
    wrap_installer: Callable[[Installer], Installer] = lambda installer: installer,
) -> UpdateRunner:
    """Return the runner of the profile's kit, which alone works on its jobs until `stack` unwinds.

    `wrap_installer` returns the installer to use in place of the profile's. Raises JobsHeld,
    RefusedByRule where the firmware is too old and no API key is there to report that with.
    """
    device_id = profile.kit.device_id or await device_id_of(modem)
    refusal = "" if modem is None else (await read_verdict(modem)).reason
    scheme = None
    if refusal:
        # Clause D1.4: of such a modem only the refusal is reported, and not in its own name.
        scheme = Scheme.API_KEY
        try:
            client.keyring.choose(FetchCurrentJob(device_id), scheme)
        except CredentialMissing:
            raise RefusedByRule(
                refusal, hint="update the modem's firmware by cable first"
            ) from None
    folder = journal_folder(state_dir, device_id)
    stack.enter_context(sole_worker(folder))
    observer = observer or UpdateObserver()
    runner = make_runner(
        DeviceJobs(client, device_id, scheme),
        wrap_installer(installer_of(profile, modem, observer)),
        Journal(folder),
        Downloader(network_of(profile)),
        hosts=allowed_hosts_of(profile),
        trust=trust_of(profile),
        firmware_refusal=refusal,
        observer=observer,
    )
    stack.push_async_callback(runner.close)
    return runner


async def update_runner(
    stack: contextlib.AsyncExitStack,
    configuration: Configuration,
    modem: Modem | None,
    observer: UpdateObserver | None = None,
) -> UpdateRunner:
    """Return `runner_for` a configuration, with a client of its own that `stack` closes as well.

    Raises also ConfigError and AtError.
    """
    profile = configuration.profile
    ask = None if modem is None else ask_modem(modem, profile.provisioning.security_tag)
    client = await stack.enter_async_context(connect(configuration, ask_modem=ask))
    return await runner_for(
        stack, profile, configuration.state_dir, client, modem=modem, observer=observer
    )


def journal_folder(state_dir: Path, device_id: str) -> Path:
    """Return the folder of a device's journal; its id may hold any characters."""
    name = quote(device_id, safe="").replace(".", "%2E")[:200]
    return state_dir / "fota" / name


@contextlib.contextmanager
def sole_worker(folder: Path) -> Iterator[None]:
    """Hold a kit's jobs: no second process works on them. Raises JobsHeld."""
    make_private_folder(folder)
    try:
        lock = ProcessLock(folder / "lock")
    except HeldByAnother as held:
        raise JobsHeld(
            f"another cellagent carries out this kit's jobs: {held.holder}",
            hint="`cellagent status` shows the agent; or wait for the other command",
        ) from held
    try:
        yield
    finally:
        lock.release()


def _installer_name(profile: Profile) -> str:
    fota = profile.fota
    if fota.installer != "auto":
        return fota.installer
    if fota.command:
        return "command"
    return "mcuboot" if fota.mcuboot_port else "serial-modem"
