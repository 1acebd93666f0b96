"""What a command gets where no agent runs, or one of another version."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.framework.command import json_line
from agent.cli.status import lines_of
from agent.daemon.control import client, protocol
from agent.daemon.control.client import AgentConnection, AgentRefused, NotRunning, NotUnderstood
from agent.daemon.control.socket import ControlSocket, control_socket_of, socket_folder
from agent.files.paths import config_file, state_dir
from agent.files.private_files import make_private_folder
from tests.support.commands.command_line import cellagent

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
RECORD = Path(__file__).resolve().parents[4] / "tests" / "interface" / "control.transcript"
SAID = [
    line[2:]
    .replace('since": "…"', 'since": "2026-11-22T06:08:46Z"')
    .replace(":N", ":0")
    .replace(": N", ": 0")
    .replace("{…}", "{}")
    for line in RECORD.read_text().splitlines()
    if line.startswith("< ")
]
STATUS = next(line for line in SAID if '"status"' in line)
NOTICES = [line for line in SAID if '"ok"' not in line and '"error"' not in line]
REFUSED = '{"error": {"exit": 2, "kind": "usage", "message": "no", "try": ""}}'

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


def holders(value: Any) -> list[Any]:
    """Return every object and list of a message, itself among them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [value] if isinstance(value, dict | list) and value else []
    return found + [each for one in inner for each in holders(one)]


@st.composite
def spoilt(draw: st.DrawFn, lines: list[str]) -> bytes:
    """Draw a line of which something is missing, more, or something else; or cut anywhere."""
    message = json.loads(draw(st.sampled_from(lines)))
    for _ in range(draw(st.integers(0, 2))):
        holder = draw(st.sampled_from(holders(message) or [{"": 0}]))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = draw(st.sampled_from(keys))
        match draw(st.sampled_from(["missing", "other", "more"])):
            case "missing":
                del holder[key]
            case "other":
                holder[key] = draw(any_json)
            case "more" if isinstance(holder, dict):
                holder[draw(st.text(max_size=5))] = draw(any_json)
    line = json.dumps(message).encode() + b"\n"
    return line[: draw(st.integers(0, len(line)))] if draw(st.booleans()) else line


def read(line: bytes, *, window: bool) -> Any:
    """Return what a command reads of a connection on which only `line` comes."""

    async def answer() -> Any:
        reader = asyncio.StreamReader(limit=client.LONGEST_ANSWER)
        reader.feed_data(line)
        reader.feed_eof()
        connection = AgentConnection(reader, None, ControlSocket(Path()))  # type: ignore[arg-type]
        if window:
            return await connection.notice()
        return await connection.answer(protocol.StatusAnswer)

    return asyncio.run(answer())


@given(spoilt([STATUS, REFUSED]) | st.binary().map(lambda data: data + b"\n"))
def test_a_status_is_shown_whole_or_refused_with_a_reason(line: bytes) -> None:
    try:
        answer = read(line, window=False)
    except (NotRunning, NotUnderstood, AgentRefused) as error:
        shown = [] if 1 <= error.exit_code <= 255 else None
    else:
        shown = list(lines_of(answer.status, datetime.now(UTC)))
        assert json.loads(json_line(json.loads(protocol.encode(answer))))["ok"]
    assert shown is not None


@given(spoilt(NOTICES) | st.binary().map(lambda data: data + b"\n"))
def test_a_notice_to_a_window_is_one_that_it_knows_or_refused(line: bytes) -> None:
    with contextlib.suppress(NotRunning, NotUnderstood, AgentRefused):
        assert read(line, window=True) is not None


def test_what_is_recorded_is_understood_and_said_again_as_it_was() -> None:
    answer = read(STATUS.encode() + b"\n", window=False)
    assert protocol.encode(answer).decode().strip() == json.dumps(json.loads(STATUS))
    for line in NOTICES:
        notice = read(line.encode() + b"\n", window=True)
        if '"is"' not in line and '"counts"' not in line and '"coming"' not in line:
            assert protocol.encode(notice).decode().strip() == line


@pytest.mark.parametrize("words", [["status"], ["reload"], ["hold", "left", "--", "true"]])
async def test_who_asks_for_an_agent_makes_no_folder_for_one(words: list[str]) -> None:
    done = await cellagent(*words)
    assert (done.code, done.err.splitlines()[0]) == (3, "cellagent: the agent does not run")
    assert not state_dir().exists()


