from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import msgspec
import pytest

from agent.config import Profile
from agent.config.parse import profile_from
from agent.config.profile import FotaSettings, HostSettings, KitSettings
from agent.errors import ConfigError
from agent.fota.installers.base import Package
from agent.fota.jobs import FirmwareType, Job
from agent.fota.reporter import UpdateObserver
from agent.fota.verification import ProofLevel
from agent.wiring import update_runner
from agent.wiring.update_runner import (
    allowed_hosts_of,
    device_id_of,
    installer_of,
    needs_modem,
    network_of,
    trust_of,
)
from at.ports import usb
from at.ports.usb import UsbPort

DIGEST = "ab" * 32


def profile(port: str = "", device_id: str = "", mcuboot_port: str = "", **fota: object) -> Profile:
    kit = KitSettings(port=port, device_id=device_id, mcuboot_port=mcuboot_port)
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
    if name == "mcuboot":
        pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")
    assert installer_of(profile(**fota), None, UpdateObserver()).name == name


@pytest.mark.parametrize(
    ("fota", "named"),
    [
        ({}, "needs the kit's port"),
        # Where it was named, or the kit that it was set for is not the one on --port.
        ({"installer": "mcuboot"}, "^no mcuboot_port is set for this kit, and MCUb"),
    ],
)
def test_an_installer_without_its_port_is_a_configuration_error(
    fota: dict[str, object], named: str
):
    with pytest.raises(ConfigError, match=named):
        installer_of(profile(**fota), None, UpdateObserver())


@pytest.mark.parametrize(
    ("port", "in_a_table", "is_taken"),
    [
        ("/dev/ttyACM0", True, True),
        ("/dev/ttyACM2", True, False),
        ("/dev/ttyACM9", True, False),
        ("/dev/ttyACM1", True, True),
        ("/dev/ttyACM0", False, True),
        ("/dev/ttyACM2", False, False),
        ("/dev/ttyACM9", False, True),
    ],
)
def test_of_several_kits_only_that_which_has_the_port_is_updated_by_mcuboot(
    port: str, in_a_table: bool, is_taken: bool, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")
    kits = {f"/dev/ttyACM{number}": UsbPort("", serial=str(number // 2)) for number in range(4)}
    for module in (usb, update_runner):
        monkeypatch.setattr(module, "usb_kit_at", lambda name, *_: kits.get(name))
    left = KitSettings(port="/dev/ttyACM0", mcuboot_port="/dev/ttyACM1")
    two = {"left": left, "right": msgspec.structs.replace(left, port="/dev/ttyACM2")}
    one = msgspec.structs.replace(
        profile(port, mcuboot_port="/dev/ttyACM1"), kits=two if in_a_table else {}
    )
    with contextlib.nullcontext() if is_taken else pytest.raises(ConfigError, match="in its place"):
        assert installer_of(one, None, UpdateObserver()).port == "/dev/ttyACM1"


def test_each_of_several_kits_is_updated_by_its_own_mcuboot_port():
    pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")
    table = {"left": ("/dev/at-1", "/dev/smp-1"), "right": ("/dev/at-2", "/dev/smp-2")}
    kits = {name: {"port": at, "mcuboot_port": smp} for name, (at, smp) in table.items()}
    several = profile_from({"kits": kits}, "lab")
    for name, (_, smp) in table.items():
        chosen = msgspec.structs.replace(several, kit=several.kits[name])
        assert installer_of(chosen, None, UpdateObserver()).port == smp


def test_a_kit_that_is_not_in_the_table_is_not_updated_by_the_port_of_one_that_is():
    pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")
    kits = {"left": {"port": "/dev/at-1"}, "right": {"port": "/dev/at-2", "mcuboot_port": "/dev/x"}}
    several = profile_from({"kit": {"mcuboot_port": "/dev/smp"}, "kits": kits}, "lab")
    third = msgspec.structs.replace(several.kit, port="/dev/at-3")
    of_left, of_third = (
        msgspec.structs.replace(several, kit=kit) for kit in (several.kits["left"], third)
    )
    assert installer_of(of_left, None, UpdateObserver()).port == "/dev/smp"
    with pytest.raises(ConfigError, match="in its place"):
        installer_of(of_third, None, UpdateObserver())


async def test_a_program_is_told_for_which_kit_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CELLAGENT_PORT", "/dev/that-of-another-kit")
    code = "import os; print('version:', os.environ['CELLAGENT_PORT'])"
    of_kit = profile("serial:17", command=(sys.executable, "-c", code, "{image}"))
    image = tmp_path / "image.bin"
    image.write_bytes(b"abcd")
    package = Package(Job("j", FirmwareType.APP, "h", ("p",), 4, "1.0.0"), (image,), "1.0.0")
    installer = installer_of(of_kit, None, UpdateObserver())
    assert await installer.install(package, lambda *_: None) == "serial:17"


@pytest.mark.parametrize(
    ("chosen", "needed"),
    [
        (profile(), True),
        (profile(mcuboot_port="/dev/x"), True),
        (profile(mcuboot_port="/dev/x", device_id="kit-1"), False),
        (profile(mcuboot_port="/dev/x", device_id="kit-1", port="/dev/y"), True),
        (profile(device_id="d", mcuboot_port="/dev/x", source="kit"), True),
        (profile(device_id="d", mcuboot_port="/dev/x", modem_source="kit"), True),
    ],
)
def test_the_at_port_is_needed_for_id_versions_or_installer(chosen: Profile, needed: bool):
    assert needs_modem(chosen) is needed


def test_digests_are_taken_in_any_case():
    assert trust_of(profile(digests=(DIGEST.upper(),))).digests == (DIGEST,)


@pytest.mark.parametrize(
    ("word", "level"), [("", None), *((level.word, level) for level in ProofLevel)]
)
def test_the_profile_names_the_level_that_an_image_must_have(word: str, level: ProofLevel | None):
    assert trust_of(profile(require=word)).require is level


def test_a_proxy_fetches_images_only_where_it_is_trusted():
    hosts = HostSettings(device_cloud="http://127.0.0.1:1", proxy="http://proxy.example:3128")
    for trusted, proxy in ((False, ""), (True, hosts.proxy)):
        chosen = Profile(hosts=hosts, fota=FotaSettings(trust_proxy=trusted))
        assert network_of(chosen).proxy == proxy
        assert ("fota.trust_proxy" in network_of(chosen).another_way) is not trusted
    assert not network_of(profile()).another_way
    assert allowed_hosts_of(chosen).stand_in
    assert not allowed_hosts_of(profile()).stand_in


async def test_without_modem_and_without_an_id_the_key_to_set_is_named():
    with pytest.raises(ConfigError, match=r"kit\.device_id"):
        await device_id_of(None)
