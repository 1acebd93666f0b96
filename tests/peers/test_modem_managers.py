"""Programs of others that manage modems, on the virtual modem: ModemManager, gammu, gnokii.

They wait for the CR LF that stands before each line of an answer, as V.250 has it, and take what
comes before the first one for an echo. Serial Modem prints it. The SDK's AT host does not, in any
release: it writes the modem's answer as it is. None of them can drive a real kit with it either.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.location.network_manager import gdbus, private_bus, running, wait_for_name
from tests.support.modem.served_kit import ServedKit

pytestmark = pytest.mark.peer
Serve = Callable[..., ServedKit]
PATIENCE_S = 90
NAME = "org.freedesktop.ModemManager1"
ROOT = "/org/freedesktop/ModemManager1"
DAEMON = shutil.which("ModemManager", path=f"{os.environ['PATH']}:/usr/sbin")
INSTALLS = "scripts/setup installs it"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program}: {INSTALLS}")


def printed(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.stdout + done.stderr


@needs("gammu")
@pytest.mark.parametrize("dialect", ["serial-modem", "at-host"])
def test_gammu_identifies_the_kit_where_the_line_has_its_cr_lf(
    serve: Serve, tmp_path: Path, dialect: str
) -> None:
    kit = serve("--dialect", dialect)
    profile = tmp_path / "gammurc"
    profile.write_text(f"[gammu]\ndevice = {kit.port}\nconnection = at115200\n")
    said = printed("gammu", "-c", str(profile), "identify")
    assert (kit.saved()["imei"] if dialect == "serial-modem" else "No response") in said


@needs("gammu")
def test_gammu_does_not_see_the_network_of_a_modem_without_creg(
    serve: Serve, tmp_path: Path
) -> None:
    kit = serve("--dialect", "serial-modem")
    profile = tmp_path / "gammurc"
    profile.write_text(f"[gammu]\ndevice = {kit.port}\nconnection = at115200\n")
    assert "Unknown error" in printed("gammu", "-c", str(profile), "networkinfo")


@needs("gnokii")
@pytest.mark.parametrize("dialect", ["serial-modem", "at-host"])
def test_gnokii_identifies_the_kit_where_the_line_has_its_cr_lf(
    serve: Serve, tmp_path: Path, dialect: str
) -> None:
    kit = serve("--dialect", dialect)
    profile = tmp_path / "gnokiirc"
    port = os.path.realpath(kit.port)  # it cuts long names
    profile.write_text(f"[global]\nport = {port}\nmodel = AT\nconnection = serial\n")
    said = " ".join(printed("gnokii", "--config", str(profile), "--identify").split())
    imei = kit.saved()["imei"] if dialect == "serial-modem" else "Unknown"
    assert f"IMEI : {imei}" in said


@contextmanager
def managed(kit: ServedKit, folder: Path) -> Iterator[Path]:
    """Give a kit to a ModemManager of its own, as a port of its test interface; yield its log."""
    assert DAEMON is not None
    log, port = folder / "manager.log", f"abstract:{folder}/port"
    plugins = next((Path(DAEMON).parents[1] / "lib").glob("*/ModemManager"))
    escaped = port.replace(":", "\\:")
    with private_bus(folder) as address:
        command = [
            *(DAEMON, "--test-session", "--test-enable", "--test-no-udev", "--test-no-qrtr"),
            *("--test-no-suspend-resume", "--no-auto-scan", f"--test-plugin-dir={plugins}"),
            *("--log-level=DEBUG", f"--log-file={log}", "--log-personal-info"),
        ]
        environment = {"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address}
        bridge = ["socat", f"ABSTRACT-LISTEN:{escaped}", f"FILE:{kit.port},raw,echo=0"]
        with running(["env", *(f"{k}={v}" for k, v in environment.items()), *command]):
            wait_for_name(address, NAME)
            with running(bridge):
                _wait(lambda: str(folder / "port") in Path("/proc/net/unix").read_text())
                profile = (f"{NAME}.Test.SetProfile", "kit", "generic", f"['{port}']")
                gdbus(address, NAME, ROOT, *profile)
                yield log


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs("socat")
@pytest.mark.skipif(DAEMON is None, reason=f"no ModemManager: {INSTALLS}")
@pytest.mark.parametrize(("dialect", "model"), [("serial-modem", "nRF9161-LACA"), ("at-host", "")])
def test_modem_manager_takes_the_kit_where_the_line_has_its_cr_lf(
    serve: Serve, tmp_path: Path, dialect: str, model: str
) -> None:
    kit = serve("--dialect", dialect)
    subprocess.run(
        ["socat", "-t1", "-", f"FILE:{kit.port},raw,echo=0"],
        input=b"AT+CFUN=1\r",
        timeout=PATIENCE_S,
        check=True,
    )
    with managed(kit, tmp_path) as log:
        loaded = f"] loaded model: {model}\n".encode()
        _wait(lambda: log.exists() and loaded in log.read_bytes())
