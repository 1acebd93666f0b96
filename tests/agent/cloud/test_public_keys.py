"""Keys and tokens against the stand-in: what verifies, and what a refusal says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.auth.credential import Credential
from agent.auth.key_files import DeviceKey, signing_key
from agent.call import Response, Scheme
from agent.cloud import DeviceCloud, NewDevice, PublicKey
from agent.cloud.client import _row_errors
from agent.cloud.device_reads import ListDevices
from agent.cloud.public_keys import FetchBulkOperation, OnboardDevices, RegisterPublicKeys
from agent.errors import (
    DeadlineExceeded,
    NotFound,
    ServiceRefusal,
    Unauthorized,
    UsageError,
    WrongCredential,
)
from agent.http import HttpTransport
from agent.standin.device_cloud import seed
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, speaking_for_kit


def cloud_with(standin: StandIn, *credentials: Credential) -> DeviceCloud:
    spent: list[float] = []

    async def sleep(seconds: float) -> None:
        spent.append(seconds)
        standin.clock.advance(seconds)

    client = speaking_for_kit(standin, *credentials)
    return DeviceCloud(client, sleep=sleep, monotonic=lambda: sum(spent))


@pytest.fixture
async def cloud(standin: StandIn) -> AsyncIterator[DeviceCloud]:
    made = cloud_with(standin, api_key(standin))
    yield made
    await made.client.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "device.pem"
    path.touch(mode=0o600)
    path.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def public_pem(path: Path) -> str:
    public = signing_key(path, of_another_kind="").public_key()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(encoding, form).decode()


@pytest.mark.contract("D9.3", "D10.3", "D10.8", "D1.5")
async def test_a_devices_token_opens_its_device_once_its_key_is_registered(
    cloud: DeviceCloud, standin: StandIn, key_file: Path
) -> None:
    device = cloud_with(standin, DeviceKey(key_file, seed.GENERIC, now=standin.clock.time))
    async with device.client:
        with pytest.raises(Unauthorized) as caught:
            await device.device(seed.GENERIC)
        assert "register-key" in caught.value.hint
        request = await cloud.register_public_keys([PublicKey(seed.GENERIC, public_pem(key_file))])
        operation = await cloud.wait_for_bulk(request)
        assert operation.done
        assert (await device.device(seed.GENERIC)).id == seed.GENERIC
        with pytest.raises(WrongCredential, match="takes no device JWT, but API key"):
            await device.client.send(ListDevices(), scheme=Scheme.DEVICE_JWT)


@pytest.mark.contract("D9.3")
async def test_a_file_of_errors_that_cannot_be_had_is_named() -> None:
    nowhere = "http://127.0.0.1:1/errors.json"
    transport = HttpTransport()
    for signature in ("", "?signature=test-only-signature", "?signature=a#b?c"):
        words = await _row_errors(transport, nowhere + signature, stand_in=True)
        assert words == f"see {nowhere}"
    assert await _row_errors(transport, None, stand_in=True) == ""
    await transport.close()


@pytest.mark.contract("D9.3")
async def test_a_row_that_cannot_be_registered_ends_the_request_as_failed(
    cloud: DeviceCloud,
) -> None:
    broken = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
    request = await cloud.register_public_keys([PublicKey(seed.GENERIC, broken)])
    with pytest.raises(ServiceRefusal, match="ended as FAILED") as caught:
        await cloud.wait_for_bulk(request)
    assert caught.value.hint.startswith("[0]")


@pytest.mark.contract("D9.3")
@pytest.mark.parametrize(
    ("pem", "named"),
    [
        ("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----", "private key"),
        ("ssh-ed25519 AAAA", "neither a public key"),
        ("", "neither a public key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA", "neither a public key"),
        (
            "-----BEGIN CERTIFICATE REQUEST-----\nx\n-----END CERTIFICATE REQUEST-----",
            "neither a public key",
        ),
        ("AAAA\n-----END PUBLIC KEY-----", "neither a public key"),
    ],
)
async def test_what_is_no_public_key_never_leaves(cloud: DeviceCloud, pem: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        await cloud.register_public_keys([PublicKey("a", pem)])
    assert caught.value.hint


@pytest.mark.contract("D10.2")
async def test_an_rsa_key_is_told_the_way_out(cloud: DeviceCloud) -> None:
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    for key in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        pem = key.public_key().public_bytes(encoding, form).decode()
        with pytest.raises(UsageError, match=r"^a: \w+ is no P-256 key") as caught:
            await cloud.register_public_keys([PublicKey("a", pem)])
        assert "provision it again with an ES256" in caught.value.hint


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_bulk_request_has_one_to_a_thousand_rows(cloud: DeviceCloud, count: int) -> None:
    key = PublicKey("a", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")
    with pytest.raises(UsageError, match="1 to 1000"):
        await cloud.register_public_keys([key] * count)
    assert await cloud.register_public_keys([key] * 1000)


def test_what_stands_before_a_key_is_left_out(key_file: Path) -> None:
    pem = public_pem(key_file)
    said = PublicKey("a", f"Certificate:\n    Data, in words\n{pem}")
    sent = RegisterPublicKeys((said,)).request().content
    assert sent.endswith(b'-----END PUBLIC KEY-----\n"\n')
    assert sent == RegisterPublicKeys((PublicKey("a", pem),)).request().content


@pytest.mark.contract("D2.1")
def test_a_tag_that_would_be_read_as_two_is_refused_before_it_is_sent(key_file: Path) -> None:
    with pytest.raises(UsageError, match="stands between two tags"):
        OnboardDevices((NewDevice("a", public_pem(key_file), tags=("line", "a|b")),)).request()


async def test_a_device_is_onboarded(cloud: DeviceCloud, key_file: Path) -> None:
    new = NewDevice("nrf-358299840099999", public_pem(key_file), tags=("bench", "left"))
    await cloud.wait_for_bulk(await cloud.onboard([new]))
    device = await cloud.device("nrf-358299840099999")
    assert device.tags == ("bench", "left")


async def test_a_bulk_request_that_does_not_end_is_given_up(
    cloud: DeviceCloud, standin: StandIn, key_file: Path
) -> None:
    standin.cloud.settings.bulk_s = 10_000
    request = await cloud.register_public_keys([PublicKey(seed.GENERIC, public_pem(key_file))])
    with pytest.raises(DeadlineExceeded, match="did not end within 30 s") as late:
        await cloud.wait_for_bulk(request, deadline_s=30)
    assert late.value.hint.startswith(f"`cellagent device bulk-request {request}` ")
    with pytest.raises(NotFound):
        await cloud.bulk_operation("01J00000000000000000000000")


async def test_of_the_errors_by_row_twenty_are_told_and_none_of_a_page_that_is_no_success() -> None:
    told = {"errors": [{"row": row} for row in range(30)]}
    transport = answering_transport(lambda _request: httpx.Response(200, json=told))
    assert (await at_address(transport, "192.31.7.8")).endswith("{'row': 18}; {'row': 19}")
    refused = answering_transport(lambda _request: httpx.Response(403, json=told))
    assert await at_address(refused, "192.31.7.8") == "see https://files.example/e"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1"])
async def test_a_file_of_errors_is_not_fetched_from_an_address_inside(address: str) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(200, json={"errors": [{"secret": "of the host"}]})

    assert await at_address(answering_transport(answer), address) == "see https://files.example/e"
    assert asked == []


async def at_address(transport: HttpTransport, address: str) -> str:
    """Return what is told of a file of errors whose host has this address."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return [address]

    return await _row_errors(
        transport, "https://files.example/e?s=1", stand_in=False, resolve=resolve
    )


@pytest.mark.parametrize(
    ("status", "done"),
    [("PENDING", False), ("IN_PROGRESS", False), ("SUCCEEDED", True), ("FAILED", True)],
)
def test_a_bulk_request_in_progress_has_not_ended(status: str, done: bool) -> None:
    answer = Response(200, {}, b'{"status":"%b"}' % status.encode())
    assert FetchBulkOperation("1").parse(answer).done is done


def test_an_id_that_could_be_in_no_path_is_registered_for_no_device(key_file: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a device id"):
        RegisterPublicKeys((PublicKey("..", public_pem(key_file)),)).request()
