"""The companion's own port: an ESP-AT that stands beside the modem and hears what is around it."""

from __future__ import annotations

from at.virtual.families import wifi
from at.virtual.kit import Kit, fail, ok
from at.virtual.request import BadRequest, read_request

_SCAN_LIMIT = 256  # bytes in one command, as ESP-AT has it


class Companion:
    """Answers ESP-AT on a port of its own, out of the kit's state. It echoes until ATE0."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._line = bytearray()
        self._echo = True
        self._out = bytearray()

    def receive(self, data: bytes) -> None:
        """Take bytes that were typed at the port."""
        for byte in data:
            if self._echo:
                self._out.append(byte)
            if byte == 0x0A:
                self._run(bytes(self._line).rstrip(b"\r").decode("latin-1"))
                self._line.clear()
            elif len(self._line) < _SCAN_LIMIT:
                self._line.append(byte)

    def data_to_send(self) -> bytes:
        """Take the bytes that the companion printed."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def _run(self, text: str) -> None:
        if not text:
            return
        if text.upper() in {"ATE0", "ATE1"}:
            self._echo = text.endswith("1")
            answer = ok()
        else:
            try:
                request = read_request(text)
                handler = wifi.COMMANDS.get(request.name)
                if handler is not None:
                    answer = handler(self._kit, request)
                else:
                    answer = fail() if request.name else ok()
            except BadRequest:
                answer = fail()
        for line in answer.lines:
            self._out += line.encode("latin-1", "replace") + b"\r\n"
        self._out += b"\r\nERROR\r\n" if answer.failed else b"\r\nOK\r\n"
