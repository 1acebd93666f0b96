from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load
from agent.config.write import (
    drop_secret,
    set_default_profile,
    set_secret,
    set_value,
    write_profile,
)
from agent.errors import ConfigError, UsageError


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


@pytest.mark.parametrize(
    ("text", "named"),
    [("[profiles]\nlab = 3", "profiles.lab"), ("[profiles.lab]\nkit = 3", "profiles.lab.kit")],
)
def test_a_key_of_what_is_no_table_is_refused_and_nothing_is_written(
    file: Path, text: str, named: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"{named} is not a table"):
        set_value("kit.port", "x", profile="lab")
    assert file.read_text() == text


def test_a_secret_of_a_profile_that_is_no_table_is_refused(file: Path) -> None:
    secrets = file.with_name("secrets.toml")
    secrets.touch(0o600)
    secrets.write_text("lab = 3")
    for change in (set_secret, lambda name, _value, *, profile: drop_secret(name, profile=profile)):
        with pytest.raises(ConfigError, match="lab is not a table"):
            change("api_key", "canary-value", profile="lab")
    assert secrets.read_text() == "lab = 3"


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
    # A second profile leaves the first alone, and rewriting one keeps what else is set in it.
    write_profile("two", {"hosts": {"api": "http://127.0.0.1:8002"}}, {}, file=written)
    write_profile("sim", {"hosts": {"files": "http://127.0.0.1:8003"}}, {}, file=written)
    again = load("sim", environ={"CELLAGENT_CONFIG": str(written)})
    assert again.profile.hosts.api == "http://127.0.0.1:8001"
    assert again.profile.hosts.files == "http://127.0.0.1:8003"
    assert again.secrets.require("api_key").reveal() == "canary-api-key"
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
