from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load
from agent.config.parse import key_type
from agent.errors import ConfigError

MISTAKES = [
    ("[profiles.x.hosts]\ndevice_clod = 'https://a.example'", "hosts.device_clod", "device_cloud"),
    ("[profiles.x.host]\napi = 'https://a.example'", "'host'", "hosts"),
    ("[profiles.x]\nprot = 'COM3'", "'prot'", "kit.port"),
    ("[profiles.x.kits.left]\nbuad = 1", "kits.left.buad", "kits.left.baud"),
    ("[profile.x]", "`profile` is not a text", ""),
    ("profils = 3", "'profils'", "profiles"),
    ("[profiles.x.fota]\nrequire = 'intakt'", "fota.require", "'intact'"),
    ("[profiles.x.fota]\ndigests = ['a1']", "fota.digests", "64 hex digits"),
    ("[profiles.x.provisioning]\ntags = ['a|b']", "provisioning.tags", "letters, digits"),
    ("[profiles.x.provisioning]\ntags = ['north door']", "provisioning.tags", "and no blank"),
    (
        "[profiles.x.provisioning]\nlabel_pattern = 'L[0-9'",
        "provisioning.label_pattern: 'L[0-9' is no regular expression",
        "`cellagent config set provisioning.label_pattern",
    ),
    (
        "[profiles.x.provisioning]\nlabel_pattern = 'L{99999999999}'",
        "provisioning.label_pattern: 'L{99999999999}' is no regular expression",
        "",
    ),
    ("[profiles.x.location]\nwifi = 'wpa_supplicant'", "location.wifi", "networkmanager"),
    ("[profiles.x.kit]\nbaud = '9600'", "kit.baud", ""),
    ("[profiles.x.kit]\nbaud = -1", "kit.baud", ""),
    ("[profiles.x.kit]\ndevice_id = 'my:kit'", "kit.device_id", "letters, digits"),
    ("[profiles.x.kits.a]\ndevice_id = 'ü'", "].device_id", "letters, digits"),
    ("[profiles.x.account]\norganization = 'My Org!'", "account.organization", "a slug of letters"),
    ("[profiles.x.account]\nproject = 'a/b'", "account.project", "a slug of letters"),
    ("[profiles.x.hosts]\napi = 'http://far.example'", "hosts.api", "https"),
    ("[profiles.x.hosts]\napi = 'https://me:pw@far.example'", "hosts.api", "secret"),
    (
        "[profiles.x.hosts]\napi = 'https://far.example/api/v0'",
        "hosts.api",
        "did you mean 'https://far.example'?",
    ),
    ("[profiles.x]\nbase = 'pubic'", "base", "public"),
    ("profiles = 3", "not a table", ""),
    ("[profiles]\nx = 3", "not a table", ""),
    ("[profiles.x]\nbase = []", "no built-in profile", ""),
    ("= broken", "not TOML", ""),
    ("[profiles.x]\napi_key = 'canary-value'", "api_key", "`cellagent config set api_key`"),
    ("api_key = 'canary-value'", "api_key", "`cellagent config set api_key`"),
]


@pytest.mark.parametrize(("text", "named", "meant"), MISTAKES, ids=[m[0][-30:] for m in MISTAKES])
def test_a_mistake_in_the_file_is_an_error_with_the_nearest_name(
    file: Path, text: str, named: str, meant: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load("x" if "profile = " not in text and "[profile.x]" not in text else None)
    assert named in str(caught.value)
    assert str(file) in str(caught.value)
    assert meant in caught.value.hint
    assert "canary-value" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("modem_fetches = true", "kit"),
        ("modem_fetches = false", "jobs"),
        ("modem_fetches = true\nmodem_source = 'releases'", "releases"),
    ],
)
def test_the_older_name_of_a_setting_is_read_as_the_one_it_has_now(
    file: Path, text: str, source: str
) -> None:
    file.write_text(f"[profiles.x.fota]\n{text}")
    assert load("x").profile.fota.modem_source == source


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("provisioning.slot.1-1.4", "provisioning.slots.1-1.4"),
        ("slots.1-1.4", "provisioning.slots.1-1.4"),
        ("account.project_path.kits", "account.project_paths.kits"),
        ("provisioning.slot", "provisioning.slots"),
        ("kits.left.mcuboot_prot", "kits.left.mcuboot_port"),
        ("kits.left.bauds", "kits.left.baud"),
        ("kits.left", "kits.left.port"),
    ],
)
def test_a_mistake_in_the_name_of_a_table_is_told_with_the_name_in_it(key: str, meant: str) -> None:
    with pytest.raises(ConfigError, match="there is no key") as caught:
        key_type(key)
    assert caught.value.hint == f"did you mean {meant!r}?"


def test_a_kit_with_a_dot_in_its_name_is_sent_to_the_file_and_not_to_another_kit() -> None:
    with pytest.raises(ConfigError, match=r"there is no key 'kits.1-2.4.port'") as caught:
        key_type("kits.1-2.4.port")
    assert caught.value.hint == (
        "a kit whose name has a dot is set in the file alone: `cellagent config path`"
    )
