"""A project: its tables, and the resources that are created when data arrives."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema
    from agent.standin.state import Cloud
    from agent.standin.store import Table


MAX_LENGTH = 128
SLUG_PATTERN = "^[-a-zA-Z0-9_]+$"
VERSION_PATTERN = "^[-a-zA-Z0-9_.+]+$"
_NUMBER = "(?:0|[1-9][0-9]*)"
_PART = "(?:0|[1-9][0-9]*|[0-9]*[-a-zA-Z][-0-9a-zA-Z]*)"
# The grammar of Semantic Versioning 2.0.0, clauses 2, 9 and 10. What the version pattern allows
# beyond it, an underscore, no Semantic Version has.
SEMVER_PATTERN = (
    rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-{_PART}(?:\.{_PART})*)?(?:\+[-0-9a-zA-Z]+(?:\.[-0-9a-zA-Z]+)*)?$"
)

SLUG: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": SLUG_PATTERN}
VERSION: Schema = {**SLUG, "pattern": VERSION_PATTERN}
RELEASE_VERSION: Schema = {**SLUG, "pattern": SEMVER_PATTERN}
IDENTITY_FIELDS: dict[str, Schema] = {
    "device_serial": SLUG,
    "hardware_version": VERSION,
    "software_type": VERSION,
    "software_version": VERSION,
}
"""The fields by which a device and its software are identified, in the order of `mark_seen`."""


def precedence(version: str) -> tuple[object, ...]:
    """Return the sort key of a Semantic Version (clause 11): build metadata does not count."""
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))
    return (*numbers, (0, parts) if pre else (1, ()))


DEFAULT_COHORT = "default"

Record = dict[str, Any]


def timestamp(unix_s: float | None) -> str | None:
    """Return Unix seconds as ISO 8601 with microseconds and numeric offset (clause O2.3)."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="microseconds")


def is_semver(text: str) -> bool:
    """Return whether `text` is a Semantic Version, and so may name a release."""
    return re.search(SEMVER_PATTERN.removesuffix("$") + r"\Z", text, re.ASCII) is not None


class Project:
    """One project of one organization, over the tables of the store."""

    def __init__(self, cloud: Cloud, organization: str, slug: str) -> None:
        self.cloud = cloud
        self.organization = organization
        self.slug = slug

    @property
    def record(self) -> Record:
        """The record of the project, which both halves of the stand-in share."""
        record = self.cloud.project(self.organization, self.slug)
        assert record is not None
        return record

    @property
    def now(self) -> float:
        """The stand-in's time in Unix seconds."""
        return self.cloud.clock.time()

    def table(self, name: str) -> Table:
        """Return a table of this project alone."""
        return self.cloud.table(f"observability/{self.organization}/{self.slug}/{name}")

    def next_id(self, kind: str) -> int:
        """Return the next free number for a resource of that kind."""
        counters = self.table("counters")
        number = int(counters.get(kind) or 0) + 1
        counters.put(kind, number)
        return number

    def log(self, level: str, message: str, device_serial: str | None = None) -> None:
        """Add a line to the processing log."""
        number = self.next_id("processing-log")
        self.table("processing-log").put(
            str(number),
            {
                "id": number,
                "created": self.now,
                "level": level,
                "message": message,
                "device_serial": device_serial,
            },
        )

    def cohort(self, slug: str) -> Record | None:
        """Return a cohort, None if unknown; `default` always exists."""
        table = self.table("cohorts")
        if slug == DEFAULT_COHORT and slug not in table:
            self.make_cohort(slug, "Default")
        cohort: Record | None = table.get(slug)
        return cohort

    def make_cohort(self, slug: str, name: str) -> Record:
        """Create a cohort and return its record."""
        record = {
            "id": self.next_id("cohorts"),
            "slug": slug,
            "name": name,
            "created": self.now,
            "updated": self.now,
        }
        self.table("cohorts").put(slug, record)
        return record

    def release(self, version: str) -> Record:
        """Return the release of that version, created if there is none."""
        table = self.table("releases")
        if version not in table:
            table.put(version, self.new_release(version))
        release: Record = table.get(version)
        return release

    def new_release(self, version: str, delta_from: str = "") -> Record:
        """Return a new release without artifacts, not stored; a delta with `delta_from`."""
        return {
            "id": self.next_id("releases"),
            "version": version,
            "delta_from": delta_from,
            "min_version": delta_from,
            "revision": "",
            "notes": "",
            "extra_info": None,
            "must_pass_through": False,
            "artifacts": [],
            "created": self.now,
            "updated": self.now,
        }

    def device(self, serial: str, hardware_version: str | None = None) -> Record:
        """Return the device of that serial, created if it is unknown."""
        table = self.table("devices")
        record: Record | None = table.get(serial)
        if record is None:
            self.cohort(DEFAULT_COHORT)
            record = {
                "id": self.next_id("devices"),
                "device_serial": serial,
                "hardware_version": hardware_version or "",
                "owner_ref": None,
                "nickname": "",
                "description": "",
                "cohort": DEFAULT_COHORT,
                "created": self.now,
                "updated": self.now,
                "last_seen": None,
                "software": {},
                "last_seen_release": None,
            }
            table.put(serial, record)
        elif hardware_version and record["hardware_version"] != hardware_version:
            record = {**record, "hardware_version": hardware_version, "updated": self.now}
            table.put(serial, record)
        return record

    def mark_seen(
        self, serial: str, hardware_version: str, software_type: str, software_version: str
    ) -> Record:
        """Record that a device was seen with a software version; a new version is an install."""
        record = self.device(serial, hardware_version)
        before = record["software"].get(software_type)
        record = {
            **record,
            "last_seen": self.now,
            "software": {**record["software"], software_type: software_version},
        }
        if is_semver(software_version):
            self.release(software_version)
            record["last_seen_release"] = software_version
        if before != software_version:
            number = self.next_id("installs")
            self.table("installs").put(
                str(number),
                {
                    "id": number,
                    "status": "done",
                    "device": serial,
                    "software_type": software_type,
                    "from": before,
                    "to": software_version,
                    "began": self.now,
                    "transitioned": self.now,
                },
            )
        self.table("devices").put(serial, record)
        return record
