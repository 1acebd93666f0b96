"""Wi-Fi through `iw`, where NetworkManager is not: real dBm, a fresh scan only for root."""

import asyncio
import itertools
import re
from dataclasses import dataclass

from agent.location.access_points import AccessPoint, channel_of
from agent.location.wifi.scanner import ANOTHER_SOURCE, WifiScan, WifiUnavailable
from agent.programs import KILL, send_signal

_BSS = re.compile(r"^BSS ([0-9a-f:]{17})", re.MULTILINE)
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_INTERFACE = re.compile(r"^\s*Interface (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Iw:
    """The `iw` program of the host."""

    program: str = "iw"

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan on every interface; where that is not permitted, list what the kernel remembers."""
        points: list[AccessPoint] = []
        notes: list[str] = []
        code, listing, error = await self._run(deadline_s, "dev")
        interfaces = _INTERFACE.findall(listing)
        if code or not interfaces:
            reason = error.strip() or "it lists no interface"
            raise WifiUnavailable(
                f"iw finds no Wi-Fi interface on this host: {reason.rstrip('.')}",
                hint=ANOTHER_SOURCE,
            )
        for interface in interfaces:
            code, output, error = await self._run(deadline_s, "dev", interface, "scan")
            if code:
                needs_root = "Operation not permitted" in error
                why = "needs root" if needs_root else f"failed: {error.strip() or f'exit {code}'}"
                notes.append(f"{interface}: a fresh scan {why}; this is the kernel's last one")
                code, output, error = await self._run(deadline_s, "dev", interface, "scan", "dump")
            if code:
                raise WifiUnavailable(f"iw cannot scan on {interface}: {error.strip()}")
            points += parse_iw(output)
        return WifiScan("iw", tuple(points), tuple(notes))

    async def _run(self, deadline_s: float, *arguments: str) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                self.program, *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise WifiUnavailable(
                f"{self.program} cannot be started: {error.strerror}",
                hint=f"install it, on Debian with `sudo apt-get install iw`; {ANOTHER_SOURCE}",
            ) from error
        try:
            async with asyncio.timeout(deadline_s):
                output, errors = await process.communicate()
        except TimeoutError as error:
            raise WifiUnavailable(f"iw did not end within {deadline_s:g} s") from error
        finally:
            if process.returncode is None:
                send_signal(process, KILL)
                await process.wait()
        text, complaint = output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")
        return process.returncode or 0, text, complaint


def parse_iw(text: str) -> list[AccessPoint]:
    """Return the access points of the output of `iw dev IF scan`."""
    points: list[AccessPoint] = []
    starts = [match.start() for match in _BSS.finditer(text)] + [len(text)]
    for start, end in itertools.pairwise(starts):
        block = text[start:end]
        match, signal = _BSS.match(block), _field(block, r"signal: (-?\d+(?:\.\d+)?) dBm")
        if match is None or signal is None:
            continue
        frequency, age = _field(block, r"freq: (\d+)"), _field(block, r"last seen: (\d+) ms ago")
        frequency_mhz = int(frequency) if frequency else None
        points.append(
            AccessPoint(
                bssid=match.group(1),
                rssi_dbm=round(float(signal)),
                ssid=unescape_ssid(_field(block, r"SSID: (.*)") or ""),
                channel=channel_of(frequency_mhz) if frequency_mhz else None,
                frequency_mhz=frequency_mhz,
                age_s=int(age) / 1000 if age else None,
            )
        )
    return points


def unescape_ssid(text: str) -> bytes:
    r"""Return the bytes of an SSID as iw prints it: what is not printable stands as \xNN."""
    return _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), text.encode())


def _field(block: str, pattern: str) -> str | None:
    match = re.search(rf"^\s*{pattern}", block, re.MULTILINE)
    return match.group(1) if match else None
