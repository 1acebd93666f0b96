"""The shell of the stand-in: the ready line, the hosts, what stands before every route."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from standin import StandIn, running_standin

URLS = {"device_cloud", "api", "chunks", "ingress", "files", "provisioning", "downloads"}
CREDENTIALS = {
    "api_key",
    "organization_auth_token",
    "project_key",
    "user_email",
    "user_password",
    "user_api_key",
    "service_key_file",
    "service_token",
    "evaluation_token",
    "control_token",
}


def serve(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent", "cloud", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


def test_the_ready_line_has_the_fixed_shape_and_the_program_s_exit_code_is_ours() -> None:
    show = "import sys; sys.exit(7)"
    done = serve("--", sys.executable, "-c", show)
    assert done.returncode == 7, done.stderr
    (line,) = done.stdout.splitlines()
    ready = json.loads(line)
    assert ready["ready"] is True
    assert set(ready) == {"ready", "urls", "organization", "project", "team_id", "credentials"}
    assert set(ready["urls"]) == URLS
    assert set(ready["credentials"]) == CREDENTIALS


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_told_to_stop_it_ends_well_and_takes_its_private_keys_along(name: str) -> None:
    command = [sys.executable, "-m", "agent", "cloud", "serve"]
    number = getattr(signal, name)
    # Whoever runs the tests may ignore it (nohup): the stand-in is not to inherit that.
    before = signal.signal(number, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        signal.signal(number, before)
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        key = Path(ready["credentials"]["service_key_file"])
        assert key.exists()
        process.send_signal(number)
        assert process.wait(30) == 0
    assert not key.parent.exists()


def test_an_address_that_is_taken_is_an_error_and_no_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = serve("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [b"root:x:0:0\n" * 20, b"SQLite format 3\0" + bytes(84)])
def test_a_state_file_of_another_program_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    other.chmod(0o644)
    done = serve("--state", str(other), "--", "true")
    assert done.returncode == 2
    assert "no state file" in done.stderr
    assert "Traceback" not in done.stderr
    assert other.read_bytes() == content
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_two_stand_ins_do_not_share_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    again = [sys.executable, "-m", "agent", "cloud", "serve", "--state", str(state), "--", "true"]
    done = serve("--state", str(state), "--", *again)
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert serve("--state", str(state), "--", "true").returncode == 0


def test_a_certificate_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = serve("--connect-proxy", "0", "--ca-file", str(tmp_path / "none" / "ca.pem"))
    assert done.returncode == 2
    assert "ca.pem" in done.stderr


@pytest.mark.contract("D1.1")
async def test_it_answers_json_over_http_on_loopback(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/account", headers=standin.bearer("api_key"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["team"]["tenantId"] == standin.team_id


async def test_a_name_that_is_not_ours_is_refused(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/status", headers={"Host": "rebound.example"})
    assert answer.status_code == 421
    answer = await standin.client.get("/v1/status", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


async def test_unknown_paths_and_methods_are_json_errors(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, 40420)
    answer = await standin.client.post("/v1/status")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


async def test_split_gives_each_host_a_port_that_refuses_the_others(tmp_path: Path) -> None:
    async with running_standin(tmp_path, split=True) as standin:
        assert len(set(standin.urls.values())) == len(URLS)
        assert (await standin.client.get("/v1/status")).status_code == 200
        elsewhere = await standin.client.get(standin.urls["ingress"] + "/v1/status")
        assert elsewhere.status_code == 404


async def test_accepted_connections_have_no_nagle_delay(standin: StandIn) -> None:
    # Without it a request takes 40 ms; the listening socket must say TCP for asyncio to set it.
    from agent.standin.serve import listen

    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


async def test_control_needs_its_own_token_and_moves_the_clock(standin: StandIn) -> None:
    refused = await standin.client.get("/control", headers=standin.bearer("api_key"))
    assert refused.status_code == 401
    before = standin.clock.time()
    answer = await standin.client.post(
        "/control", headers=standin.bearer("control_token"), json={"clock": {"advance_s": 86400}}
    )
    assert answer.status_code == 200
    assert standin.clock.time() - before >= 86400
    for wrong in (
        {"nothing": 1},
        {"settings": {"x": 1}},
        {"clock": 3},
        {"settings": {"bulk_s": True}},
    ):
        answer = await standin.client.post(
            "/control", headers=standin.bearer("control_token"), json=wrong
        )
        assert answer.status_code == 400, wrong


async def test_the_state_file_and_the_key_files_are_private_and_are_read_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "cloud.sqlite"
    private_file = tmp_path / "a" / "service-key-location.pem"
    async with running_standin(tmp_path / "a", state=path) as first:
        key = first.credentials["api_key"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        key_file = private_file.stat()
        assert stat.S_IMODE(key_file.st_mode) == 0o600
        team = first.team_id
    async with running_standin(tmp_path / "b", state=path) as second:
        assert second.team_id == team
        assert second.credentials["api_key"] == key
