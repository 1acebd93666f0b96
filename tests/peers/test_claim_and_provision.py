"""claim_and_provision_device, released and unmodified: a virtual kit, the proxy, both hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.modem.served_kit import PEERS, ROOT, ServedKit

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not (PEERS / "claim_and_provision_device").exists(),
        reason="no .peers here: ./scripts/peers makes it",
    ),
]


@pytest.fixture
def internet(tmp_path: Path) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Run the stand-in with its proxy; give the ready line, and what a tool's environment needs."""
    ca = tmp_path / "ca.pem"
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "agent", "cloud", "serve"),
            *("--connect-proxy", "0", "--ca-file", str(ca)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        proxy = server.stderr.readline().strip().rpartition("=")[2]
        ready = json.loads(server.stdout.readline())
        yield ready, {"HTTPS_PROXY": proxy, "REQUESTS_CA_BUNDLE": str(ca)}
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.contract("D9.3", "D10.8")
def test_it_claims_a_kit_provisions_it_and_adds_the_device(
    serve: Callable[..., ServedKit], internet: tuple[dict[str, Any], dict[str, str]]
) -> None:
    ready, environment = internet
    kit = serve("--model", "nrf9151")
    kit.run("create_ca_cert", "-c", "NO", "-f", "test_")
    done = kit.run(
        *("claim_and_provision_device", "--port", str(kit.port), "--cmd-type", "at", "--plain"),
        *("--ca", next(kit.folder.glob("test_*_ca.pem")).name),
        *("--ca-key", next(kit.folder.glob("test_*_prv.pem")).name),
        *("--api-key", ready["credentials"]["api_key"], "--tags", "bench", "--unclaim"),
        environment=environment,
    )
    uuid = kit.saved()["uuid"]
    bearer = {"Authorization": f"Bearer {ready['credentials']['api_key']}"}
    with httpx.Client(headers=bearer, trust_env=False) as client:
        base = f"{ready['urls']['provisioning']}/v1/claimed-devices/{uuid}"
        commands = client.get(f"{base}/provisioning").json()["items"]
        assert [next(iter(command["request"])) for command in commands] == [
            "certificateSigningRequest",
            "clientCertificate",
            "serverCertificate",
            "finished",
        ], done.stdout + done.stderr
        assert {command["status"] for command in commands} == {"SUCCEEDED"}
        # The tool does not wait for its bulk request; its time is over when we say so.
        later = {"Authorization": f"Bearer {ready['credentials']['control_token']}"}
        control = f"{ready['urls']['device_cloud']}/control"
        client.post(control, json={"clock": {"advance_s": 5}}, headers=later)
        device = client.get(f"{ready['urls']['device_cloud']}/v1/devices/{uuid}").json()
    assert device["tags"] == ["bench"], done.stdout + done.stderr
    assert device["firmware"]["supports"] == ["APP", "MODEM"]
