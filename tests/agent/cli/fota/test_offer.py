"""An image is offered to devices at the stand-in, by the command as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.demo.firmware import mcuboot_image
from tests.support.commands.command_line import cellagent
from tests.support.fota.signed_images import public_pem, signed_image, signing_key

KITS = ("bench-kit-1", "bench-kit-2")


@pytest.fixture
async def kits(standin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two onboarded devices with the tag bench, and a profile whose kit is the first of them."""
    file = tmp_path / "config.toml"
    file.write_text(
        '[profiles.bench]\nbase = "standin"\n'
        f'[profiles.bench.hosts]\ndevice_cloud = "{standin.urls["device_cloud"]}"\n'
        f'[profiles.bench.kit]\ndevice_id = "{KITS[0]}"\n'
    )
    monkeypatch.setenv("CELLAGENT_CONFIG", str(file))
    monkeypatch.setenv("CELLAGENT_PROFILE", "bench")
    monkeypatch.setenv("CELLAGENT_API_KEY", standin.credentials["api_key"])
    (tmp_path / "public.pem").write_bytes(public_pem(signing_key("ecdsa")))
    for kit in KITS:
        words = ("device", "onboard", kit, str(tmp_path / "public.pem"), "--tag", "bench")
        done = await cellagent(*words)
        assert done.code == 0, done.err
    return standin


async def offered_to(standin: Any, kit: str) -> Any:
    """Return the job that waits for a device, None where there is none."""
    path = f"/v1/fota-job-executions/{kit}/current"
    found = await standin.client.get(path, headers=standin.bearer("api_key"))
    return found.json() if found.status_code == 200 else None


@pytest.mark.parametrize(
    ("whom", "expected"),
    [
        ((), KITS[:1]),
        (("--device", KITS[1]), KITS[1:]),
        (("--device", KITS[0], "--device", KITS[1]), KITS),
        (("--tag", "bench"), KITS),
    ],
    ids=["the kit in use", "another", "both by name", "both by tag"],
)
async def test_an_image_is_offered_to_whom_the_command_names(
    kits: Any, tmp_path: Path, whom: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(mcuboot_image((2, 0, 1), 5000))
    done = await cellagent("fota", "offer", str(image), *whom, "--json")
    assert done.code == 0, done.err
    (told,) = done.lines
    jobs = {kit: await offered_to(kits, kit) for kit in KITS}
    assert {kit for kit, job in jobs.items() if job is not None} == set(expected)
    for kit in expected:
        firmware = jobs[kit]["jobDocument"]
        assert jobs[kit]["jobId"] == told["job"]
        assert (firmware["version"], firmware["bundleId"]) == ("2.0.1", told["bundle"])
        assert firmware["fileSize"] == image.stat().st_size


@pytest.mark.usefixtures("kits")
@pytest.mark.parametrize(
    ("whom", "says"),
    [
        ((), "to carry it out: `cellagent fota pull`"),
        (("--tag", "bench"), "to carry it out, where such a kit is: `cellagent fota pull`"),
    ],
)
async def test_what_carries_a_job_out_is_told_for_the_kit_in_use_and_for_others(
    tmp_path: Path, whom: tuple[str, ...], says: str
) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(mcuboot_image((2, 0, 1), 5000))
    done = await cellagent("fota", "offer", str(image), *whom)
    assert says in done.out, done.out


async def test_where_the_answer_to_a_job_is_lost_it_says_that_the_job_may_be_there(
    kits: Any, tmp_path: Path
) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(mcuboot_image((2, 0, 1), 5000))
    await kits.control({"faults": ["connection-reset=after@POST /v1/fota-jobs"]})
    done = await cellagent("fota", "offer", str(image))
    offered = await offered_to(kits, KITS[0])
    says = "`cellagent fota check` shows what waits for a kit"
    assert (done.code, offered is not None, says in done.err) == (6, True, True), done.err


@pytest.mark.parametrize("whom", [("--device", "new-kit"), ("--tag", "bench", "--tag", "bensch")])
async def test_for_a_device_that_is_not_in_service_it_says_where_those_are_that_are(
    kits: Any, tmp_path: Path, whom: tuple[str, ...]
) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(mcuboot_image((2, 0, 1), 5000))
    done = await cellagent("fota", "offer", str(image), *whom)
    assert (done.code, "try: `cellagent device list" in done.err) == (1, True), done.err
    left = await kits.client.get("/v1/firmwares", headers=kits.bearer("api_key"))
    assert not [one for one in left.json()["items"] if one["version"] == "2.0.1"]


@pytest.mark.usefixtures("kits")
@pytest.mark.parametrize("begins", [b"PK\x03\x04", b"\x7fELF\x01", b":10C0000000100020"])
async def test_what_a_build_leaves_beside_the_image_is_not_offered(
    tmp_path: Path, begins: bytes
) -> None:
    file = tmp_path / "dfu_application.zip"
    file.write_bytes(begins + bytes(5000))
    done = await cellagent("fota", "offer", str(file), "--version", "2.0.1")
    assert (done.code, "offer the .bin that imgtool signed" in done.err) == (2, True), done.err


async def test_the_version_of_a_signed_image_is_its_own_and_may_be_told(
    kits: Any, tmp_path: Path
) -> None:
    plain = signed_image(tmp_path, "1.4.2+7")
    encrypted_to = signing_key("ecdsa", 1)
    hidden = signed_image(tmp_path, "1.4.3", encrypted_to=encrypted_to, name="encrypted.bin")
    for image, words, version in (
        (plain, (), "1.4.2-7"),
        (plain, ("--version", "v9"), "v9"),
        (hidden, (), "1.4.3"),
    ):
        done = await cellagent("fota", "offer", str(image), *words, "--json")
        assert (done.code, done.lines[0]["version"]) == (0, version), done.err


async def test_of_what_every_kit_will_refuse_it_says_so_when_it_is_offered(
    kits: Any, tmp_path: Path
) -> None:
    unsigned = tmp_path / "zephyr.bin"
    unsigned.write_bytes(b"x" * 100)
    done = await cellagent("fota", "offer", str(unsigned), "--version", "2.0.1", "--json")
    assert done.code == 0
    assert f"{unsigned} is no MCUboot image: `fota pull` and `run` will refuse it" in done.err


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b"x" * 100, (), "so its version is not known"),
        (b"x" * 100, ("--version", "1 2"), "is no version"),
        (mcuboot_image((1, 0, 0), 500)[:-9], (), "ends within"),
        (mcuboot_image((1, 0, 0), 500).replace(b"demo", b"dem0"), (), "its own hash does not"),
        (mcuboot_image((1, 0, 0), 500) + bytes(9), (), "9 bytes too many"),
        (b"x", ("--device", "a", "--tag", "b"), "not for both"),
    ],
    ids=[
        "no version",
        "a bad version",
        "a torn image",
        "a spoilt image",
        "a padded image",
        "devices and tags",
    ],
)
async def test_what_cannot_be_offered_is_told_before_anything_is_sent(
    kits: Any, tmp_path: Path, content: bytes, words: tuple[str, ...], message: str
) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(content)
    done = await cellagent("fota", "offer", str(image), *words, "--json")
    assert done.code == 2
    assert message in json.loads(done.out)["error"]["message"]
    bundles = await kits.client.get("/v1/firmwares", headers=kits.bearer("api_key"))
    assert bundles.json()["items"] == []
