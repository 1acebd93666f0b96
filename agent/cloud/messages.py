"""Messages of devices: sent in a device's name, listed by a user."""

from dataclasses import dataclass
from datetime import UTC, datetime

from agent.call import Request, Response, StatusCall
from agent.cloud.conventions import (
    NOT_IN_SERVICE,
    USER_OR_DEVICE,
    ListCall,
    Page,
    device_path,
    read_page,
)
from agent.cloud.device import read_time
from agent.errors import BadAnswer, UsageError
from agent.json_value import JSONValue, text_in


@dataclass(frozen=True, slots=True)
class SendMessage(StatusCall):
    """Send one message as a device; on `topic`, or the device's own."""

    schemes = USER_OR_DEVICE
    repeatable = False

    device_id: str
    message: object
    topic: str = ""

    def request(self) -> Request:
        """Return what to send."""
        body = {"message": self.message, **({"topic": self.topic} if self.topic else {})}
        return Request("POST", f"{device_path(self.device_id)}/messages", json=body)

    def serves(self) -> str:
        """Return the device in whose name it is sent."""
        return self.device_id

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return what brings the kit into service."""
        return NOT_IN_SERVICE if status == 404 else ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message that was kept; `raw` is everything that came."""

    raw: dict[str, JSONValue]
    device_id: str
    topic: str
    received_at: datetime | None
    message: JSONValue


@dataclass(frozen=True, slots=True)
class ListMessages(ListCall[Message]):
    """One page of messages, the newest first; from `start` (with it) to `end` (without)."""

    device_id: str = ""
    app_id: str = ""
    start: datetime | None = None
    end: datetime | None = None

    def request(self) -> Request:
        """Return what to send. Raises UsageError for a time without a zone."""
        query = self.page_query()
        for name, text in (("deviceId", self.device_id), ("appId", self.app_id)):
            if text:
                query.append((name, text))
        for name, when in (("inclusiveStart", self.start), ("exclusiveEnd", self.end)):
            if when is not None:
                if when.tzinfo is None:
                    raise UsageError(f"{name} has no time zone")
                utc = when.astimezone(UTC).replace(tzinfo=None)
                query.append((name, f"{utc.isoformat(timespec='milliseconds')}Z"))
        return Request("GET", "/v1/messages", query)

    def parse(self, response: Response) -> Page[Message]:
        """Return the page. Raises BadAnswer."""
        return read_page(response, _message)


def _message(raw: JSONValue) -> Message:
    if not isinstance(raw, dict):
        raise BadAnswer("a message is no object")
    received = raw.get("receivedAt")
    return Message(
        raw=raw,
        device_id=text_in(raw, "deviceId"),
        topic=text_in(raw, "topic"),
        received_at=read_time(received) if isinstance(received, str) else None,
        message=raw.get("message"),
    )
