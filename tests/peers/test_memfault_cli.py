"""memfault-cli, released and unmodified, against `cellagent cloud serve` (clause O5.6)."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.cloud.served_cloud import MEMFAULT, ServedCloud
from tests.support.commands.nrfcloud_tools import internet, run
from tests.support.dumps.elf_files import BUILD_ID, small_elf
from tests.support.dumps.sdk_bytes import EXAMPLE_LINES, EXAMPLE_SINGLE, coredump
from tests.support.fota.signed_images import signed_image
from tests.support.modem.served_kit import ServedKit

pytestmark = [
    pytest.mark.peer,
    pytest.mark.contract("O5.6"),
    pytest.mark.skipif(not MEMFAULT.exists(), reason="no .peers here: ./scripts/peers makes it"),
]


@pytest.mark.contract("O5.1")
def test_a_chunk_in_each_of_its_encodings(cloud: ServedCloud) -> None:
    (cloud.folder / "chunk.bin").write_bytes(EXAMPLE_SINGLE)
    cloud.run(cloud.key, "post-chunk", "--encoding", "hex", EXAMPLE_SINGLE.hex())
    cloud.run(cloud.key, "post-chunk", "--encoding", "bin", "chunk.bin")
    events = cloud.data("events")
    assert [event["event_info"]["metrics"] for event in events] == [{"chunk_test_success": 1}] * 2
    assert {event["device"]["device_serial"] for event in events} == {"TESTSERIAL"}


@pytest.mark.contract("O5.1")
def test_the_chunks_of_a_console_export(cloud: ServedCloud) -> None:
    (cloud.folder / "console.txt").write_text("boot\n" + EXAMPLE_LINES + "uart:~$ \n")
    shown = cloud.run(
        cloud.key, "post-chunk", "--device-serial", "kit-1", "--encoding", "sdk_data_export",
        "console.txt",
    )  # fmt: skip
    assert "2 Chunks" in shown
    assert len(cloud.data("events")) == 1


@pytest.mark.contract("C7", "O4.1", "O4.2", "O4.3", "O5.2", "O5.3")
@pytest.mark.parametrize("credential", ["key", "token", "user"])
def test_a_core_dump(cloud: ServedCloud, credential: str) -> None:
    (cloud.folder / "core.bin").write_bytes(coredump("kit-7"))
    cloud.run(getattr(cloud, credential), "upload-coredump", "core.bin")
    (trace,) = cloud.data("traces")
    assert trace["device"]["device_serial"] == "kit-7"
    assert trace["reason"] == "Hard Fault"


@pytest.mark.contract("O4.1", "O4.2", "O5.3")
@pytest.mark.parametrize("credential", ["token", "user"])
def test_symbols_are_uploaded_once(cloud: ServedCloud, credential: str) -> None:
    (cloud.folder / "app.elf").write_bytes(small_elf())
    with tarfile.open(cloud.folder / "symbols.tar", "w") as archive:
        archive.add(cloud.folder / "app.elf", "app.elf")
    for _ in range(2):
        cloud.run(getattr(cloud, credential), "upload-elf-symbols", "--archive", "symbols.tar")
    (stored,) = cloud.data("files?kind=SYMBOL_FILE")
    assert stored["details"]["gnu_build_id"] == BUILD_ID.hex()
    assert stored["name"] == "app.elf"


def test_symbols_of_a_software_version(cloud: ServedCloud) -> None:
    (cloud.folder / "app.elf").write_bytes(small_elf())
    cloud.run(cloud.token, "upload-mcu-symbols", "--software-type", "modem-app",
              "--software-version", "1.2.3", "app.elf")  # fmt: skip
    (stored,) = cloud.data("files")
    assert stored["details"]["software_version"]["version"] == "1.2.3"


@pytest.mark.contract("O1.2", "O5.4")
def test_a_release_is_uploaded_deployed_and_withdrawn(cloud: ServedCloud) -> None:
    image = bytes(range(256)) * 40_000  # more than one part
    (cloud.folder / "image.bin").write_bytes(image)
    cloud.run(cloud.token, "upload-ota-payload", "--hardware-version", "nrf9161dk",
              "--software-type", "modem-app", "--software-version", "1.2.3",
              "--notes", "calmer", "--revision", "abc", "image.bin")  # fmt: skip
    release = cloud.data("releases/1.2.3")
    assert (release["notes"], release["revision"]) == ("calmer", "abc")
    (artifact,) = release["artifacts"]
    assert httpx.get(artifact["url"], trust_env=False).content == image
    deployment = ["deploy-release", "--release-version", "1.2.3", "--cohort", "default"]
    said = cloud.run(cloud.token, *deployment)
    assert "/software/modem-app/versions/1.2.3" in said  # it asked whether there is this version
    query = {
        "device_serial": "kit-1", "hardware_version": "nrf9161dk", "software_type": "modem-app",
    }  # fmt: skip
    headers = {"Memfault-Project-Key": cloud.ready["credentials"]["project_key"]}

    def latest() -> httpx.Response:
        url = cloud.url + "/api/v0/releases/latest"
        return httpx.get(url, params=query, headers=headers, trust_env=False)

    assert latest().json()["version"] == "1.2.3"
    cloud.run(cloud.token, *deployment, "--deactivate")
    assert latest().status_code == 204


@pytest.mark.contract("O1.4")
async def test_what_is_pushed_goes_to_the_host_that_is_for_it(tmp_path: Path) -> None:
    """Without --url it has a host for each kind; here none of them takes what is another's."""
    async with internet(tmp_path, strict=True) as (standin, environment):
        known = standin.credentials
        place = ("--org", standin.organization, "--project", standin.project)
        token = ("--org-token", known["organization_auth_token"], *place)
        software = ("--software-type", "app", "--software-version", "1.2.3")
        (tmp_path / "app.elf").write_bytes(small_elf())
        (tmp_path / "app.bin").write_bytes(b"image")
        for command in (
            (
                "--project-key",
                known["project_key"],
                "post-chunk",
                "--encoding",
                "hex",
                EXAMPLE_SINGLE.hex(),
            ),
            (*token, "upload-mcu-symbols", *software, "app.elf"),
            (*token, "upload-ota-payload", "--hardware-version", "dk", *software, "app.bin"),
        ):
            code, said = await run(environment, tmp_path, "memfault", *command)
            assert code == 0, said
        header = standin.bearer("organization_auth_token")
        base = f"{standin.urls['api']}/api/v0/organizations/{place[1]}/projects/{place[3]}"
        for kind in ("events", "files", "releases/1.2.3"):
            answer = await standin.client.get(f"{base}/{kind}", headers=header)
            assert answer.json()["data"], answer.text


