"""Loaded by the peer's interpreter: the test's terminal is among the ports that pyserial lists.

Some tools take no port but one of that list. The tools themselves are left as they were released.
"""

import os

from serial.tools import list_ports, list_ports_common

_device = os.environ["PEER_TERMINAL"]
_listed = list_ports.comports


def _with_terminal(*arguments, **settings):
    port = list_ports_common.ListPortInfo(_device)
    port.hwid = "USB VID:PID=1366:1059 SER=001051200001 LOCATION=1-1:1.0"
    port.description = "virtual modem"
    port.vid, port.pid, port.serial_number = 0x1366, 0x1059, "001051200001"
    return [*_listed(*arguments, **settings), port]


list_ports.comports = _with_terminal
