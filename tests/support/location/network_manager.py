"""A private D-Bus daemon with NetworkManager's mock on it, started and ended by the test."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CONFIGURATION = """<busconfig>
  <type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/>
  <allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>"""
MOCK_TOOL = ("/usr/bin/python3", "-m", "dbusmock")
_NAME = "org.freedesktop.NetworkManager"
MOCK = "org.freedesktop.DBus.Mock"
WIRELESS = f"{_NAME}.Device.Wireless"
_SCANNED = (
    f"of.UpdateProperties('{WIRELESS}', "
    f"{{'LastScan': dbus.Int64(of.Get('{WIRELESS}', 'LastScan') + 1)}})"
)
"""What the mock does at the end of a scan, `of` being the device."""


@dataclass(frozen=True, slots=True)
class MockedNetworkManager:
    """The mock: `address` is the bus; `call` reaches its methods."""

    address: str

    def call(self, path: str, method: str, *arguments: str) -> str:
        """Call a method, "interface.name", with arguments as `gdbus` writes them."""
        return gdbus(self.address, _NAME, path, method, *arguments).stdout.strip()

    def add_wifi_device(self) -> str:
        """Add a Wi-Fi device that scans when asked to; return its path."""
        answer = self.call("/org/freedesktop/NetworkManager", f"{MOCK}.AddWiFiDevice",
                           "mock_wifi", "wlan0", "100")  # fmt: skip
        path = answer.split("'")[1]
        self.call(path, f"{MOCK}.AddProperty", WIRELESS, "LastScan", "<int64 1000>")
        # The template's own RequestScan does nothing; this one makes the scan's end known.
        self.scan_does(path, f"of = self; {_SCANNED}")
        return path

    def scan_does(self, path: str, code: str) -> None:
        """Let RequestScan run Python code in the mock."""
        self.call(path, f"{MOCK}.AddMethod", WIRELESS, "RequestScan", "a{sv}", "", code)

    def scan_takes(self, path: str, *, ms: int) -> None:
        """Let a scan end, and that be known, some time after it was asked for."""
        later = f"GLib.timeout_add({ms}, lambda of=self: {_SCANNED})"
        self.scan_does(path, f"from gi.repository import GLib; {later}")

    def scan_loses(self, path: str, name: str, *properties: str) -> None:
        """Let an access point have some of its properties no more after a scan."""
        point = f"objects['/org/freedesktop/NetworkManager/AccessPoint/{name}']"
        lost = [f"{point}.props['{_NAME}.AccessPoint'].pop('{each}')" for each in properties]
        self.scan_does(path, "; ".join([*lost, "of = self", _SCANNED]))

    def add_access_point(self, device: str, name: str, ssid: str, mac: str, strength: int) -> None:
        """Let the device hear an access point on channel 6."""
        mode, frequency, rate, security = "2", "2437", "54000", "0"
        self.call("/org/freedesktop/NetworkManager", f"{MOCK}.AddAccessPoint", device, name, ssid,
                  mac, mode, frequency, rate, f"byte {strength}", security)  # fmt: skip


REFUSALS_OF_A_BUS = {
    "it refuses this user": {b"AUTH": b"REJECTED EXTERNAL\r\n"},
    "it speaks another protocol": {b"AUTH": b"HTTP/1.1 400 Bad Request\r\n\r\n"},
    "its messages are none": {
        b"AUTH": b"OK 0123456789abcdef0123456789abcdef\r\n",
        b"Hello": b"l\2\1\1" + b"\xff" * 12,
    },
}
"""What a system bus that serves nobody answers to what a client says."""


@contextmanager
def bus_that_says(folder: Path, answers: Mapping[bytes, bytes]) -> Iterator[str]:
    """Serve a socket that gives each client these answers, and then no more; yield its address."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "bus"))
        server.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        for said, answer in answers.items():
                            while said not in (heard := client.recv(4096)) and heard:
                                pass
                            client.sendall(answer)
                        while client.recv(4096):
                            pass

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"unix:path={folder}/bus"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


@contextmanager
def private_bus(folder: Path) -> Iterator[str]:
    """Start a daemon and yield its address; skip the test where the machine lacks it or a mock."""
    missing = [name for name in ("dbus-daemon", "gdbus") if shutil.which(name) is None]
    if (
        missing
        or subprocess.run([*MOCK_TOOL, "--help"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs a D-Bus and its mock: apt-get install dbus-daemon python3-dbusmock "
                    "python3-gi libglib2.0-bin")  # fmt: skip
    configuration = folder / "bus.conf"
    configuration.write_text(CONFIGURATION.format(socket=folder / "bus"))
    address = f"unix:path={folder / 'bus'}"
    with running(
        ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"]
    ) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith(address)
        yield address


@contextmanager
def mocked_network_manager(folder: Path) -> Iterator[MockedNetworkManager]:
    """Start the daemon and the mock; skip the test where the machine lacks them."""
    with private_bus(folder) as address:
        environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address}
        with running([*MOCK_TOOL, "--system", "--template", "networkmanager"], environment):
            wait_for_name(address, _NAME)
            yield MockedNetworkManager(address)


@contextmanager
def running(
    command: list[str], environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def gdbus(
    address: str, to: str, path: str, method: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["gdbus", "call", "--address", address, "--dest", to, "--object-path", path,
         "--method", method, *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip


def wait_for_name(address: str, name: str) -> None:
    """Return once the mock is on the bus."""
    for _ in range(600):
        owner = gdbus(address, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                       "org.freedesktop.DBus.NameHasOwner", name)  # fmt: skip
        if "true" in owner.stdout:
            return
        time.sleep(0.02)  # another process starts up; there is no event to wait for
    raise AssertionError("the mock did not appear on the bus")
