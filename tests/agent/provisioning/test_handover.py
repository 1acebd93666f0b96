"""Each run's record reaches the command at least once and in order, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.provisioning import handover as handover_module
from agent.provisioning import record_columns
from agent.provisioning.handover import Handover, OnBoardCommand, parse_command, record_of, runnable
from agent.provisioning.ledger import BoardRecord, Ledger
from agent.provisioning.running.async_ledger import AsyncLedger
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import NOW, OTHER, UUID, ended, opened, run_of
from tests.support.provisioning.postgres import postgres_cluster
from tests.support.provisioning.virtual_tray import Tray, provision, station_of

WRITES = "import sys; open({file!r}, 'a').write(sys.stdin.read())"


def python(code: str, timeout_s: float = 30.0) -> OnBoardCommand:
    return OnBoardCommand((sys.executable, "-c", code), timeout_s)


def writes_to(file: Path) -> OnBoardCommand:
    return python(WRITES.format(file=str(file)))


def given_to(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def a_run(ledger: Ledger, uuid: str = UUID, outcome: str = "done", **columns: Any) -> str:
    """Record a run, from its beginning to its end; return its id."""
    run = run_of(uuid, **columns)
    ledger.claim(run)
    ledger.conclude(ended(run, outcome))
    ledger.release(uuid)
    return run.id


def with_runs(path: Path, *runs: tuple[str, str]) -> tuple[AsyncLedger, list[str]]:
    ledger = opened(str(path / "ledger.sqlite"))
    ledger.hands_over = True
    ids = [a_run(ledger, uuid, outcome) for uuid, outcome in runs]
    return AsyncLedger(lambda: ledger), ids


def pass_time_once(begun: Callable[[], bool], seconds: float) -> None:
    """Move the clock of the loop on: a program takes as long to start as a busy machine has it.

    More than twice the ledger's patience, whose timers are left in the loop when they are off.
    """
    loop = asyncio.get_running_loop()
    now = loop.time

    def look() -> None:
        # Beside much else a program may have begun before its limit is set.
        if begun() and any(timer.when() > now() + seconds / 2 for timer in loop._scheduled):
            loop.time = lambda: now() + seconds  # type: ignore[method-assign]
        else:
            loop.call_later(0.01, look)

    look()


async def give(ledger: AsyncLedger, command: OnBoardCommand, told: list[str] | None = None) -> bool:
    return await Handover(ledger, command, (told if told is not None else []).append).give_all()


async def test_every_run_is_given_once_with_its_board_in_the_order_in_which_they_ended(
    tmp_path: Path,
) -> None:
    ledger, ids = with_runs(tmp_path, (UUID, "failed"), (OTHER, "refused"), (UUID, "done"))
    file = tmp_path / "given"
    assert await give(ledger, writes_to(file))
    assert [(one["run"]["id"], one["run"]["outcome"]) for one in given_to(file)] == list(
        zip(ids, ["failed", "refused", "done"], strict=True)
    )
    board = await ledger.call(lambda opened: opened.board(UUID))
    assert board is not None
    assert given_to(file)[0]["board"] == record_columns.as_json(board)
    assert await give(ledger, writes_to(file))
    assert len(given_to(file)) == 3
    ledger.close()


def test_the_record_is_that_of_the_export_with_its_version() -> None:
    """docs/reference/ledger.md promises this shape."""
    run, board = run_of(), BoardRecord(UUID, updated_at=NOW)
    line = record_of(run, board)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "version": record_columns.VERSION,
        "run": record_columns.as_json(run),
        "board": record_columns.as_json(board),
    }
    assert json.loads(record_of(run_of("", reason="lone \udcff"), None))["board"] is None


async def test_a_run_that_never_told_its_board_is_given_and_one_under_way_is_not(
    tmp_path: Path,
) -> None:
    ledger, _ = with_runs(tmp_path)
    lost = run_of("", port="/dev/ttyACM3")
    await ledger.call(lambda opened: opened.record_run(ended(lost, "failed")))
    await ledger.call(lambda opened: opened.claim(run_of(UUID)))
    file = tmp_path / "given"
    assert await give(ledger, writes_to(file))
    [record] = given_to(file)
    assert (record["run"]["id"], record["run"]["port"], record["board"]) == (
        lost.id, "/dev/ttyACM3", None,
    )  # fmt: skip
    ledger.close()


async def test_what_was_cut_off_by_a_kill_is_given_once_it_was_found(tmp_path: Path) -> None:
    ledger, _ = with_runs(tmp_path)
    run = run_of(UUID)
    await ledger.call(lambda opened: opened.claim(run))
    ledger.close()  # as a kill leaves it: begun, and no more
    again, file = AsyncLedger(lambda: opened(str(tmp_path / "ledger.sqlite"))), tmp_path / "given"
    await again.call(Ledger.end_lost_runs)  # as each run begins
    assert await give(again, writes_to(file))
    [record] = given_to(file)
    assert (record["run"]["id"], record["run"]["outcome"]) == (run.id, "interrupted")
    again.close()


async def test_runs_before_a_command_was_named_and_those_of_other_stations_are_not_given(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    before = opened(path)
    a_run(before)
    before.close()
    other = opened(path, "two")
    other.hands_over = True
    a_run(other)
    other.close()
    ledger, file = AsyncLedger(lambda: opened(path)), tmp_path / "given"
    assert await give(ledger, writes_to(file))
    assert given_to(file) == []
    ledger.close()


REFUSES = "import sys; r = sys.stdin.read(); sys.stderr.write('one\\nMES is away\\n'); sys.exit(3)"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (python(REFUSES), f"{sys.executable} ended with exit code 3: MES is away"),
        (  # which was there as the run began
            OnBoardCommand(("/no-such/mes",), 30.0),
            "/no-such/mes cannot be started: No such file or directory",
        ),
    ],
    ids=["fails", "is gone"],
)
async def test_a_failing_command_keeps_the_records_and_is_told_once(
    tmp_path: Path, command: OnBoardCommand, why: str
) -> None:
    ledger, ids = with_runs(tmp_path, (UUID, "failed"), (OTHER, "done"), (UUID, "done"))
    told: list[str] = []
    handover = Handover(ledger, command, told.append)
    assert not await handover.give_all()
    assert not await handover.give_all()
    assert told == [why]
    file = tmp_path / "given"
    assert await give(ledger, writes_to(file))
    assert [one["run"]["id"] for one in given_to(file)] == ids
    ledger.close()


async def test_a_record_that_is_not_taken_holds_back_those_of_its_board_and_no_other(
    tmp_path: Path,
) -> None:
    ledger, ids = with_runs(tmp_path, (UUID, "failed"), (OTHER, "done"), (UUID, "done"))
    file = tmp_path / "given"
    code = "import sys, json; text = sys.stdin.read(); "
    code += "json.loads(text)['run']['outcome'] == 'failed' and sys.exit(1); "
    code += f"open({str(file)!r}, 'a').write(text)"
    assert not await give(ledger, python(code))
    assert [one["run"]["id"] for one in given_to(file)] == [ids[1]]
    assert await give(ledger, writes_to(file))
    assert [one["run"]["id"] for one in given_to(file)] == [ids[1], ids[0], ids[2]]
    ledger.close()


async def test_a_command_that_is_at_fault_itself_is_not_tried_with_every_record(
    tmp_path: Path,
) -> None:
    boards = [(f"{UUID[:-2]}{number:02}", "done") for number in range(20)]
    ledger, _ = with_runs(tmp_path, *boards)
    file = tmp_path / "tries"
    code = f"import sys; open({str(file)!r}, 'a').write('x'); sys.exit(1)"
    assert not await give(ledger, python(code))
    assert file.read_text() == "xxx"
    ledger.close()


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(600)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        "import subprocess; subprocess.Popen(['sleep', '600'])",
    ],
    ids=["sleeps", "ignores SIGTERM", "leaves a child"],
)
async def test_a_command_that_hangs_is_killed_after_its_time(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover_module.programs, "_GRACE_S", 0.2)
    ledger, _ = with_runs(tmp_path, (UUID, "done"), (OTHER, "done"))
    told, tries = list[str](), tmp_path / "tries"
    code = f"open({str(tries)!r}, 'a').write('x'); {code}"
    pass_time_once(lambda: tries.exists() and tries.stat().st_size > 0, 3000.0)
    assert not await give(ledger, python(code, timeout_s=3000.0), told)
    assert tries.read_text() == "x"  # not with every record: each would take as long
    assert told == [f"{sys.executable} did not end within 3000 s, or left its stderr open"]
    ledger.close()


async def test_a_command_that_reads_nothing_and_prints_for_ever_harms_nothing(
    tmp_path: Path,
) -> None:
    ledger, _ = with_runs(tmp_path, (UUID, "done"), (OTHER, "done"))
    assert await give(ledger, python("import sys; sys.stdin.close()"))
    ledger.close()
    ledger, _ = with_runs(tmp_path, (UUID, "done"))
    told: list[str] = []
    flood = "import sys\nwhile True: sys.stderr.write('x' * 4096)"
    assert not await give(ledger, python(flood, timeout_s=1.0), told)
    assert len(told[0]) < 300
    ledger.close()


async def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    ledger, _ = with_runs(tmp_path, (UUID, "done"))
    file = tmp_path / "no shell"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    quoted = " ".join(map(shlex.quote, [sys.executable, "-c", code, str(file)]))
    words = parse_command(f"{quoted} '$HOME; `id` > x'")
    assert await give(ledger, OnBoardCommand(runnable(words, "--on-board"), 30.0))
    assert file.read_text() == "$HOME; `id` > x"
    ledger.close()


@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=5))
def test_a_command_is_split_as_it_was_quoted(words: Sequence[str]) -> None:
    assert parse_command(shlex.join(words)) == tuple(words)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "is empty"), ("'half", "No closing quotation"), ("no-such-program x", "no-such-program"),
     ("/etc", "no program")],
)  # fmt: skip
def test_a_command_that_cannot_be_run_is_refused_before_any_board(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        runnable(parse_command(text), "--on-board")
    assert "--on-board" in str(refused.value)
    assert refused.value.hint


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with postgres_cluster() as url:
        yield url


async def test_two_runs_of_one_station_give_each_record_once(cluster: str, tmp_path: Path) -> None:
    first, second = opened(cluster), opened(cluster)
    first.hands_over = second.hands_over = True
    ids = [a_run(ledger, uuid) for ledger in (first, second) for uuid in (UUID, OTHER)]
    ledgers, file = [AsyncLedger(lambda: first), AsyncLedger(lambda: second)], tmp_path / "given"
    given = await asyncio.gather(*(give(one, writes_to(file)) for one in ledgers))
    assert given == [True, True]
    assert [one["run"]["id"] for one in given_to(file)] == ids
    for one in ledgers:
        one.close()


async def test_a_tray_is_given_while_it_runs_and_what_is_left_by_the_next_run(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover_module, "RETRY_S", 1e6)  # the end of a board alone begins a round
    file, told = tmp_path / "given", list[str]()
    async with station_of(standin, tmp_path) as station:
        async with Handover(station.ledger, writes_to(file), told.append) as handover:
            for outcome in await provision(station, Tray(tmp_path), 3):
                handover.board_ended()
                assert outcome.ok
            async with asyncio.timeout(60):
                while not file.exists() or file.read_text().count("\n") < 3:  # noqa: ASYNC110 - a program tells nobody
                    await asyncio.sleep(0.01)
            assert await handover.finish()
        assert {one["run"]["outcome"] for one in given_to(file)} == {"done"}
        assert all(one["board"]["certificate_serial"] for one in given_to(file))
        async with Handover(station.ledger, python(REFUSES), told.append) as handover:
            await provision(station, Tray(tmp_path), 3)
            assert not await handover.finish()
        async with Handover(station.ledger, writes_to(file), told.append) as handover:
            assert await handover.finish()
    assert [one["run"]["outcome"] for one in given_to(file)].count("unchanged") == 3
    assert len({one["run"]["id"] for one in given_to(file)}) == len(given_to(file)) == 6


async def test_one_round_is_made_for_a_board_that_ended_and_not_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(handover_module, "RETRY_S", 1e6)
    rounds = 0

    class Counted(Handover):
        async def give_all(self) -> bool:
            nonlocal rounds
            rounds += 1
            return await super().give_all()

    ledger, _ = with_runs(tmp_path)
    async with Counted(ledger, python(""), print) as handover:
        while not rounds:
            await ledger.call(lambda _ledger: None)
        handover.board_ended()
        for _ in range(50):
            await ledger.call(lambda _ledger: None)
        assert rounds == 2
    ledger.close()


async def test_a_run_that_is_cancelled_ends_the_command_and_gives_its_record_again(
    tmp_path: Path,
) -> None:
    ledger, [run] = with_runs(tmp_path, (UUID, "done"))
    ready, file = tmp_path / "ready", tmp_path / "given"
    os.mkfifo(ready)
    slow = f"open({str(ready)!r}, 'w').write('x'); import time; time.sleep(600)"
    async with Handover(ledger, python(slow), pytest.fail):
        assert await asyncio.to_thread(ready.read_text) == "x"
    assert await give(ledger, writes_to(file))
    assert [one["run"]["id"] for one in given_to(file)] == [run]
    ledger.close()