def test_the_other_files_of_a_device(cloud: ServedCloud) -> None:
    identity = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk",
                "--software-type", "modem-app", "--software-version", "1.2.3"]  # fmt: skip
    (cloud.folder / "scan.json").write_text("{}")
    cloud.run(cloud.key, "upload-custom-data-recording", *identity, "--reason", "scan",
              "--mimetype", "application/json", "--duration-secs", "3", "scan.json")  # fmt: skip
    (cloud.folder / "parts.json").write_text("{}")
    cloud.run(cloud.token, "upload-software-version-sbom", "--software-type", "modem-app",
              "--software-version", "1.2.3", "parts.json")  # fmt: skip
    assert [stored["kind"] for stored in cloud.data("files?sort=id")] == [
        "CUSTOM_DATA_RECORDING",
        "SBOM",
    ]


@pytest.mark.contract("O5.4", "C6")
def test_a_release_that_is_deployed_is_installed_on_a_kit(
    cloud: ServedCloud, serve: Callable[..., ServedKit], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"hardware_version": "nrf9151dk", "software_type": "main"}
    config = cloud.folder / "config.toml"
    config.write_text(
        '[profiles.desk]\nbase = "standin"\n'
        f'[profiles.desk.hosts]\ndevice_cloud = "{cloud.url}"\napi = "{cloud.url}"\n'
        '[profiles.desk.account]\nproject_key_header = "Memfault-Project-Key"\n'
        "[profiles.desk.kit]\nsettle_s = 0\n"
        + "".join(f'{name} = "{value}"\n' for name, value in names.items())
        + '[profiles.desk.fota]\nsource = "releases"\nmodem_source = "none"\n'
    )
    monkeypatch.setenv("CELLAGENT_CONFIG", str(config))
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", cloud.ready["credentials"]["project_key"])
    kit = serve("--dialect", "serial-modem")

    def pull(*options: str) -> tuple[int, dict[str, Any]]:
        command = ("fota", "pull", *options, "--port", kit.port, "--profile", "desk", "--json")
        done = subprocess.run(
            [sys.executable, "-m", "agent", *command], capture_output=True, text=True, check=False
        )
        return done.returncode, json.loads(done.stdout)

    def deploy(version: str, image: Path, cohort: str = "default") -> None:
        cloud.run(cloud.token, "upload-ota-payload", "--software-version", version,
                  "--hardware-version", names["hardware_version"],
                  "--software-type", names["software_type"], str(image))  # fmt: skip
        cloud.run(cloud.token, "deploy-release", "--release-version", version, "--cohort", cohort)

    deploy("2.0.1", signed_image(cloud.folder, "2.0.1"))
    code, result = pull()
    assert (code, result["status"]) == (0, "SUCCEEDED"), result
    assert "v2.0.1 runs" in result["detail"]
    assert pull() == (0, {"job": None})
    deploy("2.0.2", signed_image(cloud.folder, "2.9.9"))  # the file is another version's
    code, result = pull()
    assert (code, result["status"]) == (4, "REJECTED"), result
    code, left = pull()
    assert (code, left["error"]["kind"]) == (4, "fota-release")
    assert "release 2.0.2 was tried at" in left["error"]["message"]
    assert left["error"]["try"].startswith("`cellagent fota pull --again")
    code, result = pull("--again")
    assert (code, result["status"]) == (4, "REJECTED"), result
