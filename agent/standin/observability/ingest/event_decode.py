"""Events of the SDK, decoded from CBOR; their fields are named as in the events push. Pure."""

import io
import math
from dataclasses import dataclass

import cbor2

from agent.json_value import JSONValue
from agent.standin.observability.ingest.event_schema import MAX_EVENTS

MAX_DEPTH = 32
MAX_VALUES = 200_000

_TYPES = {
    1: "heartbeat",
    2: "trace",
    3: "log-error",
    4: "log",
    5: "custom-data-recording",
    6: "log",
}
_TEXTS = {
    6: "hardware_version",
    7: "device_serial",
    8: "release_version",
    9: "software_version",
    10: "software_type",
}
_CAPTURED, _TYPE, _SCHEMA, _EVENT_INFO, _USER_INFO, _BUILD_ID = 1, 2, 3, 4, 5, 11
_TRACE_FIELDS = {
    1: "reason",
    2: "pc",
    3: "lr",
    4: "reset_register",
    5: "coredump_saved",
    6: "user_reason",
    7: "status_code",
    8: "log",
    9: "compact_log",
}
_LEVELS = {0: "debug", 1: "info", 2: "warning", 3: "error"}
_TIMED_LOGS = 6
_LARGEST_SECONDS = 253_402_300_799  # the last second that a date can name, 9999-12-31


class BadEvent(ValueError):
    """The bytes are not an event of the SDK."""


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One event as the device wrote it; `fields` are named as in the events push."""

    type: str
    captured_unix_s: int | None
    fields: dict[str, JSONValue]


def parse_events(payload: bytes) -> list[DeviceEvent]:
    """Parse one CBOR event, or an array of events of a device that batches. Raises BadEvent."""
    stream = io.BytesIO(payload)
    try:
        value = cbor2.CBORDecoder(stream, max_depth=MAX_DEPTH).decode()
    except (cbor2.CBORDecodeError, ValueError, OverflowError, TypeError, RecursionError) as error:
        raise BadEvent(f"it is no CBOR: {error}") from error
    if stream.tell() != len(payload):
        raise BadEvent(f"{len(payload) - stream.tell()} bytes follow the event")
    _refuse_oversized(value)
    items = value if isinstance(value, list) else [value]
    if not 0 < len(items) <= MAX_EVENTS:
        raise BadEvent(f"{len(items)} events in one message")
    return [_event(item) for item in items]


def _refuse_oversized(value: object) -> None:
    """Raise BadEvent for a value too deep or too large: shared references can make it huge."""
    pending: list[tuple[object, int]] = [(value, 0)]
    count = 0
    while pending:
        item, depth = pending.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise BadEvent("it is nested too deep or holds too many values")
        if isinstance(item, dict):
            pending += ((inner, depth + 1) for pair in item.items() for inner in pair)
        elif isinstance(item, list | tuple | set | frozenset):
            pending += ((inner, depth + 1) for inner in item)


def _event(item: object) -> DeviceEvent:
    if not isinstance(item, dict):
        raise BadEvent("an event is a map")
    number = item.get(_TYPE)
    if type(number) is not int or number not in _TYPES:
        raise BadEvent(f"event type {number!r} is not known")
    fields: dict[str, JSONValue] = {}
    for key, name in _TEXTS.items():
        if key in item:
            if not isinstance(item[key], str):
                raise BadEvent(f"{name} is no text")
            fields[name] = item[key]
    if item.get(_SCHEMA) == 1:
        fields["sdk_version"] = "0.5.0"  # the version that this schema implies
    if isinstance(item.get(_BUILD_ID), bytes):
        fields["build_id"] = item[_BUILD_ID].hex()
    if isinstance(item.get(_USER_INFO), dict):
        fields["user_info"] = plain(item[_USER_INFO])
    fields["event_info"] = _event_info(number, item.get(_EVENT_INFO, {}))
    captured = item.get(_CAPTURED)
    if type(captured) is not int or not 0 <= captured <= _LARGEST_SECONDS:
        captured = None
    return DeviceEvent(_TYPES[number], captured, fields)


def _event_info(number: int, value: object) -> dict[str, JSONValue]:
    kind = _TYPES[number]
    if kind == "log":
        return {"lines": _log_lines(value, timed=number == _TIMED_LOGS)}
    if not isinstance(value, dict):
        raise BadEvent("event_info is no map")
    if kind == "heartbeat":
        metrics = value.get(1, {})
        if isinstance(metrics, list):
            # Only the symbol file of the firmware has their names.
            metrics = dict(enumerate(metrics))
        if not isinstance(metrics, dict):
            raise BadEvent("metrics are neither a map nor an array")
        session = {"session": plain(value[2])} if 2 in value else {}
        return {**session, "metrics": plain(metrics)}
    if kind == "custom-data-recording":
        data = value.get(4, b"")
        return {
            "duration_ms": plain(value.get(1)),
            "mimetypes": plain(value.get(2, [])),
            "reason": plain(value.get(3)),
            "data": plain(data),
        }
    return {
        _TRACE_FIELDS.get(key, str(key)): plain(inner)
        for key, inner in value.items()
        if isinstance(key, int)
    }


def _log_lines(value: object, *, timed: bool) -> list[JSONValue]:
    """Parse the flat array [timestamp,] level, text ..."""
    width = 3 if timed else 2
    if not isinstance(value, list) or len(value) % width:
        raise BadEvent("the log is no array of whole lines")
    lines: list[JSONValue] = []
    for at in range(0, len(value), width):
        *stamp, level, text = value[at : at + width]
        line: dict[str, JSONValue] = {"timestamp": plain(stamp[0])} if timed else {}
        line["level"] = _LEVELS.get(level, "unknown") if isinstance(level, int) else "unknown"
        # A byte string is a compact line: only the symbol file has its format.
        line["text" if isinstance(text, str) else "compact"] = plain(text)
        lines.append(line)
    return lines


def plain(value: object) -> JSONValue:
    """Return a CBOR value as JSON: bytes as {"hex": ...}, other numbers as text or null."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes | bytearray):
        return {"hex": bytes(value).hex()}
    if isinstance(value, dict):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)
