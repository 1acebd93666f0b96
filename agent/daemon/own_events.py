"""Events of the agent's own: what it sees happen to a kit and to itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import agent
from agent.fota.jobs import JobStatus
from agent.observability.ingest.events import heartbeat, trace
from agent.outbox import ItemKind, NewItem
from agent.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent.observability.ingest.device_identity import DeviceIdentity

SOFTWARE_TYPE = "cellagent"
"""The component that these events come from: beside the kit's own, on the same device."""
_LONGEST_DETAIL = 500


class Happening(Enum):
    """What happened: our word for it, and the service's number for the reason."""

    LINK_LOST = ("link lost", 0x8000)
    MODEM_RESET = ("modem reset", 0x0000)
    FOTA_SUCCEEDED = ("fota succeeded", 0x0003)
    FOTA_FAILED = ("fota failed", 0x8009)
    FOTA_REJECTED = ("fota rejected", 0x8009)
    WATCHDOG = ("watchdog", 0x8006)

    @property
    def counter(self) -> str:
        """The name under which it is counted."""
        return f"{self.name.lower()}_count"


@dataclass(frozen=True, slots=True)
class Happened:
    """One happening. `detail` is for a person: which job, which port, which task.

    What is told twice has the same `key`, and is one event; "" stands for one that is told once.
    """

    what: Happening
    at: datetime
    """When it happened, aware."""
    detail: str = ""
    key: str = ""


# A job that the cloud took back is no news to whoever did that: it is no event.
_JOB_ENDS = {
    JobStatus.SUCCEEDED: Happening.FOTA_SUCCEEDED,
    JobStatus.FAILED: Happening.FOTA_FAILED,
    JobStatus.TIMED_OUT: Happening.FOTA_FAILED,
    JobStatus.REJECTED: Happening.FOTA_REJECTED,
}


def job_end(status: JobStatus) -> Happening | None:
    """Return what the final status of a FOTA job is to the observability service, if anything."""
    return _JOB_ENDS.get(status)


def own_event(happened: Happened, device: DeviceIdentity, kit: str) -> NewItem:
    """Return the trace of a happening, ready for the outbox; `device` and `kit` say whose it is.

    Raises UsageError.
    """
    words, reason = happened.what.value
    # A port may have any bytes in its name.
    detail = redact(happened.detail).encode(errors="backslashreplace").decode()[:_LONGEST_DETAIL]
    about = _software(device)
    user_info = {"agent_event": words} | ({"detail": detail} if detail else {}) | about
    body = trace(_of_the_agent(device), reason, happened.at, user_info=user_info)
    key = f"{kit} {words} {happened.key or happened.at.isoformat()}"
    return NewItem(ItemKind.EVENT, device.device_serial, body, happened.at.timestamp(), key)


def own_heartbeat(
    metrics: Mapping[str, float], device: DeviceIdentity, kit: str, when: datetime
) -> NewItem:
    """Return a heartbeat of the agent about one kit, ready for the outbox. Raises UsageError."""
    body = heartbeat(_of_the_agent(device), metrics, when, user_info=_software(device))
    key = f"{kit} heartbeat {when.isoformat()}"
    return NewItem(ItemKind.EVENT, device.device_serial, body, when.timestamp(), key)


def _of_the_agent(device: DeviceIdentity) -> DeviceIdentity:
    return replace(device, software_type=SOFTWARE_TYPE, software_version=agent.__version__)


def _software(device: DeviceIdentity) -> dict[str, str]:
    """Return what the kit itself ran, as far as that is known."""
    named = {"software_type": device.software_type, "software_version": device.software_version}
    return {name: value for name, value in named.items() if value != "unknown"}
