"""The calls of an upload: prepare, commit; small core dumps in one call (O5.2, O5.3). Pure.

Core dumps go to the ingress host whatever their kind and size; every other kind to the files
host. The bytes themselves go to the URL that the service signs, without any credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import ClassVar

import msgspec

from agent.call import Call, Host, Request, Response, Scheme, StatusCall
from agent.observability.api.resource_names import check_slug
from agent.observability.api.resources import USER
from agent.observability.ingest.device_identity import DeviceIdentity

DIRECT_LIMIT = 1024 * 1024
"""Bytes of a core dump that goes in one piece; a larger one is prepared first."""
_PROJECT_KEY = (Scheme.PROJECT_KEY,)
ZEPHYR_MIMETYPE = "application/vnd.zephyr.coredump"


class FileKind(Enum):
    """The kind of a file: its name at the service, and the ends of the paths that commit it.

    The first path is for the project key, "" for a kind that needs another credential; the second
    is below the path of a project, for a user or an organization.
    """

    COREDUMP = ("COREDUMP", "coredump", "coredumps")
    ELF_COREDUMP = ("ELF_COREDUMP", "elf_coredump", "elf_coredumps")
    MAR = ("MAR", "mar", "mar")
    ZEPHYR_COREDUMP = (
        "CUSTOM_DATA_RECORDING", "custom-data-recording", "custom-data-recording",
    )  # fmt: skip
    BUG_REPORT = ("ANDROID_BUG_REPORT", "bugreport", "bugreports")
    SYMBOLS = ("SYMBOL_FILE", "", "symbols")
    OTA = ("OTA_PAYLOAD", "", "releases/ota_payload")

    @property
    def wire_name(self) -> str:
        """The service's name for the kind."""
        return self.value[0]

    def commit_path(self, project: UploadProject | None) -> str:
        """Return the path that commits a file, by the project key if `project` is None."""
        _, with_key, with_user = self.value
        return f"/api/v0/upload/{with_key}" if project is None else f"{project.path}/{with_user}"

    @property
    def host(self) -> Host:
        """The host that prepares and commits it."""
        return Host.INGRESS if self in _COREDUMPS else Host.FILES


_COREDUMPS = {FileKind.COREDUMP, FileKind.ELF_COREDUMP, FileKind.MAR, FileKind.ZEPHYR_COREDUMP}


@dataclass(frozen=True, slots=True)
class UploadProject:
    """The project that a user's or an organization's credential pushes into."""

    organization: str
    project: str

    def __post_init__(self) -> None:
        """Check the slugs."""
        check_slug("account.organization", self.organization)
        check_slug("account.project", self.project)

    @property
    def path(self) -> str:
        """The beginning of the paths of the project."""
        return f"/api/v0/organizations/{self.organization}/projects/{self.project}"


@dataclass(frozen=True, slots=True)
class PreparedUpload:
    """The URL for the bytes, and the token that commits them; valid once, for a short time."""

    upload_url: str = field(repr=False)
    """Signed: anyone who has it may put the bytes."""
    token: str = field(repr=False)


class _Prepared(msgspec.Struct):
    data: PreparedUpload


class _UploadCall:
    """Base of the calls for a file of some kind, by a user where there is a project."""

    kind: FileKind
    project: UploadProject | None

    @property
    def host(self) -> Host:
        """The host of the kind."""
        return self.kind.host

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """The credentials that the service accepts."""
        return USER if self.project else _PROJECT_KEY


@dataclass(frozen=True, slots=True)
class PrepareUpload(_UploadCall, Call[PreparedUpload]):
    """Ask for a URL for `size` bytes: POST .../upload.

    Without `project` the project key is used, with it a user's or organization's credential.
    """

    kind: FileKind
    size: int
    device: DeviceIdentity | None = None
    gzipped: bool = False
    project: UploadProject | None = None

    def request(self) -> Request:
        """Return what to send."""
        body: dict[str, object] = {"kind": self.kind.wire_name, "size": self.size}
        if self.device is not None:
            body["device"] = asdict(self.device)
        if self.gzipped:
            body["content_encoding"] = "gzip"
        prefix = "/api/v0" if self.project is None else self.project.path
        return Request("POST", f"{prefix}/upload", json=body)

    def parse(self, response: Response) -> PreparedUpload:
        """Return URL and token. Raises BadAnswer."""
        return response.decode(_Prepared).data


@dataclass(frozen=True, slots=True)
class CommitUpload(_UploadCall, StatusCall):
    """Report that the bytes have arrived; the service processes them later.

    409 means that the service has the file already, which is a success. `details` are the fields of
    the kind, beside `file`.
    """

    accepts: ClassVar[frozenset[int]] = frozenset({409})
    repeatable: ClassVar[bool] = False  # its token is refused if it has arrived

    kind: FileKind
    token: str = field(repr=False)
    name: str = ""
    md5: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    project: UploadProject | None = None
    request_id: str = ""
    """The same at every try; the service ignores what it does not know."""

    def request(self) -> Request:
        """Return what to send."""
        file = {"token": self.token}
        if self.md5:
            file |= {"md5": self.md5, "name": self.name}
        headers = {"x-request-id": self.request_id} if self.request_id else {}
        body = {"file": file, **self.details}
        return Request("POST", self.kind.commit_path(self.project), headers=headers, json=body)


@dataclass(frozen=True, slots=True)
class UploadCoredump(StatusCall):
    """Push a core dump of the device SDK in one piece: POST /api/v0/upload/coredump."""

    host: ClassVar[Host] = Host.INGRESS
    schemes: ClassVar[tuple[Scheme, ...]] = _PROJECT_KEY
    accepts: ClassVar[frozenset[int]] = frozenset({409})

    content: bytes
    request_id: str = ""
    """The same at every try; the service ignores what it does not know."""

    def request(self) -> Request:
        """Return the bytes as they are."""
        headers = {"content-type": "application/octet-stream"}
        if self.request_id:
            headers["x-request-id"] = self.request_id
        return Request("POST", "/api/v0/upload/coredump", headers=headers, content=self.content)


def commit_details(
    kind: FileKind, device: DeviceIdentity | None, *, captured_date: str = "", reason: str = ""
) -> dict[str, object]:
    """Return the fields of a commit beside `file`, which depend on the kind."""
    if device is None:
        return {}
    if kind is FileKind.COREDUMP:
        return {"device_serial": device.device_serial}
    if kind is FileKind.MAR:
        return asdict(device)
    if kind is FileKind.ELF_COREDUMP:
        return {"device": asdict(device)}
    if kind is FileKind.ZEPHYR_COREDUMP:
        return {
            "device": asdict(device),
            "start_time": captured_date,
            "duration_secs": 0,
            "mimetypes": [ZEPHYR_MIMETYPE],
            "reason": reason or "coredump",
        }
    if kind is FileKind.SYMBOLS:
        return {"software_version": _software(device)}
    if kind is FileKind.OTA:
        software = _software(device)
        return {"software_version": software, "hardware_version": device.hardware_version}
    return {}


def _software(device: DeviceIdentity) -> dict[str, str]:
    return {"software_type": device.software_type, "version": device.software_version}
