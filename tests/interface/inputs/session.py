"""Send AT commands, the arguments, on the port in CELLAGENT_PORT; each once the last is done."""

from __future__ import annotations

import os
import re
import sys
import tty

port = os.open(os.environ["CELLAGENT_PORT"], os.O_RDWR | os.O_NOCTTY)
tty.setraw(port)
for line in sys.argv[1:]:
    os.write(port, line.encode() + b"\r")
    heard = b""
    while not re.search(rb"(?m)^(OK|ERROR|\+CM[ES] ERROR: .*)\r$", heard):
        heard += os.read(port, 1000)
