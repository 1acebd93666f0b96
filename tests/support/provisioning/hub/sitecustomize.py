"""Loaded by the bench's interpreter: the terminals that HUB names are kits on a USB hub.

HUB is a JSON file, [{"device", "serial", "place"}, …], read at each look: kits come and go.
"""

import json
import os
from pathlib import Path

from serial.tools import list_ports, list_ports_common

_hub = Path(os.environ["HUB"])


def _on_the_hub(*_arguments, **_settings):
    ports = []
    for kit in json.loads(_hub.read_text()):
        port = list_ports_common.ListPortInfo(kit["device"])
        port.vid, port.pid, port.serial_number = 0x1366, 0x1059, kit["serial"]
        port.location = f"{kit['place']}:1.0"
        port.hwid = f"USB VID:PID=1366:1059 SER={kit['serial']} LOCATION={port.location}"
        port.description = "virtual modem"
        ports.append(port)
    return ports


list_ports.comports = _on_the_hub
