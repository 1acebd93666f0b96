"""`cellagent modem term`, as a person or a pipe uses it."""

from __future__ import annotations

import json
import subprocess

from command_line import completed as cellagent


def objects(run: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert "Traceback" not in run.stderr, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_the_terminal_takes_a_pipe_and_tells_notices_apart() -> None:
    run = cellagent(
        "modem", "term", "--json", "--port", "virtual:", stdin="AT+CEREG=5\nAT+CFUN=1\nAT+CFUN?\n"
    )
    answers = [found for found in objects(run) if found["type"] == "answer"]
    assert [answer["final"] for answer in answers] == ["OK", "OK", "OK"]
    assert run.returncode == 0
