"""`cellagent modem at|term|check` and `cellagent ports`, as a person or a program calls them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.modem.at import commands_in, without_secret

ROOT = Path(__file__).resolve().parents[3]
PEM = 'AT%CMNG=0,42,0,"-----BEGIN CERTIFICATE-----\nTEST\n-----END CERTIFICATE-----"'


def cellagent(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )


def objects(run: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert "Traceback" not in run.stderr, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_commands_are_answered_in_order_and_the_first_failure_ends_it() -> None:
    run = cellagent("modem", "at", "--port", "virtual:", "AT+CFUN?", "AT+NOSUCH", "AT+CGMR")
    assert run.stdout.splitlines()[:3] == ["+CFUN: 0", "OK", "ERROR"]
    assert run.returncode == 1


def test_json_answers_carry_the_value_and_what_went_wrong() -> None:
    run = cellagent("modem", "at", "--json", "--port", "virtual:", "AT+CFUN?", "AT+NOSUCH")
    answer, refused = objects(run)
    assert answer["value"] == {"fun": 0, "rst": None}
    assert (answer["final"], answer["lines"], answer["error"]) == ("OK", ["+CFUN: 0"], None)
    assert refused["final"] == "ERROR"
    assert refused["error"]


@pytest.mark.parametrize(
    "line", ['AT%CMNG=0,1,2,"key"', 'at%cmng = 0,1,2,"key"', 'AT%KEYINJECT="cose"']
)
def test_a_credential_in_the_arguments_is_refused_with_the_way_to_do_it(line: str) -> None:
    run = cellagent("modem", "at", "--port", "virtual:", line)
    assert run.returncode == 2
    assert "modem at -" in run.stderr
    assert "key" not in run.stdout


def test_a_credential_from_standard_input_is_written_and_not_shown() -> None:
    lines = f"# a comment\n\n{PEM}\nAT%CMNG=1,42\n"
    run = cellagent("modem", "at", "--json", "--port", "virtual:", "-", stdin=lines)
    written, listed = objects(run)
    assert run.returncode == 0
    assert written["command"] == 'AT%CMNG=0,42,0,"(hidden)"'
    assert "TEST" not in run.stdout
    assert len(listed["lines"]) == 1  # type: ignore[arg-type]


def test_lines_are_joined_while_a_quote_is_open() -> None:
    assert list(commands_in(io.StringIO(f"AT\n{PEM}\r\n\nAT+CGMR"))) == ["AT", PEM, "AT+CGMR"]
    assert list(commands_in(io.StringIO('AT+X="open'))) == ['AT+X="open']


def test_what_is_shown_of_a_credential_is_where_it_went() -> None:
    assert without_secret(PEM) == 'AT%CMNG=0,42,0,"(hidden)"'
    assert without_secret('AT%CMNG=0,42,0,"cut') == 'AT%CMNG=0,42,0,"(hidden)"'
    assert without_secret('AT+CGDCONT=0,"IP"') == 'AT+CGDCONT=0,"IP"'


def test_a_line_that_breaks_out_is_refused_before_it_is_sent() -> None:
    run = cellagent("modem", "at", "--json", "--port", "virtual:", 'AT%JWT=0,1,"a')
    (failure,) = objects(run)
    assert failure["error"]["exit"] == 2  # type: ignore[index]


def test_a_port_that_is_not_there_is_exit_3() -> None:
    run = cellagent("modem", "at", "--json", "--port", "/dev/pts/ttyNOWHERE", "AT")
    (failure,) = objects(run)
    assert failure["error"]["exit"] == 3  # type: ignore[index]
    assert run.returncode == 3


def test_the_terminal_takes_a_pipe_and_tells_notices_apart() -> None:
    run = cellagent(
        "modem", "term", "--json", "--port", "virtual:", stdin="AT+CEREG=5\nAT+CFUN=1\nAT+CFUN?\n"
    )
    answers = [found for found in objects(run) if found["type"] == "answer"]
    assert [answer["final"] for answer in answers] == ["OK", "OK", "OK"]
    assert run.returncode == 0


def test_check_tells_what_the_modem_is_and_changes_nothing() -> None:
    (report,) = objects(cellagent("modem", "check", "--json", "--port", "virtual:"))
    assert report["allowed"] is True
    assert str(report["firmware"]).startswith("mfw_nrf91x1_2.")
    assert report["functional_mode"] == 0
    assert report["sim"] is None
    people = cellagent("modem", "check", "--port", "virtual:")
    assert "answers AT" in people.stdout
    assert all(len(line) <= 100 for line in people.stdout.splitlines())


def test_check_gives_the_way_out_that_the_number_of_a_refusal_names(tmp_path: Path) -> None:
    kit = ("modem", "virtual", "--instant", "--fault", "no-sim", "--pty", str(tmp_path / "kit"))
    check = (sys.executable, "-m", "agent", "modem", "check", "--port", str(tmp_path / "kit"))
    said = cellagent(*kit, "--", *check).stdout
    assert "SIM not inserted" in said
    assert "try: insert a SIM" in said


def test_ports_over_a_pty_have_the_fixed_shape(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    inner = [sys.executable, "-m", "agent", "ports", "--json", "--port", str(kit)]
    run = cellagent("modem", "virtual", "--pty", str(kit), "--", *inner)
    ready, port = objects(run)
    assert ready["ready"] is True
    assert list(port) == [
        *("port", "kit", "role", "answers", "dialect", "terminator", "baud"),
        *("firmware", "imei", "reason", "try"),
    ]
    assert (port["answers"], port["role"], port["kit"]) == (True, "at", None)
    assert run.returncode == 0


def test_decode_and_help_load_no_port_and_no_event_loop() -> None:
    code = (
        "import sys; sys.argv = ['cellagent', 'modem', *sys.argv[1:]]\n"
        "from agent.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    for arguments in (["--help"], ["decode"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            input="+CEREG: 1\r\n",
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
        assert not set(run.stderr.split()) & {"asyncio", "serial", "httpx", "sqlite3"}
        assert run.stdout
