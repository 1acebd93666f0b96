"""Where updates come from: the device cloud's jobs, the observability service's releases."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.config import Profile
from agent.errors import ConfigError, EmptyAnswer
from agent.fota.install import TellsVersion, running_version
from agent.fota.installers.cloud_client import CloudClient
from agent.fota.jobs import Execution, FirmwareType, JobStatus, read_execution
from agent.fota.journal import Journal, OpenJob
from agent.fota.releases import (
    Component,
    ReleaseNotKept,
    is_by_kit,
    is_of_cloud,
    is_release,
    offered_by_kit,
    offered_release,
)
from agent.http import HttpClient
from agent.observability.api.client import FetchLatestModemRelease, FetchLatestRelease
from agent.observability.ingest.device_identity import PartialIdentity
from at.commands.identity import ReadModel
from at.driver.modem import Modem
from at.firmware_gate import FirmwareVerdict

MODEM_SOFTWARE_TYPE = "mfw"
"""The software type of the modem's own firmware at the service."""

AskVerdict = Callable[[], Awaitable[FirmwareVerdict]]
"""Asks a kit's modem for its firmware. Raises AtError."""


class DeviceJobs:
    """The jobs of one device, over one client, as far as its modem's firmware permits.

    A kit whose firmware is refused has no jobs, but for those that a user refuses for one that is
    older (clauses D1.3, D1.4): those go with the API key. All methods raise FirmwareRefused for
    the others, AtError where the modem cannot be asked.
    """

    def __init__(self, client: HttpClient, device_id: str, ask_verdict: AskVerdict) -> None:
        self.device_id = device_id
        self._ask_verdict = ask_verdict
        self._verdict: FirmwareVerdict | None = None
        self._client = client.acting_as(kit_gate=self._require_firmware)

    async def verdict(self) -> FirmwareVerdict:
        """Return the verdict on the modem's firmware, which is asked for once."""
        if self._verdict is None:
            self._verdict = await self._ask_verdict()
        return self._verdict

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none. Raises as HttpClient.send."""
        call = FetchCurrentJob(self.device_id, to_refuse=await self._is_to_be_refused())
        body = await self._client.send(call)
        return None if body is None else read_execution(body)

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        """Report a state. Raises as HttpClient.send."""
        to_refuse = await self._is_to_be_refused()
        await self._client.send(
            UpdateJob(self.device_id, job_id, status.value, detail, to_refuse=to_refuse)
        )

    async def _is_to_be_refused(self) -> bool:
        """Return whether a job can only be refused, by a user."""
        return (await self.verdict()).older and Scheme.API_KEY in self._client.keyring

    async def _require_firmware(self) -> None:
        (await self.verdict()).require()


@dataclass(slots=True)
class Releases:
    """The releases of one component of a kit, each as a job of our own.

    `component` is asked once: nothing that it tells changes until the job is installed.
    """

    client: HttpClient
    kind: FirmwareType
    component: Callable[[], Awaitable[Component]]
    journal: Journal
    again: bool
    _asked: Component | None = field(default=None, init=False)

    async def current(self) -> Execution | None:
        """Return the release that the kit is to run, None where it does.

        Raises as HttpClient.send, ConfigError, BadAnswer, ReleaseNotKept.
        """
        asks = self._asked = self._asked or await self.component()
        of_modem = self.kind is FirmwareType.MODEM
        call = (FetchLatestModemRelease if of_modem else FetchLatestRelease)(
            asks.device_serial, asks.hardware_version, asks.software_type, asks.running
        )
        release = await self.client.send(call)
        if release is None:
            return None
        results = self.journal.results
        return offered_release(release.raw, asks, results, datetime.now(UTC), again=self.again)


@dataclass(slots=True)
class KitUpdates:
    """What a kit's own cloud client finds for one component, each as a job of our own."""

    client: CloudClient
    kind: FirmwareType
    device_id: str
    installer: TellsVersion
    journal: Journal
    again: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def current(self) -> Execution | None:
        """Return the update that the kit has found, None for none; one in work is not asked for.

        Raises ResourceUnavailable, DeadlineExceeded, ConfigError, ReleaseNotKept, at.AtError.
        """
        opened = self.journal.open_job
        if opened is not None and _is_of(opened, self):
            return Execution(opened.job_id, opened.device_id, opened.reported, opened.document)
        if not await self.client.has_update(self.kind):
            return None
        return offered_by_kit(
            self.kind,
            self.device_id,
            await running_version(self.installer, self.kind),
            self.journal.results,
            self.now(),
            again=self.again,
        )


