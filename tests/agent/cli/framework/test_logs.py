"""The log on standard error: redacted, for people in lines that fit, for programs as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from agent.cli.framework.logs import log_of_the_agent, log_to_stderr
from agent.config.secrets import Secret
from agent.daemon.supervisor import log_context
from agent.http import client

CANARY = "canary-of-the-log-0123456789"


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """Restore what the functions under test set for the whole process."""
    root = logging.getLogger()
    names = ["agent.outbox.delivery_loop", "agent.http.client"]
    names += ["httpx", "httpcore", "asyncio"]
    before = root.handlers, root.level, [logging.getLogger(name).level for name in names]
    yield
    root.handlers, level, levels = before
    root.setLevel(level)
    for name, was in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(was)


@pytest.mark.parametrize(("verbosity", "shown"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_each_v_shows_one_more_level(
    verbosity: int, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr(verbosity)
    log = logging.getLogger("test")
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        log.log(level, "level %d", level)
    assert len(capsys.readouterr().err.splitlines()) == shown


@pytest.mark.contract("O4.5")
@pytest.mark.parametrize(("verbosity", "shown"), [(0, 2), (1, 3), (2, 3), (9, 3)])
def test_the_agent_shows_what_it_does_and_with_any_v_the_detail(
    verbosity: int, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    log_of_the_agent(verbosity)
    log = logging.getLogger("test")
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        log.log(level, "level %d", level)
    assert len(capsys.readouterr().err.splitlines()) == shown


@pytest.mark.contract("O4.5")
@pytest.mark.parametrize("name", ["httpx", "httpcore", "asyncio"])
def test_the_detail_of_libraries_is_no_detail_of_the_agent(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log_of_the_agent(2)
    logging.getLogger(name).info("each request, each slow callback")
    assert capsys.readouterr().err == ""
    logging.getLogger(name).warning("what is wrong")
    assert "what is wrong" in capsys.readouterr().err


def test_a_line_of_the_agent_is_one_redacted_object_that_names_kit_and_concern(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Secret(CANARY)
    log_of_the_agent(0)
    about = {"kit": "left", "concern": "link"}
    logging.getLogger("test").warning("key %s\x1b[2J", CANARY, extra=about)
    logging.getLogger("agent.http.client").error("a try")
    [line] = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert (entry["kit"], entry["concern"], entry["level"]) == ("left", "link", "warning")
    assert CANARY not in line
    assert "\x1b" not in entry["message"]


@pytest.mark.contract("D8.3", "D10.6", "O4.5")
def test_the_agent_warns_of_what_is_deprecated_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    log_of_the_agent(0)
    client._warn_once.cache_clear()
    with log_context("left", "location"):
        for _ in range(2):
            client._warn_once("this token is deprecated")
    [line] = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert entry["message"] == "this token is deprecated"
    assert (entry["kit"], entry["concern"]) == ("left", "location")


def test_a_person_sees_time_kit_and_concern_in_lines_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    log_of_the_agent(0)
    text = "the modem does not answer at all, however often it is asked; try: plug it in again"
    logging.getLogger("test").warning(text, extra={"kit": "left", "concern": "link"})
    first, *rest = capsys.readouterr().err.splitlines()
    assert first[8:].startswith(" \x1b[33m!\x1b[m left link: the modem")
    first = first.replace("\x1b[33m!\x1b[m", "!")
    assert rest[-1].strip() == "try: plug it in again"
    assert max(map(len, [first, *rest])) <= 60


@pytest.mark.skipif(sys.platform == "win32", reason="there only sockets tell")
def test_a_log_that_nobody_reads_is_kept_and_hinders_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, writes = os.pipe()
    for end in (reads, writes):
        os.set_blocking(end, False)  # so that a write that would wait fails
    said = [f"line {number} {'x' * 1000}" for number in range(300)]
    told = bytearray()
    with os.fdopen(writes, "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        log_of_the_agent(1)
        log = logging.getLogger("test")
        for line in said:
            log.info(line)
        for _ in range(20):
            with suppress(BlockingIOError):
                while chunk := os.read(reads, 65536):
                    told += chunk
            log.info("read on")
    os.close(reads)
    messages = [json.loads(line)["message"] for line in told.splitlines()]
    assert [message for message in messages if message != "read on"] == said
