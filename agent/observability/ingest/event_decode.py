"""Decodes a device's events: CBOR with integer keys, to the names of the JSON interface. Pure."""

import io
import math
from collections.abc import Mapping
from datetime import UTC, datetime

from agent.json_value import JSONValue
from agent.observability.ingest.chunks import DeviceMessage

MAX_DEPTH = 16
"""Levels of arrays and maps: a device needs five."""
MAX_VALUES = 200_000
"""Values of one event."""

_TOP = {
    1: "captured_date",
    2: "type",
    3: "schema_version",
    4: "event_info",
    5: "user_info",
    6: "hardware_version",
    7: "device_serial",
    8: "release_version",
    9: "software_version",
    10: "software_type",
    11: "build_id",
}
_TYPES = {1: "heartbeat", 2: "trace", 3: "log_error", 4: "logs", 5: "cdr", 6: "logs"}
_HEARTBEAT = {1: "metrics", 2: "session"}
_TRACE = {
    1: "reason",
    2: "pc",
    3: "lr",
    4: "mcu_reset_register",
    5: "coredump_saved",
    6: "user_reason",
    7: "status_code",
    8: "log",
    9: "compact_log",
}
_LOG_ERROR = {1: "log"}
_CDR = {1: "duration_ms", 2: "mimetypes", 3: "reason", 4: "data"}
_LEVELS = {0: "debug", 1: "info", 2: "warning", 3: "error"}
_INFO = {1: _HEARTBEAT, 2: _TRACE, 3: _LOG_ERROR, 5: _CDR}
_LOGS = 4
_LOGS_WITH_TIMES = 6


Event = dict[str, JSONValue]


class NotDecodable(ValueError):
    """The payload is not the CBOR of an event. It is forwarded all the same."""


def decode_payload(message: DeviceMessage) -> Event | list[Event] | None:
    """Return the events of an event, log or CDR message: one object, or a list of several.

    None for the kinds that are no CBOR. Raises NotDecodable.
    """
    if message.kind not in ("event", "log", "cdr"):
        return None
    value = decode_cbor(message.payload)
    if isinstance(value, list):
        return [_event(item) for item in value]
    return _event(value)


class _Budget:
    """How many values are left: with shared references a few bytes can stand for millions."""

    def __init__(self) -> None:
        self.left = MAX_VALUES

    def spend(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise NotDecodable("the event refers to itself, or to more values than can be shown")


def json_value(value: object) -> JSONValue:
    """Return `value` as JSON: bytes as {"hex": ...}, numbers out of range and tags as text.

    Raises NotDecodable when it stands for more than MAX_VALUES values.
    """
    return _plain(value, _Budget(), 0)


def _plain(value: object, budget: _Budget, depth: int) -> JSONValue:
    budget.spend(depth)
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, budget, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, budget, depth + 1) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return hex(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def decode_cbor(payload: bytes) -> object:
    """Return the one value that `payload` holds. Raises NotDecodable.

    A text may end inside a character: a device cuts the lines that it keeps by their bytes.
    """
    import cbor2

    stream = io.BytesIO(payload)
    try:
        value = cbor2.CBORDecoder(stream, str_errors="replace", max_depth=MAX_DEPTH).decode()
    except (cbor2.CBORDecodeError, RecursionError, ValueError, TypeError, OverflowError) as exc:
        raise NotDecodable(f"not decodable as CBOR: {exc}") from exc
    if stream.tell() != len(payload):
        raise NotDecodable(f"{len(payload) - stream.tell()} bytes follow the event")
    return value


def _event(value: object) -> Event:
    if not isinstance(value, dict):
        raise NotDecodable("the event is no map")
    kind = value.get(2)
    event: Event = {}
    for key, item in value.items():
        name = _TOP.get(key, str(key)) if isinstance(key, int) else str(key)
        if name == "type":
            event[name] = _name_in(_TYPES, item)
        elif name == "captured_date":
            event[name] = date_text(item)
        elif name == "build_id" and isinstance(item, bytes):
            event[name] = item.hex()
        elif name == "event_info":
            event[name] = _event_info(kind, item)
        else:
            event[name] = json_value(item)
    if event.get("schema_version") == 1:
        event.setdefault("sdk_version", "0.5.0")
    return event


def _event_info(kind: object, info: object) -> JSONValue:
    if kind in (_LOGS, _LOGS_WITH_TIMES) and isinstance(info, list):
        return _logs(info, timed=kind == _LOGS_WITH_TIMES)
    names = _INFO.get(kind) if isinstance(kind, int) else None
    if names is None or not isinstance(info, dict):
        return json_value(info)
    return {
        names.get(key, str(key)) if isinstance(key, int) else str(key): json_value(item)
        for key, item in info.items()
    }


def _logs(flat: list[object], *, timed: bool) -> list[JSONValue]:
    width = 3 if timed else 2
    if len(flat) % width:
        raise NotDecodable(f"{len(flat)} values are no whole number of log lines")
    lines: list[JSONValue] = []
    for at in range(0, len(flat), width):
        *times, level, text = flat[at : at + width]
        line: dict[str, JSONValue] = {"timestamp": json_value(times[0])} if timed else {}
        line["level"] = _name_in(_LEVELS, level)
        line["text"] = json_value(text)
        lines.append(line)
    return lines


def _name_in(names: Mapping[int, str], value: object) -> JSONValue:
    """Return the name of a number; any other value as JSON."""
    return (isinstance(value, int) and names.get(value)) or json_value(value)


def date_text(value: object) -> JSONValue:
    """Return unix seconds as the service writes times; any other value as JSON."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError, OSError):
            pass
    return json_value(value)
