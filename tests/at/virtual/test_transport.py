"""The driver over every way to the virtual modem: in memory, on a terminal, on TCP, replayed."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from at.driver.modem import Modem, open_modem
from at.protocol.errors import (
    AtError,
    CommandTimeout,
    LinkLost,
    ModemReset,
    NoAnswer,
    PortBusy,
    TranscriptError,
)
from at.transcripts.recorder import RecordingTransport
from at.transcripts.replay_transport import ReplayTransport
from at.transcripts.transcript import load_transcript
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.server.tcp import TcpServer
from at.virtual.transport import VirtualTransport
from tests.support.harness.full_disk import files_end_at


@contextlib.asynccontextmanager
async def in_memory(_folder: Path, options: VirtualOptions) -> AsyncIterator[Modem]:
    fields = {name: getattr(options, name) for name in options.__slots__}
    modem = Modem(VirtualTransport(**fields))
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


@contextlib.asynccontextmanager
async def on_a_terminal(folder: Path, options: VirtualOptions) -> AsyncIterator[Modem]:
    runner = ModemRunner(make_modem(options))
    server = PtyServer(folder / "kit", runner.receive)
    runner.attach(Port.AT, server.send)
    runner.start()
    try:
        async with open_modem(str(folder / "kit")) as modem:
            yield modem
    finally:
        runner.stop()
        server.close()


@contextlib.asynccontextmanager
async def on_tcp(_folder: Path, options: VirtualOptions) -> AsyncIterator[Modem]:
    runner = ModemRunner(make_modem(options))
    server = TcpServer(runner.receive)
    await server.listen("127.0.0.1", 0)
    runner.attach(Port.AT, server.send)
    runner.start()
    try:
        async with open_modem(server.port) as modem:
            yield modem
    finally:
        runner.stop()
        await server.close()


WAYS = {"memory": in_memory, "terminal": on_a_terminal, "tcp": on_tcp}


SESSION = (
    "AT+CGMM",
    "AT+CEREG=5",
    "AT+CFUN=1",
    "AT+CFUN?",
    "AT%XMONITOR",
    "AT+NOSUCH",
    "AT+CFUN=4",
)


async def session(modem: Modem) -> list[tuple[str | None, list[str]]]:
    """Return the finals and bodies of a short session, but for what is random in it."""
    answers = [await modem.execute(line) for line in SESSION]
    return [(answer.final, list(answer.lines)) for answer in answers]


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem", "shell"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_session_is_the_same_over_every_transport(
    way: str, dialect: str, tmp_path: Path
) -> None:
    async with WAYS[way](tmp_path, VirtualOptions(dialect=dialect, instant=True)) as modem:
        assert modem.dialect.value == dialect
        answers = await session(modem)
    finals = [final for final, _ in answers]
    assert finals == ["OK", "OK", "OK", "OK", "OK", "ERROR", "OK"]
    assert answers[0][1] == ["nRF9161-LACA"]
    assert answers[3][1] == ["+CFUN: 1"]
    assert answers[4][1][0].startswith('%XMONITOR: 1,"","","00101","0901",7,')


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem"])
@pytest.mark.contract("C9")
async def test_what_was_recorded_replays_as_it_was(dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "session.transcript"
    recording = RecordingTransport(
        VirtualTransport(dialect=dialect, instant=True), path, header={"dialect": dialect}
    )
    modem = Modem(recording)
    await modem.open()
    live = await session(modem)
    await modem.close()
    assert path.stat().st_mode & 0o777 == 0o600

    replay = ReplayTransport(path)
    modem = Modem(replay)
    await modem.open()
    assert await session(modem) == live
    await modem.close()
    assert replay.remaining == []
    async with open_modem(f"replay:{path}") as modem:
        assert (await modem.execute("AT+CGMM")).lines


async def test_a_recording_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session.transcript"
    path.write_text("precious")
    modem = Modem(RecordingTransport(VirtualTransport(), path))
    with pytest.raises(AtError, match="exists already"):
        await modem.open()
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("for_bytes", "raised"),
    [(5, TranscriptError), (len("@0.000000 > AT+CGMM\n") + 5, LinkLost)],
    ids=["the command", "the answer"],
)
async def test_a_recording_for_which_the_disk_has_no_room_says_so_to_whoever_waits(
    for_bytes: int, raised: type[AtError], tmp_path: Path
) -> None:
    path = tmp_path / "session.transcript"
    recording = RecordingTransport(VirtualTransport(instant=True), path)
    modem = Modem(recording)
    await modem.open()
    text = f"cannot write {path}: File too large"
    room = files_end_at(path.stat().st_size + for_bytes)
    with room, pytest.raises(raised, match=re.escape(text)):
        await modem.execute("AT+CGMM")
    await modem.close()
    with pytest.raises(TranscriptError, match=re.escape(text)):
        recording.finish()


async def test_the_recorded_token_has_lost_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "session.transcript"
    modem = Modem(RecordingTransport(VirtualTransport(instant=True), path))
    await modem.open()
    token = (await modem.execute("AT%JWT")).lines[0].split('"')[1]
    await modem.close()
    assert load_transcript(path).steps
    assert token.split(".")[2] not in path.read_text()


@pytest.mark.parametrize(
    "fault",
    ["notice-mid-answer", "log-noise", "echo", "open-quote", "urc-flood=200", "no-newline=5000"],
)
async def test_the_driver_is_not_upset_by_what_happens_on_real_lines(
    fault: str, tmp_path: Path
) -> None:
    async with in_memory(tmp_path, VirtualOptions(faults=(fault,), instant=True)) as modem:
        for _ in range(3):
            assert list((await modem.execute("AT+CGMM")).lines) == ["nRF9161-LACA"]


async def test_data_mode_is_left_before_anything_is_asked(tmp_path: Path) -> None:
    options = VirtualOptions(faults=("stuck-in-data-mode",), instant=True, dialect="serial-modem")
    async with in_memory(tmp_path, options) as modem:
        assert list((await modem.execute("AT+CGMM")).lines) == ["nRF9161-LACA"]


async def test_a_late_answer_reaches_no_other_command(tmp_path: Path) -> None:
    async with in_memory(
        tmp_path, VirtualOptions(faults=("late-answer=0.3",), instant=True)
    ) as modem:
        late = 0
        for line, wanted in {"AT+CGMM": "nRF9161-LACA", "AT%XVBAT": "%XVBAT: 5054"}.items():
            try:
                assert list((await modem.execute(line, timeout_s=0.1)).lines) == [wanted]
            except (CommandTimeout, NoAnswer):
                late += 1
        assert list((await modem.execute("AT+CGMM")).lines) == ["nRF9161-LACA"]
    assert late


async def named(modem: Modem) -> type[AtError] | None:
    try:
        await modem.execute("AT+CGMM")
    except AtError as error:
        return type(error)
    return None


async def test_a_restart_in_the_middle_of_a_command_is_named(tmp_path: Path) -> None:
    options = VirtualOptions(faults=("reset-mid-command=5",), instant=True, dialect="serial-modem")
    async with in_memory(tmp_path, options) as modem:
        outcomes = [await named(modem) for _ in range(6)]
        assert ModemReset in outcomes
        assert list((await modem.execute("AT+CGMM")).lines) == ["nRF9161-LACA"]


async def test_notices_come_in_the_modems_own_time() -> None:
    """Real pace: OK at once, the search after a second. The clock is the loop's own."""
    transport = VirtualTransport()
    loop = asyncio.get_running_loop()
    modem = Modem(transport)
    await modem.open()
    await modem.execute("AT+CEREG=5")
    began = loop.time()
    notices = modem.notices("+CEREG")
    await modem.execute("AT+CFUN=1")
    first = await asyncio.wait_for(anext(aiter(notices)), 60)
    assert loop.time() - began >= 1.1
    assert "2" in first.line
    await modem.close()
    assert time.monotonic() > 0


async def test_a_kit_that_another_process_had_meanwhile_was_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    ours = Modem(VirtualTransport(statefile=str(path), instant=True))
    await ours.open()
    await ours.execute("AT+CFUN=4")
    await ours.close()
    same = VirtualTransport(statefile=str(path), instant=True)
    theirs = Modem(same)
    await theirs.open()
    await theirs.execute('AT%CMNG=0,7,0,"theirs"')
    with pytest.raises(PortBusy):
        await ours.open()
    await theirs.close()
    again = Modem(same)
    await again.open()
    assert (await again.execute("AT%CMNG=1,7")).lines
    await again.execute("AT+CFUN=4")
    await again.close()
    # Nobody wrote in between: it is the modem that it was.
    once_more = Modem(same)
    await once_more.open()
    assert (await once_more.execute("AT+CFUN?")).lines == ("+CFUN: 4",)
    await once_more.close()


def test_a_name_alone_makes_no_state_file() -> None:
    with pytest.raises(TypeError):
        VirtualTransport("kit")  # type: ignore[misc]
