from __future__ import annotations

import codecs
from pathlib import Path
from unittest.mock import Mock

import pytest

from agent.config import load
from agent.config.profile import FotaSettings, KitSettings
from agent.config.secrets import Origin, read_secrets_file
from agent.config.write import set_value
from agent.errors import ConfigError
from agent.files.paths import secrets_file
from agent.files.private_files import MAX_BYTES


def test_without_any_file_the_neutral_profile_is_used(tmp_path: Path) -> None:
    configuration = load(environ={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)})
    assert configuration.name == "custom"
    assert configuration.profile.hosts.api == ""
    assert {origin.kind for origin in configuration.origins.values()} == {"default"}


def test_a_home_that_is_no_folder_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the HOME of many services and jobs of a CI: /dev/null."""
    (tmp_path / "home").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "home"))
    assert load(environ={}).name == "custom"


def test_a_named_file_that_is_not_there_is_an_error_that_says_how_to_make_it(file: Path) -> None:
    with pytest.raises(ConfigError, match=f"CELLAGENT_CONFIG names {file}, which does") as caught:
        load()
    assert "`cellagent config set KEY VALUE`" in caught.value.hint


@pytest.mark.contract("O1.4", "O4.3")
def test_the_public_profile_is_complete_but_for_what_is_the_users_own(file: Path) -> None:
    file.touch()
    configuration = load("public")
    hosts = configuration.profile.hosts
    assert (hosts.device_cloud, hosts.api, hosts.chunks, hosts.ingress, hosts.files) == (
        "https://api.nrfcloud.com",
        "https://api.memfault.com",
        "https://chunks.memfault.com",
        "https://ingress.memfault.com",
        "https://files.memfault.com",
    )
    assert configuration.profile.account.project_key_header == "Memfault-Project-Key"
    assert configuration.profile.fota.hosts == ("firmware.nrfcloud.com", "bundles.nrfcloud.com")
    assert configuration.origins["hosts.api"] == Origin("built-in", "profile public")


def test_a_flag_wins_over_the_environment_and_that_over_the_file_and_that_over_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()
    assert load().profile.kit.port == ""
    file.write_text('profile = "lab"\n[profiles.lab.kit]\nport = "/dev/from-file"\nbaud = 9600\n')
    from_file = load()
    assert from_file.profile.kit.port == "/dev/from-file"
    assert from_file.origins["kit.port"] == Origin("file", f"{file}: profiles.lab.kit.port")
    monkeypatch.setenv("CELLAGENT_PORT", "from-environment")
    assert load().profile.kit.port == "from-environment"
    assert load().origins["kit.port"] == Origin("environment", "CELLAGENT_PORT")
    from_flag = load(port="from-flag")
    assert from_flag.profile.kit.port == "from-flag"
    assert from_flag.origins["kit.port"] == Origin("flag", "--port")
    assert from_flag.origins["kit.baud"].kind == "file"
    assert from_flag.origins["kit.dialect"].kind == "default"


@pytest.mark.parametrize("table", ["", '[profiles.lab.kits.left]\nconsole_port = "/dev/own-2"\n'])
@pytest.mark.parametrize("named", ["/dev/other", "/dev/own"])
@pytest.mark.parametrize("by", ["flag", "environment"])
def test_what_was_set_for_the_kit_on_its_port_is_not_said_of_a_kit_on_another(
    file: Path, monkeypatch: pytest.MonkeyPatch, by: str, named: str, table: str
) -> None:
    file.write_text(
        'profile = "lab"\n[profiles.lab.kit]\nport = "/dev/own"\nbaud = 9600\nslot = "A1"\n'
        'device_id = "of-own"\nconsole_port = "/dev/own-1"\ncompanion_port = "/dev/own-wifi"\n'
        'hardware_version = "nrf9161dk"\nsoftware_type = "main"\nsoftware_version = "1"\n'
        'mcuboot_port = "/dev/own-1"\ndevice_key_file = "own.pem"\n' + table
    )
    of_own = load().profile
    monkeypatch.setenv("CELLAGENT_PORT", named if by == "environment" else "/dev/third")
    found = load(port=named if by == "flag" else None)
    assert found.profile.kit.port == named
    if named == "/dev/own":
        assert found.profile == of_own
        return
    kits = (found.profile.kit, *found.profile.kits.values())
    assert {*kits} == {KitSettings(port=named, baud=9600)}
    assert found.profile.fota == FotaSettings(installer="mcuboot"), "it is told what is not set"
    assert found.origins["kit.device_id"].kind == "default"


def test_what_each_kit_has_of_its_own_now_is_taken_by_its_older_name_too(file: Path) -> None:
    file.write_text(
        'profile = "lab"\n[profiles.lab.fota]\nmcuboot_port = "/dev/smp"\n'
        '[profiles.lab.credentials]\ndevice_key_file = "key.pem"\n'
        '[profiles.lab.kits.left]\nport = "/dev/left"\n'
        '[profiles.lab.kits.right]\nport = "/dev/right"\nmcuboot_port = "/dev/right-1"\n'
    )
    found = load()
    kits = {"kit": found.profile.kit, **found.profile.kits}
    assert {name: (kit.mcuboot_port, kit.device_key_file) for name, kit in kits.items()} == {
        "kit": ("/dev/smp", "key.pem"),
        "left": ("/dev/smp", "key.pem"),
        "right": ("/dev/right-1", "key.pem"),
    }
    assert found.origins["kit.mcuboot_port"].where.endswith("profiles.lab.fota.mcuboot_port")


def test_the_profile_is_chosen_by_flag_then_environment_then_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('profile = "a"\n[profiles.a]\n[profiles.b]\n[profiles.c]\n')
    assert (load().name, load().name_origin.kind) == ("a", "file")
    monkeypatch.setenv("CELLAGENT_PROFILE", "b")
    assert (load().name, load().name_origin.kind) == ("b", "environment")
    assert (load("c").name, load("c").name_origin.kind) == ("c", "flag")


def test_a_profile_may_start_from_a_built_in_one(file: Path) -> None:
    file.write_text(
        '[profiles.mine]\nbase = "public"\n'
        '[profiles.mine.hosts]\nchunks = "https://own.example"\nca_file = "/ca"\n'
    )
    hosts = load("mine").profile.hosts
    assert (hosts.api, hosts.ca_file) == ("https://api.memfault.com", "/ca")
    assert hosts.chunks == "https://own.example", "what is set wins over what it starts from"


def test_kits_start_from_what_they_have_in_common(file: Path) -> None:
    file.write_text(
        "[profiles.x.kit]\nbaud = 1000000\n"
        '[profiles.x.kits.left]\nport = "serial:1"\n[profiles.x.kits.right]\nbaud = 9600\n'
    )
    kits = load("x").profile.kits
    assert (kits["left"].baud, kits["left"].port, kits["right"].baud) == (1000000, "serial:1", 9600)


@pytest.mark.parametrize(
    ("port", "taken"), [("", True), ('port = "serial:1"\n', True), ('port = "serial:2"\n', False)]
)
def test_what_was_set_for_the_kit_on_its_port_is_not_said_of_a_kit_of_the_table_on_another(
    file: Path, port: str, taken: bool
) -> None:
    file.write_text(
        '[profiles.x.kit]\nport = "serial:1"\nbaud = 9600\ndevice_id = "of-own"\n'
        f'[profiles.x.fota]\nmcuboot_port = "serial:1/1"\n[profiles.x.kits.left]\n{port}'
    )
    of_one_kit = ("of-own", "serial:1/1") if taken else ("", "")
    for found in (load("x"), load("x", port="left")):
        left = found.profile.kits["left"]
        assert (left.baud, (left.device_id, left.mcuboot_port)) == (9600, of_one_kit)
        assert found.profile.fota.installer == "auto", "which takes what the kit has"


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"\xff\xfe\x00", "not TOML"), (b"#" * (MAX_BYTES + 1), "larger than")],
    ids=["no text", "too large"],
)
def test_a_file_that_is_no_configuration_is_an_error(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        load()


def test_a_file_that_cannot_be_read_is_an_error(file: Path) -> None:
    (file / "config.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot read"):
        load()


def test_a_byte_order_mark_as_editors_on_windows_write_it_is_no_part_of_the_file(
    file: Path,
) -> None:
    file.write_bytes(codecs.BOM_UTF8 + b'profile = "a"\r\n[profiles.a.kit]\r\nport = "COM3"\r\n')
    assert load().profile.kit.port == "COM3"
    set_value("kit.port", "COM4", profile="a")
    assert load().profile.kit.port == "COM4"
    secrets_file(file).write_bytes(codecs.BOM_UTF8 + b'[a]\r\napi_key = "key-of-the-test"\r\n')
    secrets_file(file).chmod(0o600)
    assert read_secrets_file(secrets_file(file)) == {"a": {"api_key": "key-of-the-test"}}


def test_an_unknown_profile_is_an_error_with_the_nearest_name(file: Path) -> None:
    file.touch()
    with pytest.raises(ConfigError, match="no profile 'pubilc'") as caught:
        load("pubilc")
    assert caught.value.hint == "did you mean 'public'?"


def test_the_ports_of_this_system_are_listed_once_for_all_kits(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kits = "".join(f'[profiles.x.kits.k{n}]\nport = "serial:{n}"\n' for n in range(64))
    file.write_text(f'[profiles.x.kit]\nport = "serial:64"\n{kits}')
    listing = Mock(return_value=[])
    monkeypatch.setattr("serial.tools.list_ports.comports", listing)
    assert load("x", port="/dev/other").profile.kit.port == "/dev/other"
    listing.assert_called_once_with()


def test_a_port_that_is_named_elsewhere_is_that_of_the_kits_that_name_none(file: Path) -> None:
    file.write_text(
        'profile = "lab"\n[profiles.lab.kit]\nport = "COM1"\n'
        '[profiles.lab.kits.left]\n[profiles.lab.kits.right]\nport = "COM2"\n'
    )
    kits = load(port="COM3").profile.kits
    assert (kits["left"].port, kits["right"].port) == ("COM3", "COM2")


@pytest.mark.parametrize("port", [None, "virtual:"])
def test_a_kit_on_the_port_of_kit_under_another_of_its_names_has_what_was_set_for_it(
    file: Path, tmp_path: Path, port: str | None
) -> None:
    (tmp_path / "ttyACM0").touch()
    (tmp_path / "by-id").symlink_to("ttyACM0")
    file.write_text(
        f'[profiles.x.kit]\nport = "{tmp_path}/by-id"\ndevice_id = "mine"\n'
        f'[profiles.x.kits.left]\nport = "{tmp_path}/ttyACM0"\n'
        f'[profiles.x.kits.right]\nport = "{tmp_path}/ttyACM1"\n'
    )
    kits = load("x", port=port).profile.kits
    # With --port of another kit, `left` is that one in its place.
    left = (f"{tmp_path}/ttyACM0", "mine") if port is None else (port, "")
    assert (kits["left"].port, kits["left"].device_id) == left
    assert (kits["right"].port, kits["right"].device_id) == (f"{tmp_path}/ttyACM1", "")