@contextlib.asynccontextmanager
async def peer(line: bytes) -> AsyncIterator[None]:
    """Answer every request with `line`, as an agent of another version could."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(line)
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    socket = control_socket_of(Path(os.environ["CELLAGENT_STATE_DIR"]), "custom")
    make_private_folder(socket.path.parent)
    server = await asyncio.start_unix_server(answer, socket.path)
    yield
    server.close()


@posix
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (STATUS.replace('"registration"', '"of a later version": 1, "registration"'), ""),
        ('{"ok": true}', "not-understood"),
        ('{"ok": true, "status": {"agent": {}}}', "not-understood"),
        (STATUS.replace('"concern": "fota"', '"concern": "of a later version"'), "not-understood"),
        (STATUS.replace('"concern": "console"', '"concern": "fota"'), "not-understood"),
        ("no JSON", "not-understood"),
        ("[]", "not-understood"),
        ("x" * (client.LONGEST_ANSWER + 1), "not-understood"),
        ('{"error": {"exit": 0}}', "not-understood"),
        (REFUSED, "usage"),
    ],
    ids=lambda value: value[:40],
)
async def test_an_agent_of_another_version_is_told_as_one(line: str, kind: str) -> None:
    async with peer(line.encode() + b"\n"):
        done = await cellagent("status", "--json")
    assert "Traceback" not in done.err
    assert done.lines[-1].get("error", {}).get("kind", "") == kind
    if kind == "not-understood":
        assert done.code == 3
        assert "different versions" in done.lines[-1]["error"]["try"]


@posix
@pytest.mark.parametrize(
    "words",
    [
        ("status", "--watch"),
        ("reload",),
        ("hold", "--", "true"),
        ("ports",),
        ("modem", "at", "AT", "--port", "/dev/ttyACM99"),
        ("console", "--port", "/dev/ttyACM99"),
    ],
    ids=" ".join,
)
async def test_each_command_says_that_the_agent_is_of_another_version(
    words: tuple[str, ...],
) -> None:
    async with peer(b'{"done": true}\n'):
        done = await cellagent(*words)
    assert (done.code, "Traceback" in done.err) == (3, False), done.err
    assert "different versions" in done.err


async def test_a_socket_that_this_user_may_not_open_is_no_agent_that_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(ControlSocket, "connect", refused)  # root may open any
    at = ControlSocket(Path("/run/the agent.sock"))
    with pytest.raises(NotRunning, match=r"may not ask the agent at /run/the agent\.sock") as told:
        await client.ask(at, protocol.StatusRequest(), protocol.StatusAnswer)
    assert "`sudo ls -l '/run/the agent.sock'` shows who that is" in told.value.hint


@posix
@pytest.mark.parametrize("content", ["profile = ", '[profiles.custom.fota]\ninterval_s = "soon"'])
async def test_a_configuration_that_is_broken_since_does_not_hide_the_agent(content: str) -> None:
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(content)
    file.chmod(0o600)
    async with peer(STATUS.encode() + b"\n"):
        done = await cellagent("status")
        assert (done.code, "1 of 1 kit" in done.out) == (0, True), done.err
        assert str(file) in done.err
    gone = await cellagent("status")
    assert (gone.code, str(file) in gone.err, "goes on" in gone.err) == (2, True, False)


@posix
async def test_no_agent_is_exit_code_3() -> None:
    done = await cellagent("status", "--json")
    assert done.code == 3
    assert done.lines[0]["error"]["kind"] == "not-running"


@posix
async def test_another_agent_is_named_where_one_listens() -> None:
    folder = socket_folder(state_dir())
    make_private_folder(folder)
    with socket.socket(socket.AF_UNIX) as of_another:
        of_another.bind(str(folder / "lab.sock"))
        of_another.listen()
        meant = await cellagent("status", "--profile", "standin")
    killed = await cellagent("status", "--profile", "standin")  # it leaves its socket
    assert "is another meant? `cellagent status --profile lab`; else" in meant.err
    assert ("another" in killed.err, "start it: `cellagent run" in killed.err) == (False, True)
