from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from agent.auth.bearer import ApiKey
from agent.auth.credential import Credential, Keyring, ModemProjectKey, ProjectKey
from agent.auth.modem_jwt import ModemJwt
from agent.call import Host, Scheme
from agent.config import Profile
from agent.config.profile import FotaSettings, KitSettings
from agent.config.secrets import Secret
from agent.errors import AgentError, ConfigError, EmptyAnswer
from agent.fota.installers.base import RunningVersion
from agent.fota.jobs import Execution, FirmwareType, JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob
from agent.fota.releases import ReleaseNotKept
from agent.http import HttpClient
from agent.observability.ingest.device_identity import PartialIdentity
from agent.wiring.update_sources import DeviceJobs, UpdateSources, releases_of
from at.firmware_gate import FirmwareVerdict, firmware_verdict
from at.protocol.errors import FirmwareRefused
from at.tokens.jwt import Jwt
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.kit_gates import verdict_on

NO_JOB = httpx.Response(404, json={"code": 40400, "message": "no job"})


@pytest.mark.contract("D1.3", "D1.4", "D9.2")
@pytest.mark.parametrize("prefer", [None, Scheme.DEVICE_JWT])
@pytest.mark.parametrize(
    ("firmware", "api_key", "sent"),
    [
        ("mfw_nrf9160_1.2.7", True, True),  # by the user, to refuse
        ("mfw_nrf9160_1.2.7", False, False),
        ("ERROR", True, False),
        ("mfw-pti_nrf91x1_2.3.8", True, False),
        ("mfw-nr+_nrf91x1_1.1.0", True, False),
    ],
)
async def test_of_a_refused_modem_a_user_alone_speaks_and_only_of_one_that_is_too_old(
    firmware: str, api_key: bool, sent: bool, prefer: Scheme | None
):
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return NO_JOB if request.method == "GET" else httpx.Response(200)

    async def no_token(subject: str, life_s: int) -> Jwt:
        raise AssertionError("a modem that is refused is asked for no token")

    credentials: list[Credential] = [ModemJwt(no_token, "kit-1")]
    credentials += [ApiKey(Secret("api-key-of-a-test"))] if api_key else []
    client = HttpClient(
        answering_transport(answer),
        {Host.DEVICE_CLOUD: "https://cloud.example"},
        Keyring(credentials, prefer=prefer),
    )
    cloud = DeviceJobs(client, "kit-1", verdict_on(firmware))
    for call in (cloud.current(), cloud.report("job-1", JobStatus.REJECTED, "")):
        with nullcontext() if sent else pytest.raises(FirmwareRefused):
            await call
    assert {each.headers["authorization"] for each in asked} == (
        {"Bearer api-key-of-a-test"} if sent else set()
    )


async def test_the_firmware_of_a_kit_is_asked_for_once_and_before_the_first_call():
    asked: list[str] = []

    async def ask() -> FirmwareVerdict:
        asked.append("modem")
        return firmware_verdict("mfw_nrf91x1_2.0.4")

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return NO_JOB

    client = HttpClient(
        answering_transport(answer),
        {Host.DEVICE_CLOUD: "https://cloud.example"},
        Keyring([ApiKey(Secret("api-key-of-a-test"))]),
    )
    cloud = DeviceJobs(client, "kit-1", ask)
    assert asked == []  # an install that was cut off is ended first
    assert await cloud.current() is None
    assert await cloud.current() is None
    assert asked == ["modem", "GET", "GET"]


class Kit:
    """A kit that says what runs; it is asked at most once for each type."""

    def __init__(self, **versions: str) -> None:
        self.versions = {FirmwareType[name]: version for name, version in versions.items()}

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        version = self.versions.pop(kind, None)
        return None if version is None else RunningVersion(version)


