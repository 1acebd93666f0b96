"""The records of the observability half, and the tables that hold them.

The tables of a project are opened with `Project.table`, the others with `Cloud.table`. Times are
Unix seconds. A number that a caller may write as `5.0` is shown again as it was written.
"""

from msgspec import Struct, field

from agent.json_value import JSONValue
from agent.standin.store import TableOf


class Cohort(Struct, kw_only=True):
    """A group of devices, to which releases are deployed."""

    id: int
    slug: str
    name: str
    created: float
    updated: float


class Artifact(Struct, kw_only=True):
    """A payload of a release."""

    id: int
    type: str
    hardware_version: str
    software_type: str
    build_id: str | None
    filename: str
    blob: str
    md5: str
    size: int
    created: float
    more: dict[str, JSONValue] = field(default_factory=dict)
    """Optional fields, named as in the answer."""


class Release(Struct, kw_only=True):
    """A version of software; a delta from another version where `delta_from` names one."""

    id: int
    version: str
    delta_from: str = ""
    min_version: str
    revision: str = ""
    notes: str = ""
    extra_info: dict[str, JSONValue] | None = None
    must_pass_through: bool = False
    artifacts: list[Artifact] = field(default_factory=list)
    created: float
    updated: float


class ObservedDevice(Struct, kw_only=True):
    """A device, with its software versions by their type."""

    id: int
    device_serial: str
    hardware_version: str
    owner_ref: str | None = None
    nickname: str = ""
    description: str = ""
    cohort: str
    created: float
    updated: float
    last_seen: float | None = None
    software: dict[str, str] = field(default_factory=dict)
    last_seen_release: str | None = None
    config_revision: int | None = None
    """The revision of the configuration that it has confirmed."""
    release: str | None = None
    """The release that is handed out to this device alone, whatever its cohort gets."""
    server_side_developer_mode: bool = False
    """Whether no rate limit holds for it."""


class Deployment(Struct, kw_only=True):
    """A release, or a delta release, that is handed out to a cohort."""

    id: int
    type: str
    status: str
    delta_from: str = ""
    release: str
    cohort: str
    deployer: dict[str, str] | None
    rollout_percent: int | float
    deployed: float
    extra_info: dict[str, JSONValue] | None

    @property
    def is_active(self) -> bool:
        """Whether it was not aborted."""
        return self.status != "aborted"


class FromDevice(Struct, kw_only=True):
    """What a device sent, with the software that it ran."""

    id: int
    device: str
    hardware_version: str
    software_type: str
    software_version: str
    release: str | None
    captured: float
    created: float


class Event(FromDevice, kw_only=True):
    """An event of a device."""

    type: str
    sdk_version: str | None
    build_id: str | None
    received: float
    event_info: dict[str, JSONValue]
    user_info: dict[str, JSONValue] | None


class Trace(FromDevice, kw_only=True):
    """What went wrong on a device: one occurrence of an issue."""

    reason: str
    reason_code: int | None
    source: str
    issue: int
    trace_info: dict[str, JSONValue]


class Issue(Struct, kw_only=True):
    """The traces of one signature."""

    id: int
    status: str = "open"
    title: str
    signature: str
    created: float
    first_seen: float
    last_seen: float
    first_release: str | None
    last_release: str | None
    devices: list[str] = field(default_factory=list)
    traces: int = 0
    last_trace: int


class Install(Struct, kw_only=True):
    """A change of a device from one software version to another."""

    id: int
    status: str
    device: str
    software_type: str
    release_from: str | None = field(name="from")
    release_to: str = field(name="to")
    began: float
    transitioned: float


class StoredCoredump(Struct, kw_only=True):
    """The bytes of a core dump, of the trace of the same number."""

    id: int
    trace: int
    device: str
    size: int
    created: float
    data: bytes


class StoredFile(Struct, kw_only=True):
    """A file that was uploaded; `details` are the other fields of its commit."""

    id: int
    kind: str
    name: str
    md5: str
    size: int
    blob: str
    details: dict[str, JSONValue]
    created: float


class LogLine(Struct, kw_only=True):
    """A line of the processing log."""

    id: int
    created: float
    level: str
    message: str
    device_serial: str | None


class Task(Struct, kw_only=True):
    """What became of a push to a project, "organization/project"."""

    status: str
    project: str


class WaitingChunk(Struct, kw_only=True):
    """A chunk of a message that is still incomplete, and when it came."""

    at: float
    raw: bytes


COHORTS = TableOf("observability/*/*/cohorts", Cohort)
RELEASES = TableOf("observability/*/*/releases", Release)
DELTA_RELEASES = TableOf("observability/*/*/delta-releases", Release)
"""By "version/version"."""
DEVICES = TableOf("observability/*/*/devices", ObservedDevice)
DEPLOYMENTS = TableOf("observability/*/*/deployments", Deployment)
EVENTS = TableOf("observability/*/*/events", Event)
TRACES = TableOf("observability/*/*/traces", Trace)
ISSUES = TableOf("observability/*/*/issues", Issue)
INSTALLS = TableOf("observability/*/*/installs", Install)
COREDUMPS = TableOf("observability/*/*/coredumps", StoredCoredump)
FILES = TableOf("observability/*/*/files", StoredFile)
PROCESSING_LOG = TableOf("observability/*/*/processing-log", LogLine)
COUNTERS = TableOf("observability/*/*/counters", int)
"""The last number that was given, by what it numbers."""

TASKS = TableOf("observability/tasks", Task)
WAITING_CHUNKS = TableOf("observability/waiting-chunks", WaitingChunk)