Source = DeviceJobs | Releases | KitUpdates


@dataclass(slots=True)
class UpdateSources:
    """All sources of a kit's updates as one: the first that offers something.

    That of the job in work goes first: another's offer would take its place.
    """

    jobs: DeviceJobs
    others: Sequence[Releases | KitUpdates]
    journal: Journal
    asks_jobs: bool

    async def current(self) -> Execution | None:
        """Return what is offered, None for nothing. Raises as its sources do."""
        not_kept: ReleaseNotKept | None = None
        for source in self._in_order():
            try:
                offered = await source.current()
            except ReleaseNotKept as left:
                not_kept = not_kept or left
            except EmptyAnswer as nothing:
                # "No job", unless one is open: a proxy's answer would withdraw that.
                if nothing.status != 404 or self.journal.open_job is not None:
                    raise
            else:
                if offered is not None:
                    return offered
        if not_kept is not None:
            raise not_kept
        return None

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        """Report a job's state; of the others the service sees it in what the kit sends."""
        if is_of_cloud(job_id):
            await self.jobs.report(job_id, status, detail)

    def _in_order(self) -> Iterator[Source]:
        sources: list[Source] = [*self.others, *([self.jobs] if self.asks_jobs else ())]
        opened = self.journal.open_job
        if opened is not None:
            sources.sort(key=lambda source: not _is_of(opened, source))
        yield from sources


def releases_of(
    profile: Profile,
    device_id: str,
    client: HttpClient,
    modem: Modem | None,
    installer: TellsVersion,
    journal: Journal,
    names: PartialIdentity,
    *,
    again: bool,
) -> list[Releases]:
    """Return the sources of releases that a profile names: the application's, then the modem's.

    `names` are what the kit's own events say; the profile's precede them.
    """
    kit, fota = profile.kit, profile.fota

    async def application() -> Component:
        return Component(
            FirmwareType.APP,
            device_id,
            _named(kit.hardware_version or names.hardware_version, "hardware_version", "BOARD"),
            _named(kit.software_type or names.software_type, "software_type", "NAME"),
            await running_version(installer, FirmwareType.APP) or names.software_version,
        )

    async def modem_firmware() -> Component:
        hardware = fota.modem_hardware_version
        if not hardware and modem is not None:
            hardware = (await modem.send(ReadModel())).model.partition(" ")[0]
        if not hardware:
            raise ConfigError(
                "the modem's name at its project of releases is not known",
                hint="`cellagent config set fota.modem_hardware_version NAME`",
            )
        version = await running_version(installer, FirmwareType.MODEM)
        return Component(FirmwareType.MODEM, device_id, hardware, MODEM_SOFTWARE_TYPE, version)

    wanted = [
        (fota.source, FirmwareType.APP, application),
        (fota.modem_source, FirmwareType.MODEM, modem_firmware),
    ]
    return [
        Releases(client, kind, component, journal, again=again)
        for source, kind, component in wanted
        if source == "releases"
    ]


def _named(name: str, key: str, example: str) -> str:
    """Return a name that the service needs. Raises ConfigError."""
    if not name:
        raise ConfigError(
            f"fota.source is releases, and neither kit.{key} nor an event of the kit names it",
            hint=f"`cellagent config set kit.{key} {example}`",
        )
    return name


def _is_of(opened: OpenJob, source: Source) -> bool:
    if isinstance(source, DeviceJobs):
        return is_of_cloud(opened.job_id)
    is_one = is_by_kit if isinstance(source, KitUpdates) else is_release
    return is_one(opened.job_id) and opened.document.get("firmwareType") == source.kind.value
