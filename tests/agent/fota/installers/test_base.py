from __future__ import annotations

from typing import Any

import pytest

from agent.fota.installers.base import Package, RunningVersion, restart, runs
from agent.fota.jobs import FirmwareType, Job
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport

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
