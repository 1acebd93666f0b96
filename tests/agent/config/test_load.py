from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load
from agent.config.secrets import Origin
from agent.config.write import set_default_profile, set_value, write_profile
from agent.errors import ConfigError, UsageError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("CELLAGENT_CONFIG", str(path))
    return path


def test_without_any_file_the_neutral_profile_is_used(file: Path) -> None:
    configuration = load()
    assert configuration.name == "custom"
    assert configuration.profile.hosts.api == ""
    assert {origin.kind for origin in configuration.origins.values()} == {"default"}


@pytest.mark.contract("O1.4", "O4.3")
def test_the_public_profile_is_complete_but_for_what_is_the_users_own(file: Path) -> None:
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
    assert load().profile.kit.port == ""
    file.write_text('profile = "lab"\n[profiles.lab.kit]\nport = "from-file"\nbaud = 9600\n')
    from_file = load()
    assert from_file.profile.kit.port == "from-file"
    assert from_file.origins["kit.port"] == Origin("file", f"{file}: profiles.lab.kit.port")
    monkeypatch.setenv("CELLAGENT_PORT", "from-environment")
    assert load().profile.kit.port == "from-environment"
    assert load().origins["kit.port"] == Origin("environment", "CELLAGENT_PORT")
    from_flag = load(port="from-flag")
    assert from_flag.profile.kit.port == "from-flag"
    assert from_flag.origins["kit.port"] == Origin("flag", "--port")
    assert from_flag.origins["kit.baud"].kind == "file"
    assert from_flag.origins["kit.dialect"].kind == "default"


def test_the_profile_is_chosen_by_flag_then_environment_then_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('profile = "a"\n[profiles.a]\n[profiles.b]\n[profiles.c]\n')
    assert (load().name, load().name_origin.kind) == ("a", "file")
    monkeypatch.setenv("CELLAGENT_PROFILE", "b")
    assert (load().name, load().name_origin.kind) == ("b", "environment")
    assert (load("c").name, load("c").name_origin.kind) == ("c", "flag")


def test_a_profile_may_start_from_a_built_in_one(file: Path) -> None:
    file.write_text('[profiles.mine]\nbase = "public"\n[profiles.mine.hosts]\nca_file = "/ca"\n')
    hosts = load("mine").profile.hosts
    assert (hosts.api, hosts.ca_file) == ("https://api.memfault.com", "/ca")


def test_kits_start_from_what_they_have_in_common(file: Path) -> None:
    file.write_text(
        "[profiles.x.kit]\nbaud = 1000000\n"
        '[profiles.x.kits.left]\nport = "serial:1"\n[profiles.x.kits.right]\nbaud = 9600\n'
    )
    kits = load("x").profile.kits
    assert (kits["left"].baud, kits["left"].port, kits["right"].baud) == (1000000, "serial:1", 9600)


