"""The rest of memfault-cli's commands, released and unmodified (clause O5.6)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.cloud.served_cloud import MEMFAULT, ServedCloud
from tests.support.dumps.elf_files import BUILD_ID, small_elf
from tests.support.dumps.mar_files import elf_core, mar
from tests.support.keys.key_files import certificate

pytestmark = [
    pytest.mark.peer,
    pytest.mark.contract("O5.6"),
    pytest.mark.skipif(not MEMFAULT.exists(), reason="no .peers here: ./scripts/peers makes it"),
]

IDENTITY = (
    *("--device-serial", "kit-1", "--hardware-version", "dk"),
    *("--software-type", "app", "--software-version", "1.2.3"),
)
PAYLOAD = ("upload-ota-payload", "--hardware-version", "dk", "--software-type")


def latest(cloud: ServedCloud, **query: str) -> dict[str, Any] | None:
    """Ask as a device for what it is to run next."""
    answer = httpx.get(
        cloud.url + "/api/v0/releases/latest",
        params={"device_serial": "kit-1", "hardware_version": "dk", "software_type": "app"} | query,
        headers={"Memfault-Project-Key": cloud.ready["credentials"]["project_key"]},
        trust_env=False,
    )
    assert answer.status_code in {200, 204}, answer.text
    return answer.json() if answer.status_code == 200 else None


@pytest.mark.parametrize("credential", ["key", "token", "user"])
def test_a_bug_report_and_a_linux_core(cloud: ServedCloud, credential: str) -> None:
    with zipfile.ZipFile(cloud.folder / "bug.zip", "w") as archive:
        archive.writestr("bugreport.txt", "all of it")
    (cloud.folder / "core.elf").write_bytes(elf_core())
    cloud.run(getattr(cloud, credential), "upload-bugreport", "bug.zip")
    cloud.run(getattr(cloud, credential), "upload-elf-coredump", *IDENTITY, "core.elf")
    kinds = {stored["kind"] for stored in cloud.data("files")}
    assert kinds == {"ANDROID_BUG_REPORT", "ELF_COREDUMP"}
    (trace,) = cloud.data("traces")
    assert (trace["source"], trace["software_version"]) == ("coredump", "1.2.3")


@pytest.mark.parametrize("credential", ["key", "token", "user"])
def test_an_archive_is_unpacked(cloud: ServedCloud, credential: str) -> None:
    (cloud.folder / "one.mar").write_bytes(mar())
    cloud.run(getattr(cloud, credential), "upload-mar", *IDENTITY, "one.mar")
    assert {event["type"] for event in cloud.data("events")} == {"heartbeat", "trace", "log"}
    assert [dump["device"]["device_serial"] for dump in cloud.data("coredumps")] == ["linux-1"]


@pytest.mark.parametrize("credential", ["key", "token", "user"])
def test_a_file_of_a_radio_chip(cloud: ServedCloud, credential: str) -> None:
    (cloud.folder / "radio.xed").write_bytes(b"xed")
    cloud.run(
        getattr(cloud, credential), "upload-xed", "--hardware-version", "dk",
        "--device-serial", "kit-1", "--attribute", "lot", "7", "radio.xed",
    )  # fmt: skip
    (stored,) = cloud.data("files?kind=QCOMM_X")
    assert stored["details"]["trace_attributes"] == [{"string_key": "lot", "value": 7}]


def test_symbols_of_android(cloud: ServedCloud) -> None:
    folder = cloud.folder / "symbols"
    folder.mkdir()
    (folder / "lib.so").write_bytes(small_elf())
    (cloud.folder / "mapping.txt").write_text("a.B -> c:")
    cloud.run(cloud.token, "upload-aosp-symbols", "symbols")
    cloud.run(cloud.token, "upload-symbols", "symbols/lib.so")  # there already
    cloud.run(
        cloud.token, "upload-android-app-symbols", "--build-variant", "release",
        "--package", "invalid.standin", "--version-name", "1.0", "--version-code", "7",
        "--mapping-txt", "mapping.txt", "symbols",
    )  # fmt: skip
    shared, mapping = cloud.data("files?sort=id")
    assert shared["details"]["gnu_build_id"] == BUILD_ID.hex()
    assert mapping["details"]["software_version"]["version"] == "1.0:7"


def test_a_step_between_two_releases_goes_to_those_that_run_the_first(cloud: ServedCloud) -> None:
    for name in ("whole.bin", "step.bin"):
        (cloud.folder / name).write_bytes(name.encode())
    cloud.run(cloud.token, *PAYLOAD, "app", "--software-version", "2.0.0", "whole.bin")
    cloud.run(
        cloud.token, *PAYLOAD, "app", "--delta-from", "1.0.0", "--delta-to", "2.0.0", "step.bin"
    )
    step = ("deploy-release", "--delta-from", "1.0.0", "--delta-to", "2.0.0", "--cohort", "default")
    whole = ("deploy-release", "--release-version", "2.0.0", "--cohort", "default")
    cloud.run(cloud.token, *step)
    cloud.run(cloud.token, *whole)
    offered = latest(cloud, current_version="1.0.0")
    assert offered is not None
    assert (offered["version"], offered["min_version"]) == ("2.0.0", "1.0.0")
    assert httpx.get(offered["artifacts"][0]["url"], trust_env=False).content == b"step.bin"
    other = latest(cloud, current_version="1.1.0")
    assert other is not None
    assert other["artifacts"][0]["filename"] == "whole.bin"
    cloud.run(cloud.token, *whole, "--deactivate")
    assert latest(cloud, current_version="1.1.0") is None
    cloud.run(cloud.token, *step, "--deactivate")
    assert latest(cloud, current_version="1.0.0") is None
    said = cloud.run(cloud.token, *step, "--deactivate", exit_code=2)
    assert "Could not find an active deployment" in said


def test_a_release_that_must_not_be_jumped_over_and_words_of_its_own(cloud: ServedCloud) -> None:
    (cloud.folder / "app.bin").write_bytes(b"app")
    payload = (*PAYLOAD, "app", "--software-version")
    cloud.run(cloud.token, *payload, "1.5.0", "--must-pass-through", "app.bin")
    cloud.run(cloud.token, *payload, "2.0.0", "--extra-metadata", "signed=yes", "app.bin")
    for version in ("1.5.0", "2.0.0"):
        cloud.run(
            cloud.token, "deploy-release", "--release-version", version, "--cohort", "default"
        )
    first, then = latest(cloud, current_version="1.0.0"), latest(cloud, current_version="1.5.0")
    assert first is not None
    assert then is not None
    assert [first["version"], then["version"]] == ["1.5.0", "2.0.0"]
    assert then["artifacts"][0]["extra_info"] == {"signed": "yes"}
    assert latest(cloud, current_version="2.0.0") is None


def test_parts_of_a_kit_with_versions_of_their_own(cloud: ServedCloud) -> None:
    (cloud.folder / "modem.bin").write_bytes(b"modem")
    part = (*PAYLOAD, "modem", "--software-version", "2.0.0", "--component-version", "3.1.0")
    cloud.run(cloud.token, *part, "modem.bin")
    cloud.run(cloud.token, *part, "--component-base-version", "3.0.0", "modem.bin")
    artifacts = cloud.data("releases/2.0.0")["artifacts"]
    assert [one.get("component_base_version") for one in artifacts] == [None, "3.0.0"]
    assert {one["component_version"] for one in artifacts} == {"3.1.0"}


def zchunk(folder: Path) -> tuple[str, str]:
    """Write the smallest pair that the tool takes: a lead of 64 bytes, and a file that names it."""
    lead = bytes([0x81, 0x80]) + bytes(range(32))
    (folder / "image.zck").write_bytes(b"\0ZCK1" + lead + b"chunks")
    text = b'software = { version = "1.0.0"; zckfile = "image.zck"; }'
    (folder / "delta.swu").write_bytes(text + b"\0ZHR1" + lead)
    return "delta.swu", "image.zck"


def test_an_image_in_chunks_comes_as_two_files_of_one_release(cloud: ServedCloud) -> None:
    header, image = zchunk(cloud.folder)
    cloud.run(
        cloud.token, "upload-zchunk-ota-payload", "--hardware-version", "dk",
        "--software-type", "app", "--software-version", "1.0.0",
        "--zchunk-header", header, "--zchunk-image", image,
    )  # fmt: skip
    artifacts = cloud.data("releases/1.0.0")["artifacts"]
    assert {one["firmware_type"] for one in artifacts} == {"zchunk_header_swu", "zchunk_image"}


@pytest.mark.contract("O4.2")
def test_devices_are_made_with_an_organization_token(cloud: ServedCloud) -> None:
    cloud.control(settings={"bulk_s": 0})
    proof = certificate(ec.generate_private_key(ec.SECP256R1()))
    rows = ["deviceId,certificate"]
    rows += [f'kit-{number},"{proof}"' for number in (1, 2)]
    rows += ['kit-3,"no certificate"']
    (cloud.folder / "devices.csv").write_text("\n".join(rows) + "\n")
    create = ("device", "create", "--csv", "devices.csv", "--res", "result.csv")
    said = cloud.run(cloud.token, *create, tool="nrfcloud", exit_code=1)
    assert "1 of 3 device(s) failed" in said
    result = (cloud.folder / "result.csv").read_text().split()
    assert result[2:4] == ["kit-1,OK", "kit-2,OK"]
    assert "kit-3,the PEM is malformed" in (cloud.folder / "result.csv").read_text()
    bearer = {"Authorization": f"Bearer {cloud.ready['credentials']['api_key']}"}
    devices = f"{cloud.ready['urls']['device_cloud']}/v1/devices"
    with httpx.Client(headers=bearer, trust_env=False) as client:
        assert client.get(f"{devices}/kit-2").status_code == 200
        assert client.get(f"{devices}/kit-3").status_code == 404
    (cloud.folder / "tokens.csv").write_text("deviceId,attestationToken\nkit-4,abc\n")
    said = cloud.run(
        cloud.token, "device", "create", "--csv", "tokens.csv", tool="nrfcloud", exit_code=1
    )
    assert "kit-4: the attestation token is none of this device" in said
