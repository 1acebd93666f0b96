from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.fota.install import NotSeen, read_back
from agent.fota.installers.base import InstallFailed, Package
from agent.fota.installers.serial_modem import SerialModemInstaller
from agent.fota.jobs import FirmwareType, Job
from at.driver.modem import Modem
from at.protocol.errors import ModemReset, ParseError
from at.virtual.transport import VirtualTransport
from tests.support.fota.signed_images import signed_image
from tests.support.harness.manual_clock import ManualClock
from tests.support.modem.damaged_line import DamagedLine
from tests.support.modem.line_modem import LineModem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BODY = bytes(range(256)) * 50
DELTA = b"\1\2\3" * 2000 + b"mfw_nrf91x1_2.0.9" + bytes(1000)


@asynccontextmanager
async def kit(**options: Any) -> AsyncIterator[Modem]:
    modem = Modem(VirtualTransport(**{"dialect": "serial-modem", "instant": True, **options}))
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


def package(path: Path, kind: FirmwareType, version: str) -> Package:
    return Package(Job("j", kind, "h", ("p",), path.stat().st_size, version), (path,), version)


async def test_an_application_goes_over_the_uart_and_is_seen(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    new = package(signed_image(tmp_path, "2.0.1", body=BODY), FirmwareType.APP, "v2.0.1")
    async with kit() as modem:
        installer = SerialModemInstaller(modem)
        assert await installer.check(new.job) == ""
        before = await installer.running(FirmwareType.APP)
        assert before is not None
        await installer.install(new, lambda *at: seen.append(at))
        version = await read_back(installer, new, before=before.version, clock=ManualClock())
    assert version.lstrip("v").startswith("2.0.1")
    assert seen[-1][1:] == (new.job.size_bytes, new.job.size_bytes)


async def test_a_modem_delta_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(DELTA)
    new = package(path, FirmwareType.MODEM, "mfw_nrf91x1_2.0.9")
    async with kit() as modem:
        installer = SerialModemInstaller(modem)
        await installer.install(new, lambda *_: None)
        assert await read_back(installer, new, before="", clock=ManualClock()) == new.version


async def test_an_image_that_the_kit_does_not_take_is_named(tmp_path: Path) -> None:
    path = tmp_path / "junk.bin"
    path.write_bytes(b"junk" * 100)
    async with kit() as modem:
        with pytest.raises(InstallFailed, match="did not take the image"):
            await SerialModemInstaller(modem).install(
                package(path, FirmwareType.APP, "2.0.1"), lambda *_: None
            )


async def test_a_kit_that_restarts_meanwhile_refuses_nothing(tmp_path: Path) -> None:
    # It has forgotten that an update was begun, and answers ERROR to the next bytes: the install
    # begins anew, as after any loss of the link.
    new = package(signed_image(tmp_path, "2.0.1", body=BODY), FirmwareType.APP, "v2.0.1")
    async with kit() as modem, asyncio.TaskGroup() as others:
        installer = SerialModemInstaller(modem)
        with pytest.raises(ModemReset, match="restarted"):
            await installer.install(
                new, lambda *_: others.create_task(modem.execute("AT#XRESET")) and None
            )
        await installer.install(new, lambda *_: None)


@pytest.mark.parametrize(
    "command",
    ["AT#XDFUINIT", "AT#XDFUWRITE=0,0", "AT#XDFUWRITE=0,4096", "AT#XDFUAPPLY", "AT#XRESET"],
)
async def test_one_byte_that_the_line_loses_fails_no_install(tmp_path: Path, command: str) -> None:
    new = package(signed_image(tmp_path, "2.0.1", body=BODY), FirmwareType.APP, "v2.0.1")
    line = DamagedLine(command)
    modem = Modem(line)
    await modem.open()
    try:
        installer = SerialModemInstaller(modem)
        await installer.install(new, lambda *_: None)
        version = await read_back(installer, new, before="v1.0.0", clock=ManualClock())
    finally:
        await modem.close()
    assert (version, line.done) == ("v2.0.1", True)


async def test_a_question_that_came_damaged_rejects_no_job(tmp_path: Path) -> None:
    new = package(signed_image(tmp_path, "2.0.1", body=BODY), FirmwareType.APP, "v2.0.1")
    modem = Modem(DamagedLine("AT#XSMVER"))
    await modem.open()
    try:
        installer = SerialModemInstaller(modem)
        with pytest.raises(ParseError, match="as nothing, then as v1"):
            await installer.check(new.job)
        assert await installer.check(new.job) == ""
    finally:
        await modem.close()


async def test_a_revert_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(DELTA)
    new = package(path, FirmwareType.MODEM, "mfw_nrf91x1_2.0.9")
    async with kit(faults=("update-reverted",)) as modem:
        installer = SerialModemInstaller(modem)
        before = await installer.running(FirmwareType.MODEM)
        assert before is not None
        await installer.install(new, lambda *_: None)
        with pytest.raises(NotSeen, match="as before"):
            await read_back(installer, new, before=before.version, clock=ManualClock())


@asynccontextmanager
async def kit_that_tells(*revisions: str) -> AsyncIterator[SerialModemInstaller]:
    """Open a kit that answers AT+CGMR so, one after the other, and with the last from then on."""
    told = list(revisions)

    def body(command: str) -> str:
        if command != "AT+CGMR":
            return ""
        return told.pop(0) if len(told) > 1 else told[0]

    modem = Modem(LineModem(body).transport, dialect="serial-modem")
    await modem.open()
    try:
        yield SerialModemInstaller(modem)
    finally:
        await modem.close()


RUNS = "mfw_nrf91x1_2.0.4"
DAMAGED = "mfw_nrf91x1_2.0."


@pytest.mark.parametrize("first", [f"net: up\r\n{RUNS}", DAMAGED], ids=["a print", "a loss"])
async def test_a_version_that_came_damaged_rejects_no_job(tmp_path: Path, first: str) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(DELTA)
    job = package(path, FirmwareType.MODEM, "mfw_nrf91x1_2.0.9").job
    async with kit_that_tells(first, RUNS) as installer:
        with pytest.raises(ParseError):
            await installer.check(job)
        assert await installer.check(job) == ""


async def test_a_version_that_can_never_be_read_rejects_the_job_and_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(DELTA)
    job = package(path, FirmwareType.MODEM, "mfw_nrf91x1_2.0.9").job
    async with kit_that_tells(f"build 7\r\n{RUNS}") as installer:
        reason = await installer.check(job)
    assert reason.startswith(
        "the kit does not tell which MODEM it runs: no success could be seen ("
    )
    assert reason.endswith(", 3 times alike)")
    async with kit_that_tells(*(f"[{at}] up\r\n{RUNS}" for at in range(9))) as installer:
        with pytest.raises(ParseError):
            await installer.check(job)


async def test_a_version_that_came_damaged_is_no_other_than_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(DELTA)
    unnamed = package(path, FirmwareType.MODEM, "")
    async with kit_that_tells(DAMAGED, RUNS) as installer:
        with pytest.raises(NotSeen, match="as before"):
            await read_back(installer, unnamed, before=RUNS, clock=ManualClock())


async def test_another_firmware_on_the_kit_is_refused_before_the_download(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"a")
    async with kit(dialect="at-host") as modem:
        reason = await SerialModemInstaller(modem).check(
            package(path, FirmwareType.APP, "2.0.1").job
        )
    assert "does not run Serial Modem" in reason
