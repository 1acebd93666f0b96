from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent.fota.installers.base import Package, RunningVersion, restart, running_by_at, runs
from agent.fota.jobs import FirmwareType, Job
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

JOB = Job("job-1", FirmwareType.APP, "h.example", ("a.bin",), 1)


@pytest.mark.parametrize(
    ("version", "image_hash", "running", "seen"),
    [
        ("2.0.1", "aa", RunningVersion("9.9.9", "aa"), True),
        ("2.0.1", "aa", RunningVersion("2.0.1", "bb"), False),
        ("2.0.1", "aa", RunningVersion("v2.0.1"), True),
        ("2.0.1", "", RunningVersion("2.0.1", "bb"), True),
        ("2.0.1", "", RunningVersion("1.0.0"), False),
        ("", "", RunningVersion("2.0.1"), True),
        ("", "", RunningVersion("1.0.0"), False),
        ("", "", RunningVersion(""), False),
    ],
)
def test_the_image_hash_decides_then_the_version_then_that_it_changed(
    version: str, image_hash: str, running: RunningVersion, seen: bool
) -> None:
    package = Package(JOB, (), version, image_hash)
    assert runs(package, running, before="1.0.0") is seen


async def test_a_kit_that_takes_its_restart_is_asked_for_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modem, asked = Modem(VirtualTransport(dialect="serial-modem", instant=True)), list[str]()
    await modem.open()
    execute = modem.execute

    async def noted(line: str, **options: Any) -> object:
        asked.append(line)
        return await execute(line, **options)

    monkeypatch.setattr(modem, "execute", noted)
    await restart(modem, FirmwareType.MODEM, 5.0)
    await modem.close()
    assert asked == ["AT#XMODEMRESET"]


@pytest.mark.parametrize("trouble", ["unreadable", "restarts", "silent"])
def test_a_kit_that_cannot_say_what_it_runs_says_it_later(trouble: str) -> None:
    """A command of one that is silent times out, and the next one finds that nothing answers."""
    is_well = True

    def body(command: str) -> str:
        if command == "AT+CGMR" and trouble == "restarts" and not is_well:
            asyncio.get_running_loop().call_soon(far.say, "Ready")
        return "mfw_nrf91x1_2.0.4" if is_well or trouble != "unreadable" else ""

    def delay(command: str) -> float:
        is_late = trouble == "silent" or (trouble == "restarts" and command == "AT+CGMR")
        return 60.0 if is_late and not is_well else 0.0

    async def session() -> None:
        nonlocal is_well
        modem = Modem(far.transport)
        await modem.open()
        for is_well in (True, False, False):
            told = await running_by_at(modem, FirmwareType.MODEM)
            assert told == (RunningVersion("mfw_nrf91x1_2.0.4") if is_well else None)
        await modem.close()

    far = LineModem(body, delay)
    virtual_time.run(session())
