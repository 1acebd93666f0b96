from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from agent.config import Secret, load
from agent.config.secrets import SECRETS
from agent.config.write import set_secret, set_value
from agent.errors import ConfigError

CANARY = "canary-5f1c9e-of-the-test"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('profile = "lab"\n[profiles.lab]\n')
    monkeypatch.setenv("CELLAGENT_CONFIG", str(path))
    return path


def private(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


@pytest.mark.parametrize("name", SECRETS)
def test_each_secret_has_a_variable_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert load().secrets.get(name) is None
    monkeypatch.setenv(SECRETS[name].variable, CANARY + "\n")
    secrets = load().secrets
    assert secrets.get(name).reveal() == CANARY
    origin = secrets.origin(name)
    assert origin is not None
    assert (origin.kind, origin.where) == ("environment", SECRETS[name].variable)


def test_environment_wins_over_systemd_credentials_and_those_over_the_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private(tmp_path / "secrets.toml", '[lab]\napi_key = "from-the-file"\n')
    secrets = load().secrets
    assert secrets.get("api_key").reveal() == "from-the-file"
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "cellagent.api_key").write_text("from-systemd\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    assert load().secrets.get("api_key").reveal() == "from-systemd"
    monkeypatch.setenv("CELLAGENT_API_KEY", "from-the-environment")
    assert load().secrets.get("api_key").reveal() == "from-the-environment"


def test_a_credential_of_systemd_of_a_name_that_no_secret_has_is_refused(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "another.service").write_text("not ours")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert load(environ=environ).secrets.get("api_key") is None
    (tmp_path / "cellagent.api-key").write_text("k")
    with pytest.raises(ConfigError, match=r"credential cellagent\.api-key") as refused:
        load(environ=environ).secrets.get("api_key")
    assert refused.value.hint == "did you mean cellagent.api_key?"


@pytest.mark.parametrize("content", [b"abc\n", b"two words\n", b"\xff\xfe\n", b"\n"])
def test_a_credential_of_systemd_that_is_none_is_named_with_what_replaces_it(
    file: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "cellagent.api_key").write_bytes(content)
    configuration = load(environ={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"cellagent\.api_key") as caught:
        configuration.secrets.get("api_key")
    assert caught.value.hint == (
        "api_key is systemd's cellagent.api_key: replace it, then restart the service"
    )


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666, 0o620])
def test_a_secrets_file_that_others_can_read_is_refused(
    file: Path, tmp_path: Path, mode: int
) -> None:
    private(tmp_path / "secrets.toml", f'[lab]\napi_key = "{CANARY}"\n', mode)
    with pytest.raises(ConfigError, match="others can read") as caught:
        load().secrets.get("api_key")
    assert "chmod 600" in caught.value.hint
    with pytest.raises(ConfigError, match="others can read"):
        set_secret("api_key", "another", profile="lab")


def test_a_secrets_file_that_is_no_file_or_no_toml_is_refused(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    path.mkdir(0o700)
    with pytest.raises(ConfigError, match=r"no plain file|cannot read"):
        load().secrets.get("api_key")
    path.rmdir()
    private(path, f"[lab]\napi_key = {CANARY}\n")
    with pytest.raises(ConfigError) as caught:
        load().secrets.get("api_key")
    assert CANARY not in str(caught.value)


def test_a_misspelt_secret_is_an_error_with_the_nearest_name(file: Path, tmp_path: Path) -> None:
    private(tmp_path / "secrets.toml", f'[lab]\napikey = "{CANARY}"\n')
    with pytest.raises(ConfigError, match=r"no secret lab\.apikey") as caught:
        load().secrets.get("project_key")
    assert caught.value.hint == "did you mean 'api_key'?"
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("value", ["two words", "line\r\nX-Header: 1", "käy", "abc", "\x00abcde"])
def test_a_secret_that_would_not_fit_a_header_is_refused_without_showing_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    configuration = load(environ={"CELLAGENT_CONFIG": str(file), "CELLAGENT_API_KEY": value})
    with pytest.raises(ConfigError, match="API key of the device cloud") as caught:
        configuration.secrets.get("api_key")
    assert value not in str(caught.value)
    assert (
        caught.value.hint == "api_key is of the environment: set CELLAGENT_API_KEY to a valid one"
    )
    assert set_secret("api_key", CANARY, profile="lab") == file.with_name("secrets.toml")
    with pytest.raises(ConfigError):
        set_secret("api_key", value, profile="lab")
    assert load().secrets.get("api_key").reveal() == CANARY, "the one that was kept is lost"


def test_a_stored_secret_is_private(file: Path, tmp_path: Path) -> None:
    set_secret("api_key", CANARY, profile="lab")
    path = tmp_path / "secrets.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert load().secrets.get("api_key").reveal() == CANARY


def test_the_command_that_replaces_a_secret_can_be_pasted(file: Path) -> None:
    set_value("kit.port", "virtual:", profile="the lab")
    set_secret("api_key", CANARY, profile="the lab")
    told = load("the lab").secrets.replacing("api_key", unattended=False)
    assert "`cellagent config set api_key --profile 'the lab'`" in told


def test_a_keyring_that_does_not_work_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring", reason="pip install 'cellagent[keyring]'")
    file.write_text("[profiles.lab.credentials]\nkeyring = true\n")

    class Stored(keyring.backend.KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return CANARY if (service, username) == ("cellagent", "lab:api_key") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise AssertionError("only read")

    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Stored())
        secrets = load("lab").secrets
        assert secrets.get("api_key").reveal() == CANARY
        assert secrets.get("project_key") is None
        keyring.set_keyring(keyring.backends.fail.Keyring())
        with pytest.raises(ConfigError, match="keyring cannot be used"):
            load("lab").secrets.get("api_key")
    finally:
        keyring.set_keyring(before)


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(CANARY)
    shown = f"{secret} {secret!r} {secret!s:>40} {[secret]} {{'k': {secret}}} %s" % secret
    assert CANARY not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret == Secret(CANARY) != Secret("another-value")
