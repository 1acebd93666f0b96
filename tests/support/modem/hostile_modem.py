"""A modem on TCP whose answers, notices and log lines are full of what orders a terminal about."""

import contextlib
import re
import socketserver
import threading
from collections.abc import Iterator

_HONEST = {
    "AT": b"",
    "AT+CMEE?": b"+CMEE: 0\r\n",
    "AT+CFUN?": b"+CFUN: 1\r\n",
    "AT+CGMR": b"mfw_nrf91x1_2.0.4\r\n",
    "AT+CGSN=1": b'+CGSN: "352656100000009"\r\n',
}


@contextlib.contextmanager
def hostile_modem(text: bytes) -> Iterator[str]:
    """Serve a modem that says `text` wherever it can; give its port."""

    class Line(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            heard = b""
            with contextlib.suppress(OSError):
                while data := self.request.recv(4096):
                    *lines, heard = re.split(rb"[\r\n]", heard + data)
                    for line in filter(None, lines):
                        self.request.sendall(_answer(line.decode("ascii", "replace"), text))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Line) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def _answer(command: str, text: bytes) -> bytes:
    if (body := _HONEST.get(command)) is not None:
        return b"\r\n" + body + b"OK\r\n"
    name = re.sub(r"^AT|[=?].*", "", command).encode()
    lines = [text, name + b': "' + text + b'"', b'+CEREG: "' + text + b'"', b"<err> x: " + text]
    return b"\r\n" + b"\r\n".join([*lines, b"+CME ERROR: " + text]) + b"\r\n"
