"""What the service's agent for Linux writes into a core dump of whom it came from. Pure.

An ELF note of its own, a CBOR map with small integer keys.
"""

from __future__ import annotations

from typing import Any

from agent.observability.event_decode import NotDecodable, decode_cbor, plain, read_date

NOTE = (b"Memfault", 0x4154454D)
"""Name and number of the note."""

_NAMES = {
    2: "sdk_version",
    3: "captured_date",
    4: "device_serial",
    5: "hardware_version",
    6: "software_type",
    7: "software_version",
    8: "command_line",
    9: "strategy",
    10: "logs",
}


def read_metadata(body: bytes) -> dict[str, Any]:
    """Return what the note says under its names; {} when it cannot be read."""
    try:
        value = decode_cbor(body)
        if not isinstance(value, dict):
            return {}
        return {
            _NAMES[key]: read_date(item) if key == 3 else plain(item)
            for key, item in value.items()
            if key in _NAMES
        }
    except NotDecodable:
        return {}