class Services:
    """Both services: what each offers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []
        self.releases: dict[str, dict[str, object]] = {}
        self.job: dict[str, object] | None = None
        self.refusal: httpx.Response | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.refusal is not None:
            return self.refusal
        if request.url.host == "cloud.example":
            if request.method != "GET":
                return httpx.Response(200)
            return NO_JOB if self.job is None else httpx.Response(200, json=self.job)
        found = self.releases.get(request.url.params["software_type"])
        return httpx.Response(204) if found is None else httpx.Response(200, json=found)

    def deploy(self, software_type: str, version: str) -> None:
        artifacts = [{"url": "https://files.example/a.bin", "md5": ""}]
        self.releases[software_type] = {"version": version, "artifacts": artifacts}

    def client(self) -> HttpClient:
        keys = [
            ApiKey(Secret("api-key-of-a-test")),
            ProjectKey(Secret("project-key-of-a-test")),
            ModemProjectKey(Secret("modem-project-key-of-a-test")),
        ]
        hosts = {Host.DEVICE_CLOUD: "https://cloud.example", Host.API: "https://api.example"}
        return HttpClient(answering_transport(self), hosts, Keyring(keys))


def sources(
    services: Services, journal: Journal, kit: Kit, *, names: PartialIdentity | None = None,
    again: bool = False, **fota: str,
) -> UpdateSources:  # fmt: skip
    client = services.client()
    settings = FotaSettings(
        **{"source": "releases", "modem_source": "releases",
           "modem_hardware_version": "nrf91x1", **fota}  # type: ignore[arg-type]
    )  # fmt: skip
    profile = Profile(kit=KitSettings(hardware_version="nrf9151dk"), fota=settings)
    known = names or PartialIdentity(software_type="main")
    jobs = DeviceJobs(client, "kit-1", verdict_on("mfw_nrf91x1_2.0.4"))
    found = releases_of(profile, "kit-1", client, None, kit, journal, known, again=again)
    asks_jobs = "jobs" in {settings.source, settings.modem_source}
    return UpdateSources(jobs, found, journal, asks_jobs=asks_jobs)


@pytest.mark.contract("O5.4", "O4.3")
async def test_the_application_is_asked_for_first_then_the_modem_with_its_own_key(
    tmp_path: Path,
) -> None:
    services = Services()
    asks = sources(services, Journal(tmp_path), Kit(APP="v1.0.0", MODEM="mfw_nrf91x1_2.0.4"))
    for _ in range(2):
        assert await asks.current() is None
    questions = [dict(request.url.params) for request in services.asked]
    assert questions[:2] == questions[2:]
    assert questions[:2] == [
        {
            "device_serial": "kit-1", "hardware_version": "nrf9151dk",
            "software_type": "main", "current_version": "v1.0.0",
        },
        {
            "device_serial": "kit-1", "hardware_version": "nrf91x1",
            "software_type": "mfw", "current_version": "mfw_nrf91x1_2.0.4",
        },
    ]  # fmt: skip
    keys = [request.headers["service-project-key"] for request in services.asked[:2]]
    assert keys == ["project-key-of-a-test", "modem-project-key-of-a-test"]


async def test_nothing_is_told_of_a_release_and_a_job_s_state_always(tmp_path: Path) -> None:
    services = Services()
    services.deploy("main", "2.0.1")
    asks = sources(services, Journal(tmp_path), Kit(APP="v1.0.0"))
    offered = await asks.current()
    assert offered is not None
    del services.asked[:]
    await asks.report(offered.job_id, JobStatus.SUCCEEDED, "")
    assert services.asked == []
    await asks.report("job-1", JobStatus.SUCCEEDED, "")  # of before the source was changed
    assert [request.method for request in services.asked] == ["PATCH"]


async def test_the_source_of_the_job_in_work_goes_first(tmp_path: Path) -> None:
    services, journal = Services(), Journal(tmp_path)
    services.deploy("main", "2.0.1")
    services.deploy("mfw", "mfw_nrf91x1_2.0.9")
    services.job = {"jobId": "job-1", "deviceId": "kit-1", "jobDocument": {}}

    async def first_offer(kit: Kit) -> Execution:
        offered = await sources(services, journal, kit, modem_source="releases").current()
        assert offered is not None
        return offered

    def begin(offer: Execution) -> None:
        document = dict(offer.document)
        journal.begin(OpenJob(job_id=offer.job_id, device_id="kit-1", document=document))

    def close(offer: Execution) -> None:
        at = datetime.now(UTC).isoformat()
        journal.close(JobResult(job_id=offer.job_id, status=JobStatus.REJECTED, detail="", at=at))

    application = await first_offer(Kit(APP="1", MODEM="2"))
    assert application.document["firmwareType"] == "APP"
    begin(application)
    close(application)
    modem = await first_offer(Kit(APP="1", MODEM="2"))  # the application's tries are used up
    assert modem.document["firmwareType"] == "MODEM"
    services.deploy("main", "2.0.2")
    begin(modem)
    assert await first_offer(Kit(APP="1", MODEM="2")) == modem
    close(modem)
    for source, first in (("releases", "release/2.0.2/"), ("jobs", "job-1")):
        asks = sources(services, journal, Kit(APP="1"), source=source, modem_source="jobs")
        offered = await asks.current()
        assert offered is not None
        assert offered.job_id.startswith(first)
    begin(offered)
    asks = sources(services, journal, Kit(APP="1"), source="releases", modem_source="jobs")
    assert await asks.current() == offered


@pytest.mark.contract("D9.2")
async def test_a_404_without_a_body_says_that_there_is_no_job_unless_one_is_open(
    tmp_path: Path,
) -> None:
    services, journal = Services(), Journal(tmp_path)
    asks = sources(services, journal, Kit(), source="jobs", modem_source="jobs")
    services.refusal = httpx.Response(404)
    assert await asks.current() is None
    journal.begin(OpenJob(job_id="job-1", device_id="kit-1", document={}))
    for open_job_s in (asks.current(), asks.report("job-1", JobStatus.FAILED, "")):
        with pytest.raises(EmptyAnswer):  # a proxy's, perhaps
            await open_job_s


async def test_what_was_left_is_told_only_where_nothing_else_is_offered(tmp_path: Path) -> None:
    services, journal = Services(), Journal(tmp_path)
    services.deploy("main", "2.0.1")
    offered = await sources(services, journal, Kit(APP="1")).current()
    assert offered is not None
    journal.begin(OpenJob(job_id=offered.job_id, device_id="kit-1", document={}))
    at = datetime.now(UTC).isoformat()
    failed = JobResult(job_id=offered.job_id, status=JobStatus.REJECTED, detail="no", at=at)
    journal.close(failed)
    with pytest.raises(ReleaseNotKept, match=r"release 2\.0\.1 was tried"):
        await sources(services, journal, Kit(APP="1")).current()
    assert await sources(services, journal, Kit(APP="1"), again=True).current() is not None
    services.deploy("mfw", "mfw_nrf91x1_2.0.9")
    assert await sources(services, journal, Kit(APP="1", MODEM="2")).current() is not None


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (PartialIdentity(), "kit.software_type"),
        (PartialIdentity(software_type="main"), "fota.modem_hardware_version"),
    ],
)
async def test_a_name_that_is_missing_is_named_with_the_command_that_sets_it(
    tmp_path: Path, names: PartialIdentity, key: str
) -> None:
    asks = sources(
        Services(), Journal(tmp_path), Kit(APP="1"), names=names, modem_hardware_version=""
    )
    with pytest.raises(ConfigError) as missing:
        await asks.current()
    assert f"`cellagent config set {key} " in str(missing.value.hint)


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_a_refused_question_is_no_sign_that_nothing_is_offered(
    tmp_path: Path, status: int
) -> None:
    services = Services()
    services.refusal = httpx.Response(status, json={"error": {"message": "no", "code": status}})
    with pytest.raises(AgentError, match=f"answered {status}"):
        await sources(services, Journal(tmp_path), Kit(APP="1")).current()