MISTAKES = [
    ("[profiles.x.hosts]\ndevice_clod = 'https://a.example'", "hosts.device_clod", "device_cloud"),
    ("[profiles.x.host]\napi = 'https://a.example'", "'host'", "hosts"),
    ("[profiles.x]\nprot = 'COM3'", "'prot'", "kit.port"),
    ("[profiles.x.kits.left]\nbuad = 1", "kits.left.buad", "kits.left.baud"),
    ("[profile.x]", "`profile` is not a text", ""),
    ("profils = 3", "'profils'", "profiles"),
    ("[profiles.x.fota]\nrequire = 'intakt'", "fota.require", "'intact'"),
    ("[profiles.x.kit]\nbaud = '9600'", "kit.baud", ""),
    ("[profiles.x.kit]\nbaud = -1", "kit.baud", ""),
    ("[profiles.x.hosts]\napi = 'http://far.example'", "hosts.api", "https"),
    ("[profiles.x.hosts]\napi = 'https://me:pw@far.example'", "hosts.api", "secret"),
    ("[profiles.x]\nbase = 'pubic'", "base", "public"),
    ("profiles = 3", "not a table", ""),
    ("[profiles]\nx = 3", "not a table", ""),
    ("= broken", "not TOML", ""),
    ("[profiles.x]\napi_key = 'canary-value'", "api_key", ""),
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


def test_a_file_that_is_not_text_is_an_error(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not TOML"):
        load()


def test_an_unknown_profile_is_an_error_with_the_nearest_name(file: Path) -> None:
    with pytest.raises(ConfigError, match="no profile 'pubilc'") as caught:
        load("pubilc")
    assert caught.value.hint == "did you mean 'public'?"


def test_setting_a_value_keeps_comments_and_order(file: Path) -> None:
    file.write_text(
        '# my lab\nprofile = "lab" # the default\n\n[profiles.lab.kit]\n'
        '# left hub\nport = "serial:1" # do not change\nbaud = 115200\n'
    )
    assert set_value("kit.baud", "1000000", profile="lab") == 1000000
    set_value("fota.hosts", "a.example, b.example", profile="lab")
    set_value("location.send_ssid", "yes", profile="lab")
    text = file.read_text()
    for kept in ("# my lab", "# the default", "# left hub", "# do not change"):
        assert kept in text
    profile = load().profile
    assert profile.kit.baud == 1000000
    assert profile.fota.hosts == ("a.example", "b.example")
    assert profile.location.send_ssid is True


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("kit.buad", "1", "kit.buad"),
        ("kit.baud", "fast", "no number"),
        ("location.send_ssid", "perhaps", "neither true nor false"),
        ("fota.require", "sure", "fota.require"),
        ("hosts.api", "http://far.example", "hosts.api"),
        ("kit", "x", "no key 'kit'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(
    file: Path, key: str, text: str, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        set_value(key, text, profile="lab")
    assert not file.exists()


def test_a_secret_is_no_argument(file: Path) -> None:
    for key in ("api_key", "account.api_key"):
        with pytest.raises(UsageError, match="is a secret"):
            set_value(key, "canary-value", profile="lab")


def test_a_written_profile_is_private_and_complete(file: Path) -> None:
    import os

    old = os.umask(0)
    try:
        write_profile(
            "sim",
            {"hosts": {"api": "http://127.0.0.1:8001"}, "account": {"organization": "acme"}},
            {"api_key": "canary-api-key", "user_password": "with space"},
            file=file.parent / "new" / "config.toml",
        )
    finally:
        os.umask(old)
    written = file.parent / "new" / "config.toml"
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.with_name("secrets.toml").stat().st_mode & 0o777 == 0o600
    assert written.parent.stat().st_mode & 0o777 == 0o700
    configuration = load("sim", environ={"CELLAGENT_CONFIG": str(written)})
    assert configuration.profile.hosts.api == "http://127.0.0.1:8001"
    assert configuration.profile.fota.hosts == ("127.0.0.1",)
    assert configuration.secrets.require("api_key").reveal() == "canary-api-key"
    assert "canary" not in written.read_text()
    # A second profile leaves the first alone, and rewriting one leaves nothing of the old.
    write_profile("two", {"hosts": {"api": "http://127.0.0.1:8002"}}, {}, file=written)
    write_profile("sim", {"hosts": {"files": "http://127.0.0.1:8003"}}, {}, file=written)
    again = load("sim", environ={"CELLAGENT_CONFIG": str(written)})
    assert again.profile.hosts.api == ""
    assert again.secrets.get("api_key") is None
    assert load("two", environ={"CELLAGENT_CONFIG": str(written)}).profile.hosts.api


def test_the_default_profile_can_be_set(file: Path) -> None:
    write_profile("sim", {}, {}, file=file)
    set_default_profile("sim")
    assert load().name == "sim"


def test_a_linked_file_is_changed_where_it_is_kept(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "cellagent.toml"
    kept.parent.mkdir()
    kept.write_text("# kept elsewhere\n")
    file.symlink_to(kept)
    set_value("kit.baud", "9600", profile="lab")
    assert file.is_symlink()
    assert "# kept elsewhere" in kept.read_text()
    assert load("lab").profile.kit.baud == 9600
