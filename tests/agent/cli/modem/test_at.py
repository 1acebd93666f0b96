"""`cellagent modem at`, as a person or a program calls it."""

from __future__ import annotations

import io
import json
import subprocess

import pytest
from command_line import completed as cellagent

from agent.cli.modem.at import commands_in, without_secret

PEM = 'AT%CMNG=0,42,0,"-----BEGIN CERTIFICATE-----\nTEST\n-----END CERTIFICATE-----"'


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
