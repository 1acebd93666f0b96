"""A thousand tests of sixteen processes on four kits: no two tests ever have the same one."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from tests.support.commands.user_project import UserProject
from tests.support.modem.served_kit import launched

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "leases"
KITS = 4
# A file that must not be there yet says that another test has the kit; the log, which kit it was.
TEST = """
import os
from pathlib import Path
import pytest
import serial

@pytest.mark.parametrize("number", range({count}))
def test_it(kit_port, number):
    held = Path(kit_port + ".held")
    os.close(os.open(held, os.O_CREAT | os.O_EXCL))
    with serial.Serial(kit_port, timeout=10) as port:
        port.write(b"AT+CGSN\\r")
        imei = port.read_until(b"OK\\r\\n").split()[0].decode()
    with open({log!r}, "a") as log:
        log.write(imei + "\\n")
    held.unlink()
"""


def run(smoke: bool) -> Iterator[Row]:
    count, workers = (40, 4) if smoke else (1000, 16)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log"
        project = UserProject(folder / "project")
        project.write("test_it.py", TEST.format(count=count, log=str(log)))
        kits = launched(folder, "--count", str(KITS))
        try:
            assert kits.process.stdout is not None
            ports = json.loads(kits.process.stdout.readline())["ports"]
            words = [f"--cellagent-kit={port}" for port in ports]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", f"-n{workers}", "--tb=line", *words],
                cwd=project.folder, capture_output=True, text=True, check=False,
                env={**os.environ, "CELLAGENT_STATE_DIR": str(folder / "leases")},
            )  # fmt: skip
        finally:
            kits.stop()
        used = collections.Counter(log.read_text().split())
    print(done.stdout, file=sys.stderr) if done.returncode else None
    shares = ", ".join(str(number) for number in sorted(used.values()))
    yield Row("tests", sum(used.values()), "tests", control=f"{workers} processes; a kit: {shares}")
    yield Row("tests that shared a kit or failed", count - sum(used.values()), "tests", 0,
              fault="kits that several tests want", injected=count)  # fmt: skip
    yield Row("kits that no test had", KITS - len(used), "kits", 0)
