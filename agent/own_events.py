"""Events of the agent's own: what it sees happen to a kit and to itself. Pure."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from agent.observability.events import trace
from agent.observability.outbox import Kind, NewItem

if TYPE_CHECKING:
    from datetime import datetime

    from agent.observability.device_identity import DeviceIdentity


class Happening(Enum):
    """What happened: our word for it, and the service's number for the reason."""

    LINK_LOST = ("link lost", 0x8000)
    MODEM_RESET = ("modem reset", 0x0000)
    FOTA_SUCCEEDED = ("fota succeeded", 0x0003)
    FOTA_FAILED = ("fota failed", 0x8009)
    WATCHDOG = ("watchdog", 0x8006)


def own_event(
    happening: Happening, device: DeviceIdentity, when: datetime, detail: str = ""
) -> NewItem:
    """Return the trace of something that happened at `when` (aware), ready for the outbox.

    `detail` is for a person: which job, which port, which task. Raises UsageError.
    """
    words, reason = happening.value
    user_info = {"agent_event": words} | ({"detail": detail[:500]} if detail else {})
    body = trace(device, reason, when, user_info=user_info)
    return NewItem(Kind.EVENT, device.device_serial, body, when.timestamp())
