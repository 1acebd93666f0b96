from __future__ import annotations

from contextlib import nullcontext

import httpx
import msgspec
import pytest
from answering_transport import answering_transport
from kit_gates import verdict_on

from agent.auth.bearer import ApiKey
from agent.auth.credential import Credential, Keyring
from agent.auth.modem_jwt import ModemJwt
from agent.call import Host, Scheme
from agent.config import Profile
from agent.config.profile import FotaSettings, HostSettings, KitSettings
from agent.config.secrets import Secret
from agent.errors import ConfigError, RefusedByRule
from agent.fota.jobs import JobStatus
from agent.fota.reporter import UpdateObserver
from agent.fota.verification import ProofLevel
from agent.http import HttpClient
from agent.wiring.update_runner import (
    DeviceJobs,
    allowed_hosts_of,
    device_id_of,
    installer_of,
    needs_modem,
    network_of,
    trust_of,
)
from at.firmware_gate import FirmwareVerdict, firmware_verdict
from at.tokens.jwt import Jwt

DIGEST = "ab" * 32
NO_JOB = httpx.Response(404, json={"code": 40400, "message": "no job"})


def profile(port: str = "", device_id: str = "", **fota: object) -> Profile:
    kit = KitSettings(port=port, device_id=device_id)
    return Profile(kit=kit, fota=msgspec.structs.replace(FotaSettings(), **fota))


@pytest.mark.parametrize(
    ("fota", "name"),
    [
        ({"command": ("flash", "{image}")}, "command"),
        ({"command": ("flash",), "mcuboot_port": "/dev/x"}, "command"),
        ({"mcuboot_port": "/dev/x"}, "mcuboot"),
        ({"installer": "mcuboot", "mcuboot_port": "/dev/x", "command": ("flash",)}, "mcuboot"),
    ],
)
def test_the_installer_is_the_one_that_is_named_or_configured(fota: dict[str, object], name: str):
    assert installer_of(profile(**fota), None, UpdateObserver()).name == name


@pytest.mark.parametrize(
    ("fota", "named"),
    [({}, "needs the kit's port"), ({"installer": "mcuboot"}, "fota.mcuboot_port names no port")],
)
def test_an_installer_without_its_port_is_a_configuration_error(
    fota: dict[str, object], named: str
):
    with pytest.raises(ConfigError, match=named):
        installer_of(profile(**fota), None, UpdateObserver())


@pytest.mark.parametrize(
    ("chosen", "needed"),
    [
        (profile(), True),
        (profile(mcuboot_port="/dev/x"), True),
        (profile(mcuboot_port="/dev/x", device_id="kit-1"), False),
        (profile(mcuboot_port="/dev/x", device_id="kit-1", port="/dev/y"), True),
    ],
)
def test_the_at_port_is_needed_for_id_versions_or_installer(chosen: Profile, needed: bool):
    assert needs_modem(chosen) is needed


def test_digests_are_taken_with_prefix_and_in_any_case():
    trust = trust_of(profile(digests=(f" SHA256:{DIGEST.upper()} ",), require="intact"))
    assert (trust.digests, trust.require) == ((DIGEST,), ProofLevel.INTACT)
    for wrong in ("", DIGEST[1:], "g" * 64):
        with pytest.raises(ConfigError, match="no SHA-256"):
            trust_of(profile(digests=(wrong,)))


def test_a_proxy_fetches_images_only_where_it_is_trusted():
    hosts = HostSettings(device_cloud="http://127.0.0.1:1", proxy="http://proxy.example:3128")
    for trusted, proxy in ((False, ""), (True, hosts.proxy)):
        chosen = Profile(hosts=hosts, fota=FotaSettings(trust_proxy=trusted))
        assert network_of(chosen).proxy == proxy
    assert allowed_hosts_of(chosen).stand_in
    assert not allowed_hosts_of(profile()).stand_in


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
        with nullcontext() if sent else pytest.raises(RefusedByRule):
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


async def test_without_modem_and_without_an_id_the_key_to_set_is_named():
    with pytest.raises(ConfigError, match=r"kit\.device_id"):
        await device_id_of(None)
