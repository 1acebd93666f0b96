"""A project: its tables, and the resources that are created when data arrives."""

import re
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from agent.standin.core.schema import Schema
from agent.standin.observability import tables
from agent.standin.state import Cloud, ProjectRecord
from agent.standin.store import Table, TableOf

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
"""The schema of `Identity`."""


class Identity(Struct, frozen=True):
    """The fields by which a device and its software are identified."""

    device_serial: str
    hardware_version: str
    software_type: str
    software_version: str

    @property
    def release(self) -> str | None:
        """The release of the software, None where its version is none of a release."""
        return self.software_version if is_semver(self.software_version) else None


def precedence(version: str) -> tuple[object, ...]:
    """Return the sort key of a Semantic Version (clause 11): build metadata does not count."""
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))
    return (*numbers, (0, parts) if pre else (1, ()))


DEFAULT_COHORT = "default"
T = TypeVar("T")


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
    def record(self) -> ProjectRecord:
        """The record of the project, which both halves of the stand-in share."""
        record = self.cloud.project(self.organization, self.slug)
        assert record is not None
        return record

    @property
    def path(self) -> str:
        """Its slugs, as uploads and pushes name it."""
        return f"{self.organization}/{self.slug}"

    @property
    def now(self) -> float:
        """The stand-in's time in Unix seconds."""
        return self.cloud.clock.time()

    def table(self, of: TableOf[T]) -> Table[T]:
        """Return a table of this project alone."""
        return self.cloud.table(of, of.name.replace("*/*", self.path))

    def next_id(self, kind: str) -> int:
        """Return the next free number for a resource of that kind."""
        counters = self.table(tables.COUNTERS)
        number = (counters.get(kind) or 0) + 1
        counters.put(kind, number)
        return number

    def log(self, level: str, message: str, device_serial: str | None = None) -> None:
        """Add a line to the processing log."""
        line = tables.LogLine(
            id=self.next_id("processing-log"),
            created=self.now,
            level=level,
            message=message,
            device_serial=device_serial,
        )
        self.table(tables.PROCESSING_LOG).put(str(line.id), line)

    def cohort(self, slug: str) -> tables.Cohort | None:
        """Return a cohort, None if unknown; `default` always exists."""
        table = self.table(tables.COHORTS)
        if slug == DEFAULT_COHORT and slug not in table:
            self.make_cohort(slug, "Default")
        return table.get(slug)

    def make_cohort(self, slug: str, name: str) -> tables.Cohort:
        """Create a cohort and return its record."""
        number, now = self.next_id("cohorts"), self.now
        cohort = tables.Cohort(id=number, slug=slug, name=name, created=now, updated=now)
        self.table(tables.COHORTS).put(slug, cohort)
        return cohort

    def release(self, version: str) -> tables.Release:
        """Return the release of that version, created if there is none."""
        table = self.table(tables.RELEASES)
        if version not in table:
            table.put(version, self.new_release(version))
        return table[version]

    def new_release(self, version: str, delta_from: str = "") -> tables.Release:
        """Return a new release without artifacts, not stored; a delta with `delta_from`."""
        return tables.Release(
            id=self.next_id("releases"),
            version=version,
            delta_from=delta_from,
            min_version=delta_from,
            created=self.now,
            updated=self.now,
        )

    def device(self, serial: str, hardware_version: str = "") -> tables.ObservedDevice:
        """Return the device of that serial, created if it is unknown."""
        table = self.table(tables.DEVICES)
        device = table.get(serial)
        if device is None:
            self.cohort(DEFAULT_COHORT)
            device = tables.ObservedDevice(
                id=self.next_id("devices"),
                device_serial=serial,
                hardware_version=hardware_version,
                cohort=DEFAULT_COHORT,
                created=self.now,
                updated=self.now,
            )
            table.put(serial, device)
        elif hardware_version and device.hardware_version != hardware_version:
            device.hardware_version, device.updated = hardware_version, self.now
            table.put(serial, device)
        return device

    def mark_seen(self, seen: Identity) -> None:
        """Record that a device was seen with a software version; a new version is an install."""
        device = self.device(seen.device_serial, seen.hardware_version)
        before = device.software.get(seen.software_type)
        device.last_seen = self.now
        device.software[seen.software_type] = seen.software_version
        if seen.release is not None:
            self.release(seen.release)
            device.last_seen_release = seen.release
        if before != seen.software_version:
            install = tables.Install(
                id=self.next_id("installs"),
                status="done",
                device=seen.device_serial,
                software_type=seen.software_type,
                release_from=before,
                release_to=seen.software_version,
                began=self.now,
                transitioned=self.now,
            )
            self.table(tables.INSTALLS).put(str(install.id), install)
        self.table(tables.DEVICES).put(seen.device_serial, device)
