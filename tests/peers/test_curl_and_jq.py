"""curl asks and jq judges: two programs for HTTP and JSON that know nothing of these services.

jq works out of whole answers what the service is to work out of a transform, and walks what is said
to be a tree. curl holds a server's certificate, an entity tag and a header for what HTTP says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.errors import Untrusted
from agent.http import HttpTransport
from tests.support.cloud.device_api import BLE, GATEWAY, GENERIC, LED
from tests.support.cloud.served_cloud import ServedCloud, served_cloud
from tests.support.keys.openssl import openssl

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="no curl or jq: scripts/setup installs them",
    ),
]
DEVICE_OF_EACH_SHAPE = "devices?includeState=true"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCloud]:
    with served_cloud(tmp_path_factory.mktemp("cloud")) as found:
        yield found


def curl(cloud: ServedCloud, path: str, *options: str | Path) -> str:
    """Return what curl prints of a call of the device cloud with an API key."""
    key = cloud.ready["credentials"]["api_key"]
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--noproxy", "*", "--oauth2-bearer", key,
         f"{cloud.ready['urls']['device_cloud']}/v1/{path}", *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def jq(text: str, program: str) -> Any:
    """Return the one value that a program of jq makes of a text of JSON."""
    done = subprocess.run(
        ["jq", "--compact-output", program], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TRANSFORMS = {
    "a field": ("id", ".id"),
    "two fields": ("firmware.supports", ".firmware.supports"),
    "a conditional": ("type = 'BLE' ? id", 'if .type == "BLE" then .id else null end'),
    "either": ('type = "BLE" ? "radio" : name', 'if .type == "BLE" then "radio" else .name end'),
    "names of the caller": ("{'who': id, 'kind': type}", "{who: .id, kind: .type}"),
    "text and number": (
        "{'t': $uppercase(type), 'n': $length(id)}",
        "{t: (.type | ascii_upcase), n: (.id | length)}",
    ),
    "keys": (
        "type = 'BLE' ? $sort($keys(state))", 'if .type == "BLE" then .state | keys else null end'
    ),
    "a wildcard": (
        "type = 'BLE' ? {'paths': $sort(state.*.characteristics.*.path)}",
        'if .type == "BLE" then {paths: [.state[].characteristics[].path] | sort} else null end',
    ),
    "a map": (
        "type = 'BLE' ? {'n': $map(state.*.characteristics.*, function($c) {$count($c.value)})}",
        'if .type == "BLE" then {n: [.state[].characteristics[].value | length]} else null end',
    ),
}  # fmt: skip


@pytest.mark.contract("D4.1", "D4.2", "D4.4", "D4.6")
@pytest.mark.parametrize(("jsonata", "program"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_transform_makes_of_each_device_what_jq_makes_of_it(
    service: ServedCloud, jsonata: str, program: str
) -> None:
    whole = curl(service, DEVICE_OF_EACH_SHAPE)
    asked = ("--get", "--data-urlencode", f"transform={jsonata}")
    shaped = json.loads(curl(service, DEVICE_OF_EACH_SHAPE, *asked))
    assert shaped == jq(whole, f"{{items: (.items | map({program})), total}}")
    assert len(shaped["items"]) == shaped["total"] == 4


@pytest.mark.contract("D4.3")
def test_types_filter_as_jq_selects(service: ServedCloud) -> None:
    whole = curl(service, DEVICE_OF_EACH_SHAPE)
    for kind in ("BLE", "Gateway", "Generic"):
        found = json.loads(curl(service, f"{DEVICE_OF_EACH_SHAPE}&deviceTypes={kind}"))
        assert found["items"] == jq(whole, f'.items | map(select(.type == "{kind}"))')
        assert found["items"]


@pytest.mark.contract("D4.5")
def test_a_transform_elsewhere_changes_nothing(service: ServedCloud) -> None:
    for path in ("account", "firmwares", f"fota-job-executions/{GENERIC}"):
        asked = ("--get", "--data-urlencode", "transform=id")
        assert curl(service, path, *asked) == curl(service, path) != ""


@pytest.mark.contract("D2.4", "D3.1", "D3.2", "D3.4", "D3.5")
def test_the_tree_of_a_device_is_what_jq_finds_in_it(service: ServedCloud) -> None:
    tree = curl(service, f"devices/{BLE}")
    each = "[.state | to_entries[] | .key as $service | .value.characteristics | to_entries[]"
    keyed = f'{each} | .key == .value.uuid and .value.path == $service + "/" + .key] | all'
    assert jq(tree, keyed) is True
    inner = " | .value.path as $path | .value.descriptors | to_entries[]"
    assert jq(tree, f'{each}{inner} | .value.path == $path + "/" + .key] | all') is True
    assert jq(tree, f"{each}{inner}] | length") > 0
    bytes_ = 'all(.[]; type == "number" and . == floor and . >= 0 and . <= 255)'
    assert jq(tree, f"{each} | .value.value | {bytes_}] | all") is True
    known = (
        '["broadcast","read","writeWithoutResponse","write","notify","indicate",'
        '"authorizedSignedWrite"]'
    )
    assert jq(tree, f"[{each} | .value.properties | keys[]] | unique] | flatten - {known}") == []
    gateway = jq(tree, ".gatewayId")
    assert gateway == GATEWAY
    connected = jq(curl(service, f"devices/{gateway}"), ".state.reported.statusConnections | keys")
    assert connected == jq(curl(service, "devices?deviceTypes=BLE"), "[.items[].id]")


RESOURCES = {
    "device": f"devices/{GENERIC}",
    "characteristic": f"devices/{BLE}/characteristics/{LED}",
    "account": "account",
}


@pytest.mark.contract("D5.1", "D5.3")
@pytest.mark.parametrize("path", RESOURCES.values(), ids=RESOURCES)
def test_curl_keeps_the_entity_tag_of_what_it_read(
    service: ServedCloud, path: str, tmp_path: Path
) -> None:
    tag = tmp_path / "tag"
    answer = curl(service, path, "--etag-save", tag)
    kept = tag.read_text().strip()
    assert kept
    if path != RESOURCES["characteristic"]:  # of which an answer has the bytes alone
        assert jq(answer, '."$meta".version') == kept


@pytest.mark.contract("D5.2")
def test_what_another_has_changed_since_is_not_changed(
    service: ServedCloud, tmp_path: Path
) -> None:
    tag, path = tmp_path / "tag", f"devices/{GENERIC}"
    curl(service, path, "--etag-save", tag)

    def rename(name: str, *condition: str) -> tuple[str, str]:
        body = ("--json", json.dumps(name), "--write-out", "%{http_code}")
        said = curl(service, f"{path}/name", "--request", "PUT", *body, *condition)
        return said[-3:], jq(curl(service, path), ".name")

    seen = ("--header", f"If-Match: {tag.read_text().strip()}")
    assert rename("first", *seen) == ("202", "first")
    assert rename("second", *seen) == ("412", "first")
    assert rename("third") == ("202", "third")


@asynccontextmanager
async def openssl_server(folder: Path) -> AsyncIterator[int]:
    """Serve a page over TLS with `leaf.pem`, by OpenSSL's own server; yield its port."""
    process = await asyncio.create_subprocess_exec(
        *("openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-naccept", "9"),
        *("-cert", "leaf.pem", "-key", "leaf.key"),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        while not (found := re.match(rb"ACCEPT .*:(\d+)", line := await process.stdout.readline())):
            assert line, "it ended"
        yield int(found[1])
    finally:
        process.terminate()
        await process.communicate()


CERTIFICATES = {
    "right": ("DNS:localhost", "2"),
    "of another name": ("DNS:elsewhere.example", "2"),
    "of yesterday": ("DNS:localhost", "-1"),
}


@pytest.mark.contract("D1.1")
@pytest.mark.parametrize(("name", "days"), CERTIFICATES.values(), ids=CERTIFICATES)
async def test_what_curl_trusts_is_trusted_and_nothing_else(
    tmp_path: Path, name: str, days: str
) -> None:
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    made = openssl(
        tmp_path, "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=an authority of a test",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    request = openssl(
        tmp_path, "req", *new, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=test",
        "-addext", f"subjectAltName={name}",
    )  # fmt: skip
    assert request.returncode == 0, request.stderr
    signed = openssl(
        tmp_path, "x509", "-req", "-in", "leaf.csr", "-copy_extensions", "copy", "-days", days,
        "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "leaf.pem",
    )  # fmt: skip
    assert signed.returncode == 0, signed.stderr
    async with openssl_server(tmp_path) as port:
        for ca in (tmp_path / "ca.pem", None):
            url = f"https://localhost:{port}/"
            own = ("--cacert", str(ca)) if ca else ()
            process = await asyncio.create_subprocess_exec(
                *("curl", "--silent", "--noproxy", "*", "--output", "/dev/null", *own, url)
            )
            transport, trusted = HttpTransport(ca_file=str(ca) if ca else ""), False
            with contextlib.suppress(Untrusted):
                answer = await transport.exchange("GET", url, headers={}, max_bytes=1_000_000)
                trusted = answer.status == 200
            await transport.close()
            assert trusted is (await process.wait() == 0)
            assert trusted is (ca is not None and (name, days) == CERTIFICATES["right"])
