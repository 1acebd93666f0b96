"""A virtual modem whose clock the test moves, and the lines that it prints."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from at.commands.catalog import command_of
from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from at.virtual.state import StateFile

UNIX_TIME = 1_700_000_000.0


def switched_on(*lines: str, console_apart: bool = False, **options: Any) -> VirtualModem:
    """Return a modem without delays that has answered OK to `lines`; `options` are its options."""
    given = VirtualOptions(**{"instant": True, **options})
    modem = VirtualModem(given, now=0.0, unix_time=UNIX_TIME, console_apart=console_apart)
    for line in lines:
        assert "OK" in ask(modem, line), line
    return modem


def printed(modem: VirtualModem, line: str) -> str:
    """Send a command line now; return what the modem prints at once, as latin-1 text."""
    modem.receive(line.encode("latin-1") + b"\r", now=modem.kit.now)
    return modem.data_to_send().decode("latin-1")


def ask(modem: VirtualModem, line: str) -> list[str]:
    """Send a command line now; return the lines that the modem prints at once, but empty ones."""
    return [text for text in printed(modem, line).split("\r\n") if text]


def assert_answered(line: str, answer: str) -> None:
    """Assert that a kit with its radio on answers this one line, which the typed command reads."""
    told, final = ask(switched_on("AT+CFUN=1"), line)
    assert (told, final) == (answer, "OK")
    typed = command_of(line)
    if typed is not None:
        typed.parse([told])


def notices_until(modem: VirtualModem, until: float) -> list[tuple[float, str]]:
    """Return the notices up to a time, each with its own time in seconds."""
    found = []
    while modem.next_at is not None and modem.next_at <= until:
        modem.advance(modem.next_at)
        lines = modem.data_to_send().decode().split("\r\n")
        found += [(round(modem.kit.now, 2), line) for line in lines if line]
    return found


def quoted(answer: str) -> str:
    """Return the first quoted text of a reply."""
    return answer.split('"')[1]


def unpadded(text: str) -> bytes:
    """Return the bytes of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@contextmanager
def state_file(path: Path) -> Iterator[StateFile]:
    """Give the file of a kit's flash; unlock it when the block ends."""
    flash = StateFile(path)
    try:
        yield flash
    finally:
        flash.release()
