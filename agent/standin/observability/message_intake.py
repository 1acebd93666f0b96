"""A message out of chunks, stored by what it holds: events, logs, a core dump, an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.observability.archive_intake import take_archive
from agent.standin.observability.coredumps import BadCoredump
from agent.standin.observability.device_events import BadEvent, DeviceEvent, parse_events
from agent.standin.observability.intake import refuse_bad, take_coredump, take_event
from agent.standin.observability.messages import BadMessage, Kind, parse_message
from agent.standin.observability.slugs import SLUG, VERSION

if TYPE_CHECKING:
    from agent.standin.observability.project import Project


def take_message(project: Project, serial: str, message: bytes) -> None:
    """Store what a message out of chunks holds; what is wrong goes to the processing log.

    `serial` is that of the request: an event that names its own device overrides it.
    """
    try:
        parsed = parse_message(message)
        if parsed.project_key is not None:
            project = _by_key(project, parsed.project_key)
        if parsed.kind is Kind.COREDUMP:
            take_coredump(project, parsed.payload, serial)
        elif parsed.kind is Kind.MAR:
            take_archive(project, parsed.payload, serial)
        else:
            events = parse_events(parsed.payload)
            prepared = [_prepare(event, serial) for event in events]
            for event, captured in prepared:
                take_event(project, event, captured)
    except (BadMessage, BadEvent, BadCoredump) as error:
        project.log("error", str(error), serial)


def _prepare(event: DeviceEvent, serial: str) -> tuple[dict[str, Any], float | None]:
    """Fill in what a device leaves out, and hold it to the rules of the push."""
    fields = {"device_serial": serial, "hardware_version": "unknown", **event.fields}
    fields.setdefault("software_version", fields.get("release_version", "0.0.0"))
    fields["type"] = event.type
    for name, rule in (("device_serial", SLUG), ("hardware_version", VERSION)):
        refuse_bad(fields[name], rule, name, BadEvent)
    return fields, event.captured_unix_s


def _by_key(project: Project, key: str) -> Project:
    """Return the project of a key in the message, which counts more than that of the request."""
    for other in project.cloud.table("projects").values():
        if other["project_key"] == key:
            return type(project)(project.cloud, other["organization"], other["slug"])
    raise BadMessage("the project key in the message is not known")
