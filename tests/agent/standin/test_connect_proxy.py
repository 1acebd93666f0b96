"""The proxy that ends TLS for the public hosts."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.connect_proxy import connect_proxy
from agent.standin.faults import set_faults
from tests.support.cloud.standin import StandIn, serve
from tests.support.keys.key_files import certificate


def test_a_certificate_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = serve("--connect-proxy", "0", "--ca-file", str(tmp_path / "none" / "ca.pem"))
    assert done.returncode == 2
    assert "ca.pem" in done.stderr


async def test_the_certificate_is_written_over_a_former_one_alone(
    standin: StandIn, tmp_path: Path
) -> None:
    """A bench's CA lies in `ca.pem`, too."""
    ca = tmp_path / "ca.pem"
    theirs = certificate(ec.generate_private_key(ec.SECP256R1())).encode()
    ca.write_bytes(theirs)
    with pytest.raises(ValueError, match="exists already"):
        async with connect_proxy(standin.cloud, 0, ca):
            pass
    assert ca.read_bytes() == theirs
    ca.unlink()
    for _ in range(2):
        async with connect_proxy(standin.cloud, 0, ca):
            pass


async def test_a_second_proxy_on_the_port_says_how_to_take_another_and_leaves_the_ca(
    standin: StandIn, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    async with connect_proxy(standin.cloud, 0, ca) as port:
        first = ca.read_bytes()
        done = await asyncio.to_thread(serve, "--connect-proxy", str(port), "--ca-file", str(ca))
        assert done.returncode == 2
        assert "--connect-proxy 0`" in done.stderr
        assert ca.read_bytes() == first


@pytest.mark.parametrize("fault", [None, "tls-wrong-certificate"])
async def test_the_proxy_shows_the_wrong_certificate_too(
    standin: StandIn, tmp_path: Path, fault: str | None
) -> None:
    ca = tmp_path / "ca.pem"
    async with connect_proxy(standin.cloud, 0, ca) as port:
        set_faults(standin.cloud, [fault] if fault else [])
        trusting = ssl.create_default_context(cafile=str(ca))
        proxy = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(proxy=proxy, verify=trusting, trust_env=False) as client:
            asked = client.get("https://api.nrfcloud.com/v1/status")
            if fault is None:
                assert (await asked).status_code == 200
            else:
                with pytest.raises(httpx.ConnectError, match="certificate"):
                    await asked


async def test_an_open_tunnel_has_ended_when_the_proxy_has(
    standin: StandIn, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    async with contextlib.AsyncExitStack() as stack:
        before = asyncio.all_tasks()
        async with connect_proxy(standin.cloud, 0, ca) as port:
            trusting = ssl.create_default_context(cafile=str(ca))
            proxy = f"http://127.0.0.1:{port}"
            client = await stack.enter_async_context(
                httpx.AsyncClient(proxy=proxy, verify=trusting, trust_env=False)
            )
            await client.get("https://api.nrfcloud.com/v1/status")
            assert asyncio.all_tasks() - before
        assert not asyncio.all_tasks() - before
