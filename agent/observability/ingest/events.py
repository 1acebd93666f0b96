"""Events of devices: created, checked, pushed in batches (clause O3.4). Pure."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from agent.call import Host, Request, Scheme, StatusCall
from agent.errors import UsageError
from agent.observability.api.resource_names import (
    check_release_version,
    check_slug,
    check_text,
    check_version,
)
from agent.observability.ingest.device_identity import DeviceIdentity

MAX_EVENTS = 100
"""Events of one request; `agent.outbox.schedule` keeps to it."""
MAX_EVENTS_BYTES = 512 * 1024
"""Bytes of one request, unless a single event is larger."""
MAX_EVENT = 256 * 1024
"""Bytes of one event."""
SDK_VERSION = "0.5.0"
"""What the first schema of the device SDK implies; the agent speaks no later one."""
OLDEST = timedelta(days=365)
NEWEST = timedelta(minutes=5)
"""Beyond these the service puts the time of receipt in place of `captured_date`."""

_LONGEST_VALUE = 1000  # characters of a metric that is a text
_MOST_METRICS = 1000
_UINT64 = 1 << 64


def heartbeat(
    device: DeviceIdentity,
    metrics: Mapping[str, float | str | None],
    captured: datetime,
    *,
    user_info: Mapping[str, object] | None = None,
) -> bytes:
    """Return a checked heartbeat as JSON. Raises UsageError."""
    return _event("heartbeat", device, {"metrics": dict(metrics)}, captured, user_info)


def trace(
    device: DeviceIdentity,
    reason: int,
    captured: datetime,
    *,
    pc: int = 0,
    lr: int | None = None,
    sp: int | None = None,
    user_info: Mapping[str, object] | None = None,
) -> bytes:
    """Return a checked trace as JSON: a reset or a fault, by the service's numbers."""
    registers = {"pc": pc, "lr": lr, "sp": sp}
    info = {"reason": reason} | {name: at for name, at in registers.items() if at is not None}
    return _event("trace", device, info, captured, user_info)


def _event(
    kind: str,
    device: DeviceIdentity,
    info: Mapping[str, object],
    captured: datetime,
    user_info: Mapping[str, object] | None,
) -> bytes:
    event: dict[str, object] = {
        "type": kind,
        **asdict(device),
        "sdk_version": SDK_VERSION,
        "captured_date": captured,
        "event_info": info,
    }
    if user_info:
        event["user_info"] = dict(user_info)
    return check_event(event, captured)


def check_event(event: object, now: datetime) -> bytes:
    """Return an event as the checked JSON that is sent.

    Times become UTC; a missing `captured_date` becomes `now` (aware). Raises UsageError, naming
    the field and its rule.
    """
    if not isinstance(event, dict):
        raise UsageError("an event is a JSON object")
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _INFO_CHECKS:
        raise UsageError(f"type: {kind!r} is neither heartbeat nor trace")
    check_slug("device_serial", event.get("device_serial"))
    check_version("hardware_version", event.get("hardware_version"))
    check_text("sdk_version", event.get("sdk_version"))
    if "software_type" in event or "software_version" in event or "release_version" not in event:
        check_text("software_type", event.get("software_type"))
        check_version("software_version", event.get("software_version"))
    if "release_version" in event:
        check_release_version(event["release_version"], "release_version")
    for name in ("user_info", "extra_info"):
        if not isinstance(event.get(name, {}), dict):
            raise UsageError(f"{name}: it is no JSON object")
    info = event.get("event_info")
    if not isinstance(info, dict):
        raise UsageError("event_info: it is no JSON object")
    _INFO_CHECKS[kind](info)
    captured = captured_date(event.get("captured_date", now), now)
    checked = {**event, "captured_date": captured}
    try:
        text = json.dumps(checked, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        encoded = text.encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise UsageError(f"the event is not JSON: {exc}") from exc
    if len(encoded) > MAX_EVENT:
        raise UsageError(f"the event has {len(encoded)} bytes; at most {MAX_EVENT} are taken")
    return encoded


def captured_date(value: object, now: datetime) -> str:
    """Return a time as the service reads it: UTC, to the millisecond. Raises UsageError."""
    try:
        # What is no text, as unix seconds, is no time either.
        value = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as exc:
        raise UsageError(f"captured_date: {value!r} is no ISO 8601 time") from exc
    if value.tzinfo is None:
        raise UsageError(
            "captured_date: the time has no offset from UTC", hint="end it with Z, or +00:00"
        )
    if not -OLDEST <= value - now <= NEWEST:
        raise UsageError(
            f"captured_date: {value.isoformat()} is more than a year ago, or in the future",
            hint="leave it out where the device's clock was not set: the service would not keep it",
        )
    return _utc(value)


def captured_date_of(seconds: float) -> str:
    """Return unix seconds as the service reads times."""
    return _utc(datetime.fromtimestamp(seconds, UTC))


def _utc(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return text.removesuffix(".000") + "Z"


def _check_metrics(info: Mapping[str, object]) -> None:
    metrics = info.get("metrics")
    if not isinstance(metrics, dict) or len(metrics) > _MOST_METRICS:
        raise UsageError(f"event_info.metrics: it is no object of at most {_MOST_METRICS} values")
    for name, value in metrics.items():
        check_text("event_info.metrics", name)
        where = f"event_info.metrics.{name}"
        if isinstance(value, str):
            if len(value) > _LONGEST_VALUE:
                raise UsageError(f"{where}: {len(value)} characters; at most {_LONGEST_VALUE}")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise UsageError(f"{where}: {value} is no number that JSON can carry")
        elif isinstance(value, int) and not isinstance(value, bool):
            if abs(value) >= _UINT64:
                raise UsageError(f"{where}: {value:#x} does not fit 64 bits")
        elif value is not None:
            raise UsageError(f"{where}: it is neither a number nor a text")


def _check_trace(info: Mapping[str, object]) -> None:
    for name in ("reason", "pc", "lr", "sp"):
        value = info.get(name)
        if name not in info and name in {"lr", "sp"}:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _UINT64:
            raise UsageError(f"event_info.{name}: {value!r} is no unsigned number")


_INFO_CHECKS = {"heartbeat": _check_metrics, "trace": _check_trace}


@dataclass(frozen=True, slots=True)
class PushEvents(StatusCall):
    """Push events that `check_event` made: POST /api/v0/events, clause O3.4.

    409 means that the service has them already.
    """

    host: ClassVar[Host] = Host.INGRESS
    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.PROJECT_KEY,)
    accepts: ClassVar[frozenset[int]] = frozenset({409})

    events: Sequence[bytes]
    request_id: str = ""
    """The same at every try; the service ignores what it does not know."""

    def request(self) -> Request:
        """Return the events as one JSON array."""
        headers = {"content-type": "application/json"}
        if self.request_id:
            headers["x-request-id"] = self.request_id
        body = b"[" + b",".join(self.events) + b"]"
        return Request("POST", "/api/v0/events", headers=headers, content=body)
