"""`cellagent modem virtual` as other programs meet it: on a terminal, killed, with a state file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import serial

from tests.support.modem.served_kit import modem_virtual
from tests.support.modem.virtual_modems import state_file

ROOT = Path(__file__).resolve().parents[3]


def ask(port: serial.Serial, line: bytes) -> bytes:
    port.write(line + b"\r")
    return port.read_until(b"OK\r\n")


def json_of(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_two_clients_come_one_after_the_other(tmp_path: Path) -> None:
    link = str(tmp_path / "kit")
    with modem_virtual("--pty", link) as (server, ready):
        assert ready == {"ready": True, "port": link}
        for turn in range(2):
            with closing(serial.Serial(link, 115200, timeout=60, exclusive=True)) as port:
                # The second sees what the first did: it is one modem.
                assert ask(port, b"AT+CFUN?") == b"+CFUN: %d\r\nOK\r\n" % (4 * turn)
                ask(port, b"AT+CFUN=4")
        server.terminate()
        assert server.wait(60) == 0
    assert not os.path.lexists(link)


def test_ctrl_c_ends_it_and_takes_the_link_away(tmp_path: Path) -> None:
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link)) as (server, _):
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    assert not link.is_symlink()


def test_what_was_stored_survives_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "state" / "kit.json"
    options = ("--pty", str(tmp_path / "kit"), "--state", str(state))
    with modem_virtual(*options) as (server, _):
        with closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port:
            ask(port, b"AT%KEYGEN=7,2,1")
            ask(port, b'AT%CMNG=0,7,0,"test"')
            before = ask(port, b"AT%CMNG=1")
        server.kill()
        server.wait()
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o777 == 0o700
    # The killed one left its link, which leads nowhere: the next takes its place.
    with (
        modem_virtual(*options) as _,
        closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port,
    ):
        assert ask(port, b"AT%CMNG=1") == before


def test_a_command_beside_it_knows_the_port_and_gives_its_exit_code(tmp_path: Path) -> None:
    script = "import os; print(os.path.islink(os.environ['CELLAGENT_PORT'])); raise SystemExit(7)"
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link), "--", sys.executable, "-c", script) as (server, _):
        assert server.stdout is not None
        assert server.stdout.read() == "True\n"
        assert server.wait(60) == 7


def imei_at(port: str) -> str:
    with closing(serial.Serial(port, timeout=60)) as opened:
        return ask(opened, b"AT+CGSN").split(b"\r\n")[0].decode()


def test_many_kits_of_one_process_each_have_their_own_identity_and_files(tmp_path: Path) -> None:
    places = ("--pty", str(tmp_path / "kit"), "--console", str(tmp_path / "console"))
    with modem_virtual("--count", "3", *places) as (server, ready):
        ports, consoles = (
            [str(tmp_path / f"{name}-{n}") for n in (1, 2, 3)] for name in ("kit", "console")
        )
        assert ready == {"ready": True, "ports": ports, "consoles": consoles}
        first = [imei_at(port) for port in ports]
        assert len(set(first)) == 3
        server.kill()
        server.wait()
    # The killed one left its links: the next one takes them over, and is the same kits.
    with modem_virtual("--count", "3", *places) as (server, ready):
        assert [imei_at(port) for port in ready["ports"]] == first
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    assert not list(tmp_path.iterdir())
    with modem_virtual("--pty", str(tmp_path / "kit-2")) as (_, ready):
        assert imei_at(ready["port"]) == first[1]


def test_many_kits_keep_their_states_and_count_on_from_the_imei(tmp_path: Path) -> None:
    options = ("--count", "2", "--tcp", "127.0.0.1:0", "--state", str(tmp_path / "kit.json"))
    with modem_virtual(*options, "--imei", "00101834000009") as (_, ready):
        assert len(set(ready["ports"])) == 2
    saved = [json.loads((tmp_path / f"kit-{n}.json").read_bytes()) for n in (1, 2)]
    assert [state["imei"][:14] for state in saved] == ["00101834000009", "00101834000010"]
    assert saved[0]["uuid"] != saved[1]["uuid"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 2),
        (("--pty", "kit", "--tcp", "127.0.0.1:0"), 2),
        (("--tcp", "0.0.0.0:0"), 4),
        (("--tcp", "nonsense"), 2),
        (("--pty", "kit", "--fault", "nonsense"), 2),
        (("--pty", "kit", "--model", "nrf52"), 2),
        (("--pty", "kit", "--imei", "12"), 2),
        (("--pty", "kit", "--count", "0"), 2),
        (("--pty", "kit", "--count", "x"), 2),
        (("--count", "2"), 2),
        (("--pty", "kit", "--count", "2", "--uuid", "50503041-3633-4261-803d-000000000001"), 2),
        (("--tcp", "127.0.0.1:65535", "--count", "2"), 2),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "modem", "virtual", "--json", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert json.loads(done.stdout)["error"]["exit"] == code


@pytest.mark.parametrize("where", ["--pty", "--port"])
def test_a_state_file_in_use_is_refused_and_its_holder_named(where: str, tmp_path: Path) -> None:
    state = tmp_path / "kit.json"
    with modem_virtual("--pty", str(tmp_path / "kit"), "--state", str(state)) as (server, _):
        command = (
            ("virtual", "--pty", str(tmp_path / "other"), "--state", str(state))
            if where == "--pty"
            else ("at", "--port", f"virtual:{state}", "AT%CMNG=3,7,0")
        )
        with closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port:
            ask(port, b'AT%CMNG=0,7,0,"test"')
            before = state.read_bytes()
            refused = json_of("modem", command[0], "--json", *command[1:])
            assert refused["error"]["exit"] == 3
            assert refused["error"]["kind"] == "port-busy"
            assert f"(PID {server.pid})" in refused["error"]["message"]
            assert state.read_bytes() == before
            assert b"%CMNG: 7,0," in ask(port, b"AT%CMNG=1,7")
        server.kill()
        server.wait()
    assert (tmp_path / "kit.json.lock").stat().st_mode & 0o777 == 0o600
    with state_file(state) as flash:
        saved = flash.load()
        assert saved is not None
        assert "7,0" in saved.credentials


def test_a_busy_terminal_names_its_user_and_not_the_modem_behind_it(tmp_path: Path) -> None:
    link = str(tmp_path / "kit")
    hold = "import serial, sys; p = serial.Serial(sys.argv[1], exclusive=True); print(); input()"
    with (
        modem_virtual("--pty", link) as _,
        subprocess.Popen(
            [sys.executable, "-c", hold, link], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder,
    ):
        assert holder.stdout is not None
        holder.stdout.readline()
        refused = json_of("modem", "at", "--json", "--port", link, "AT")
        assert f"(PID {holder.pid})" in refused["error"]["message"]
        holder.communicate(b"\n", timeout=60)
