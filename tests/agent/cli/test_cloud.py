"""`cellagent cloud serve`: what it refuses before it listens, and the profile that it writes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agent.config import load
from agent.config.standin_profile import write_standin_profile
from agent.standin.fault_kinds import FAULTS
from tests.support.cloud.restartable_standin import restartable_standin
from tests.support.commands.command_line import completed
from tests.support.commands.on_a_terminal import ROOT, on_a_terminal
from tests.support.harness.own_port import own_port


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--listen", "8080"), "not HOST:PORT"),
        (("--listen", "127.0.0.1:65536"), "not HOST:PORT"),
        (("--listen", f"127.0.0.1:{'9' * 5000}"), "not HOST:PORT"),
        (("--port", "8080"), "try: `cellagent cloud serve --listen 127.0.0.1:8080`"),
        (("--listen", "0.0.0.0:0"), "--allow-remote"),
        (("--listen", "example.com:0"), "--allow-remote"),
        (("--connect-proxy", "0"), "--connect-proxy and --ca-file go together"),
        (("--ca-file", "ca.pem"), "--connect-proxy and --ca-file go together"),
        (("--connect-host", "a.test", "--", "true"), "--connect-proxy 0 --ca-file ca.pem -- true`"),
        (("--fault", "no-such-fault"), "--fault help"),
        (("--write-profile", "", "--", "true"), "a profile without a name"),
        (("--", "no-such-program-of-the-test"), "cannot run no-such-program-of-the-test"),
    ],
)
def test_a_wrong_call_is_exit_2_and_says_why(arguments: tuple[str, ...], says: str) -> None:
    done = completed("cloud", "serve", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_its_faults_are_listed_without_serving() -> None:
    done = completed("cloud", "serve", "--fault", "help")
    assert done.returncode == 0
    grammar, *parts_and_kinds = done.stdout.splitlines()
    assert grammar == "--fault NAME[=ARG][*TIMES][@ROUTE]"
    first = [line.split()[0] for line in parts_and_kinds if line]
    assert {"ARG", "TIMES", "ROUTE"} < set(first)
    assert "latency=1" in first
    assert max(map(len, parts_and_kinds)) <= 80
    programs = completed("cloud", "serve", "--fault", "help", "--json").stdout.splitlines()
    kinds = [json.loads(line) for line in programs]
    assert [one["fault"] for one in kinds] == list(FAULTS)
    assert {*kinds[0]} == {"fault", "argument", "default", "description"}


def test_a_fault_that_is_written_wrongly_is_named_with_a_right_one() -> None:
    done = completed("cloud", "serve", "--fault", "server-error=503@v1/devices")
    assert done.returncode == 2
    assert "ROUTE begins with / or *" in done.stderr
    assert "'server-error=503@/v1/devices*'" in done.stderr
    assert "--fault help" in done.stderr


@pytest.mark.parametrize(("options", "played"), [((), "True"), (("--pending-commands",), "False")])
def test_the_commands_of_claimed_devices_are_played_unless_told(
    options: tuple[str, ...], played: str
) -> None:
    """The state tells it, which the program that is run may ask for."""
    ask = (
        "import httpx; from agent.config import load; c = load();"
        "answer = httpx.post(c.profile.hosts.device_cloud + '/control', json={}, headers="
        "{'Authorization': 'Bearer ' + c.secrets.get('control_token').reveal()});"
        "print(answer.json()['settings']['play_claimed_devices'])"
    )
    done = completed("cloud", "serve", *options, "--", sys.executable, "-c", ask)
    assert done.stdout.splitlines()[-1:] == [played], done.stderr


def test_it_listens_where_it_is_told() -> None:
    program = (sys.executable, "-c", "")
    with own_port() as port:
        place = f"127.0.0.1:{port}"
        done = completed("cloud", "serve", "--listen", place, "--json", "--", *program)
    (ready,) = map(json.loads, done.stdout.splitlines())
    assert ready["urls"]["device_cloud"] == f"http://{place}"


def test_the_profile_has_the_hosts_the_account_and_the_secrets(tmp_path: Path) -> None:
    names = ["api_key", "organization_auth_token", "project_key", "user_api_key", "user_password"]
    names += ["service_token", "evaluation_token", "control_token"]
    secrets = {name: f"canary-{name}" for name in names}
    ready = {
        "urls": {"device_cloud": "http://127.0.0.1:1", "downloads": "http://127.0.0.1:2"},
        "organization": "acme",
        "project": "kits",
        "team_id": "team",
        "credentials": {
            **secrets,
            "user_email": "someone@example.com",
            "service_key_file": str(tmp_path / "service-key.pem"),
        },
    }
    write_standin_profile("sim", ready)
    loaded = load("sim")
    assert loaded.profile.hosts.device_cloud == "http://127.0.0.1:1"
    assert (loaded.profile.account.organization, loaded.profile.account.team_id) == ("acme", "team")
    assert loaded.profile.credentials.service_key_files["fota"] == str(
        tmp_path / "service-key-fota.pem"
    )
    token = loaded.secrets.get("organization_token")
    assert token is not None
    assert token.reveal() == "canary-organization_auth_token"


def test_on_a_terminal_it_shows_a_summary_without_secrets(tmp_path: Path) -> None:
    arguments = ("-m", "agent", "cloud", "serve", "--write-profile", "standin")
    code, written = on_a_terminal(*arguments, "--", "true")
    said = written.decode().replace("\r\n", "\n")
    assert code == 0, said
    secrets = load("standin").secrets
    assert "organization acme, project kits" in said
    assert '"ready"' not in said
    for name in ("api_key", "organization_token", "project_key", "user_password"):
        secret = secrets.get(name)
        assert secret is not None
        assert secret.reveal() not in said


def test_a_profile_names_the_keys_of_a_state_file_by_their_whole_paths(tmp_path: Path) -> None:
    state = os.path.relpath(tmp_path / "cloud.db", ROOT)  # where the command runs
    done = completed("cloud", "serve", "--write-profile", "standin", "--state", state, "--", "true")
    assert done.returncode == 0, done.stderr
    files = load("standin").profile.credentials.service_key_files
    for file in files.values():
        assert Path(file).is_absolute()
        assert Path(file).is_file()
        assert tmp_path / "cloud.db.keys" in Path(file).resolve().parents


def test_with_a_state_file_nothing_is_left_that_only_its_end_would_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with restartable_standin(tmp_path, {}) as cloud:
        cloud.kill()
    assert not list(temporary.iterdir())
