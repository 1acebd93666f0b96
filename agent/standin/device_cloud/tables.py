"""The records of the device cloud, and the tables that hold them.

A field is renamed where a state file of 0.1.0 has another name for it. Times are Unix seconds, or
texts as in an answer.
"""

from msgspec import UNSET, Struct, UnsetType, field

from agent.json_value import JSONValue
from agent.standin.store import TableOf


class Firmware(Struct, kw_only=True):
    """What a device can be updated with, and its modem's firmware."""

    supports: list[str] = field(default_factory=list)
    modem: str | UnsetType = UNSET


class DeviceFields(Struct, kw_only=True, rename="camel"):
    """A device as its resource shows it, but for the team and what is read only."""

    id: str
    name: str
    type: str
    sub_type: str | UnsetType = UNSET
    gateway_id: str | UnsetType = UNSET
    """Of a BLE device."""
    tags: list[str] = field(default_factory=list)
    cloud_mqtt_enabled: bool | UnsetType = UNSET
    """Of a device that has its own connection."""
    firmware: Firmware = field(default_factory=Firmware)
    state: dict[str, JSONValue] = field(default_factory=dict)
    """The shadow; of a BLE device its services, each a `Service`."""


class Device(Struct, kw_only=True):
    """A device of a team."""

    team: str
    fields: DeviceFields
    version: str
    created_at: str
    updated_at: str


class Descriptor(Struct):
    """A descriptor of a characteristic."""

    uuid: str
    path: str
    value: list[int]


class Characteristic(Struct):
    """A characteristic of a service."""

    uuid: str
    path: str
    value: list[int]
    properties: dict[str, bool]
    descriptors: dict[str, Descriptor]

    @property
    def is_writable(self) -> bool:
        """Whether a client may write the value; a missing property is false (clause D3.4)."""
        return any(self.properties.get(name) for name in ("write", "writeWithoutResponse"))


class Service(Struct):
    """A service of a BLE device."""

    uuid: str
    characteristics: dict[str, Characteristic]


class Message(Struct, kw_only=True):
    """A message of a device, with the resource that shows it."""

    team: str
    at: float
    message: dict[str, object]


class Ownership(Struct):
    """Whose a device is that is not associated yet, and the code that proves it."""

    team: str
    code: str


class Bundle(Struct, kw_only=True):
    """A firmware bundle; its files are stored under `paths`."""

    id: str = field(name="bundleId")
    team: str
    name: str
    description: str
    type: str
    version: str
    created_at: str
    size: int
    paths: list[str]


class JobFirmware(Struct, kw_only=True, rename="camel"):
    """The bundle of a job, as the job's resource shows it, but for the paths of its files."""

    bundle_id: str
    host: str
    file_size: int
    firmware_type: str
    version: str


class JobTarget(Struct, kw_only=True, rename="camel"):
    """The devices of a job."""

    device_ids: list[str]
    tags: list[str]


class Job(Struct, kw_only=True):
    """A FOTA job."""

    id: str = field(name="jobId")
    team: str
    name: str
    description: str
    status: str
    status_detail: str
    target: JobTarget
    firmware: JobFirmware
    path: str
    """Of the file at the host; the two builds of a bootloader are separated by a space."""
    created_at: float
    updated_at: float


class JobDocument(Struct, kw_only=True, rename="camel"):
    """What a device is told of its update."""

    firmware_type: str
    host: str
    path: str
    file_size: int
    version: str
    bundle_id: str


class Execution(Struct, kw_only=True):
    """One device's part of a job."""

    id: str = field(name="executionId")
    job_id: str = field(name="jobId")
    device_id: str = field(name="deviceId")
    team: str
    status: str
    status_detail: str
    document: JobDocument
    created_at: float
    updated_at: float


class Anchor(Struct, kw_only=True, rename="camel"):
    """An access point whose position is known."""

    mac_address: str
    lat: float
    lon: float
    name: str
    created_at: str
    updated_at: str


class StoredFix(Struct, kw_only=True):
    """A position that was found, with the resource that shows it."""

    team: str
    at: float
    fix: dict[str, object]


class Claimed(Struct, kw_only=True):
    """A claimed device; `commands` are the ids of its provisioning commands."""

    team: str
    tags: list[str]
    claimed_at: float
    commands: list[str] = field(default_factory=list)
    has_kit: bool = False
    """Whether a kit has asked for them: the stand-in does not play it any more."""


class Command(Struct, kw_only=True):
    """A provisioning command; `response` is the answer `by_kit`, else in the device's name."""

    device: str
    description: str
    request: dict[str, dict[str, JSONValue]]
    created_at: float
    due: float
    response: dict[str, dict[str, JSONValue]] | None = None
    by_kit: bool = False
    failed: bool = False


class Rule(Struct):
    """A provisioning rule or tag, with the resource that shows it and the resource's version."""

    team: str
    shown: dict[str, object]

    @property
    def version(self) -> str:
        """The version of the resource."""
        meta = self.shown["$meta"]
        assert isinstance(meta, dict)
        return str(meta["version"])


DEVICES: TableOf[Device | None] = TableOf("devices", Device)
"""By id in lower case; None is a device of the fleet that was deleted."""
DISCOVERIES = TableOf("discoveries", float)
"""When the services of a BLE device are rediscovered."""
MESSAGES = TableOf("messages", Message)
OWNERSHIP = TableOf("ownership", Ownership)
FILES = TableOf("files", bytes)
BUNDLES = TableOf("bundles", Bundle)
JOBS = TableOf("jobs", Job)
EXECUTIONS = TableOf("executions", Execution)
"""By "device/job"."""
QUEUES = TableOf("queues", list[str])
"""The jobs of a device, oldest first."""
JOB_DEVICES = TableOf("job_devices", list[str])
PREDICTIONS = TableOf("predictions", tuple[int, int, int, int])
"""Day, second, count and interval in minutes of a P-GPS file, by its path."""
ANCHORS = TableOf("anchors", Anchor)
"""By "team/address"."""
FIXES = TableOf("fixes", StoredFix)
CLAIMED = TableOf("claimed", Claimed)
COMMANDS = TableOf("provisioning", Command)
