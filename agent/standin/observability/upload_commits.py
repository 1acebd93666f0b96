"""Commits of uploads: the kinds of files, and the commit of each.

A commit is the last step of an upload: it names the file, and the service then processes it.
"""

import hashlib
from dataclasses import dataclass, field

import msgspec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.operation import Host
from agent.standin.core.schema import Schema, body_schema, object_schema
from agent.standin.observability import file_storage, tables
from agent.standin.observability.file_storage import MAX_FILE, TRANSITIONS, UploadEvent
from agent.standin.observability.ingest.archives import add_archive
from agent.standin.observability.ingest.coredumps import MAGIC
from agent.standin.observability.ingest.elf import gnu_build_id
from agent.standin.observability.ingest.push import MAX_COREDUMP, accepted_response, store_coredump
from agent.standin.observability.ingest.records import add_coredump
from agent.standin.observability.operations import Handler, RequestContext
from agent.standin.observability.project import (
    IDENTITY_FIELDS,
    RELEASE_VERSION,
    SLUG,
    VERSION,
    Identity,
    Project,
)
from agent.standin.observability.refusals import ObservabilityRefused, invalid, not_found
from agent.standin.observability.tables import Artifact, Release, StoredFile

_MEBIBYTE = 1024 * 1024
_NAME: Schema = {"type": "string", "maxLength": 512}
IDENTITY = object_schema(**IDENTITY_FIELDS)
_SOFTWARE = object_schema(
    "revision",
    version={
        # Two versions are a delta, from the first to the second.
        "anyOf": [
            RELEASE_VERSION,
            {"type": "array", "items": RELEASE_VERSION, "minItems": 2, "maxItems": 2},
        ]
    },
    software_type=VERSION,
    revision=_NAME,
)
_BUILD = object_schema("revision", version=_NAME, software_type=VERSION, revision=_NAME)
"""The build that symbols belong to: an Android app's version ends in a colon and its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadKind:
    """A kind of file: size limit in bytes, paths of its commit, fields of the body."""

    name: str
    limit: int
    key_path: str | None
    user_path: str
    host: Host = Host.INGRESS
    fields: dict[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def body(self) -> Schema:
        """Return the schema of the commit."""
        token = body_schema(
            "token",
            token={"type": "string", "pattern": f"^{TOKEN}$"},
            md5={"type": "string", "pattern": "^([0-9a-fA-F]{32})?$"},
            name=_NAME,
        )
        return body_schema("file", *self.required, file=token, **self.fields)


TOKEN_BYTES = 24
TOKEN = "[A-Za-z0-9_-]{32}"
"""The text that `token_urlsafe` returns for them."""

KINDS = (
    UploadKind(name="COREDUMP", limit=MAX_COREDUMP, key_path="coredump", user_path="coredumps",
         fields={"device_serial": SLUG}),
    UploadKind(name="ELF_COREDUMP", limit=MAX_FILE, key_path="elf_coredump",
         user_path="elf_coredumps", fields={"device": IDENTITY}, required=("device",)),
    UploadKind(name="MAR", limit=64 * _MEBIBYTE, key_path="mar", user_path="mar",
         fields=dict(IDENTITY["properties"]), required=tuple(IDENTITY["required"])),
    UploadKind(name="ANDROID_BUG_REPORT", limit=MAX_FILE, key_path="bugreport",
         user_path="bugreports", host=Host.FILES),
    UploadKind(name="CUSTOM_DATA_RECORDING", limit=16 * _MEBIBYTE, key_path="custom-data-recording",
         user_path="custom-data-recording",
         fields={
             "start_time": {"type": "string", "maxLength": 64},
             "duration_secs": {"type": "number", "minimum": 0},
             "mimetypes": {"type": "array", "items": _NAME, "maxItems": 100},
             "reason": _NAME,
             "device": IDENTITY,
         },
         required=("start_time", "mimetypes", "reason", "device")),
    UploadKind(name="SYMBOL_FILE", limit=MAX_FILE, key_path=None, user_path="symbols",
         host=Host.FILES, fields={"software_version": _BUILD}),
    UploadKind(name="SBOM", limit=64 * _MEBIBYTE, key_path=None, user_path="sboms",
         host=Host.FILES, fields={"software_version": VERSION, "software_type": VERSION},
         required=("software_version", "software_type")),
    UploadKind(name="OTA_PAYLOAD", limit=MAX_FILE, key_path=None, user_path="releases/ota_payload",
         host=Host.FILES, fields={
             "software_version": _SOFTWARE,
             "hardware_version": VERSION,
             "notes": {"type": "string"},
             "must_pass_through": {"type": ["boolean", "null"]},
             "extra_info": {"type": ["object", "null"]},
             "firmware_type": _NAME,
             "component_version": VERSION,
             "component_base_version": VERSION,
         },
         required=("software_version", "hardware_version")),
    UploadKind(name="QCOMM_X", limit=MAX_FILE, key_path="qc/x", user_path="qc/x",
         fields={
             "device_serial": SLUG,
             "hardware_version": VERSION,
             "trace_attributes": {"type": "array", "items": {"type": "object"}, "maxItems": 1000},
         },
         required=("device_serial", "hardware_version")),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


def prepare_schema() -> Schema:
    """Return the schema of the body that prepares an upload; each kind has its size limit."""
    limits = sorted({kind.limit for kind in KINDS})
    return {
        **body_schema(
            "kind",
            "size",
            kind={"type": "string", "enum": list(BY_NAME)},
            size={"type": "integer", "minimum": 0},
            device={"type": ["object", "null"]},
            content_encoding={"enum": ["gzip", "identity", None]},
        ),
        "anyOf": [
            {
                "properties": {
                    "kind": {"enum": [kind.name for kind in KINDS if kind.limit == limit]},
                    "size": {"type": "integer", "minimum": 0, "maximum": limit},
                }
            }
            for limit in limits
        ],
    }


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """The file of an upload that was committed; `blob` is the name of its stored bytes."""

    kind: str
    name: str
    md5: str
    blob: str
    data: bytes


_ARTIFACT_FIELDS = ("extra_info", "firmware_type", "component_version", "component_base_version")
"""Optional fields of the commit that become fields of the artifact."""


def commit_release(context: RequestContext, file: CommittedFile) -> Response:
    """Add a payload to its release, which is created if there is none."""
    body, project = context.body, context.project
    software = body["software_version"]
    release = _release(project, software["version"])
    artifact = _artifact(context, file)
    if any(_artifact_key(other) == _artifact_key(artifact) for other in release.artifacts):
        raise ObservabilityRefused(409, "this release has such an artifact already")
    release.artifacts.append(artifact)
    release.updated = project.now
    release.notes = body.get("notes", release.notes)
    release.extra_info = body.get("extra_info", release.extra_info)
    release.revision = software.get("revision") or release.revision
    release.must_pass_through = bool(body.get("must_pass_through"))
    if release.delta_from:
        key = f"{release.delta_from}/{release.version}"
        project.table(tables.DELTA_RELEASES).put(key, release)
    else:
        project.table(tables.RELEASES).put(release.version, release)
    return accepted_response(context)


def _release(project: Project, version: str | list[str]) -> Release:
    """Return the release of a version, or of a pair of versions."""
    if not isinstance(version, list):
        return project.release(version)
    delta_from, target = version
    known = project.table(tables.DELTA_RELEASES).get(f"{delta_from}/{target}")
    return known or project.new_release(target, delta_from)


def _artifact(context: RequestContext, file: CommittedFile) -> Artifact:
    body, project = context.body, context.project
    return Artifact(
        id=project.next_id("artifacts"),
        type="firmware",
        hardware_version=body["hardware_version"],
        software_type=body["software_version"]["software_type"],
        build_id=None,
        filename=file.name,
        blob=file.blob,
        md5=file.md5,
        size=len(file.data),
        created=project.now,
        more={name: body[name] for name in _ARTIFACT_FIELDS if body.get(name) is not None},
    )


def _artifact_key(artifact: Artifact) -> tuple[JSONValue, ...]:
    """Return the key that is unique among the artifacts of a release."""
    return (
        artifact.hardware_version,
        artifact.software_type,
        artifact.more.get("component_base_version"),
        artifact.more.get("firmware_type"),
    )


def commit_handler(kind: UploadKind) -> Handler:
    """Return the handler that commits a file of that kind."""

    async def commit(context: RequestContext) -> Response:
        file = _claim(context, kind)
        return _COMMITS.get(kind.name, _store_file)(context, file)

    return commit


def _claim(context: RequestContext, kind: UploadKind) -> CommittedFile:
    """Remove a prepared upload by its token; return its file.

    Raises 404 if there is no upload that can be committed here.
    """
    cloud, project, named = context.cloud, context.project, context.body["file"]
    secret = cloud.table(file_storage.TOKENS).get(named["token"]) or ""
    upload = cloud.table(file_storage.UPLOADS).get(secret)
    if upload is None or upload.project != project.path:
        raise not_found("an upload of this token")
    if file_storage.has_expired(cloud, upload):
        raise not_found("the upload token has expired: the upload")
    if upload.kind != kind.name:
        raise not_found(f"the upload was prepared as {upload.kind}: one of {kind.name}")
    if upload.blob is None or (upload.state, UploadEvent.COMMIT) not in TRANSITIONS:
        raise not_found("nothing was put for this token: the file")
    data = cloud.table(file_storage.BLOBS)[upload.blob]
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if named.get("md5") and named["md5"].lower() != md5 and not upload.content_encoding:
        raise invalid("the MD5 is not that of the file")
    file_storage.advance(cloud, secret, upload, UploadEvent.COMMIT)
    name = named.get("name") or kind.name.lower()
    return CommittedFile(kind.name, name, md5, upload.blob, data)


def _store_file(context: RequestContext, file: CommittedFile) -> Response:
    """Store a file that needs no processing."""
    if file.kind == "CUSTOM_DATA_RECORDING":
        _mark_seen(context)
    _add_file(context, file)
    return accepted_response(context)


def _commit_archive(context: RequestContext, file: CommittedFile) -> Response:
    device = _mark_seen(context)
    entries = add_archive(context.project, file.data, device.device_serial)
    _add_file(context, file, entries=entries)
    return accepted_response(context)


def _commit_symbols(context: RequestContext, file: CommittedFile) -> Response:
    build_id = gnu_build_id(file.data)
    software = context.body.get("software_version")
    others = context.project.table(tables.FILES).values()
    for one in others:
        same = one.kind == file.kind and one.md5 == file.md5
        # Without a build id the version says which dumps the file is for.
        if same and (build_id or one.details.get("software_version") == software):
            raise ObservabilityRefused(409, "this symbol file was already uploaded")
    _add_file(context, file, gnu_build_id=build_id)
    return accepted_response(context)


def _commit_coredump(context: RequestContext, file: CommittedFile) -> Response:
    if not file.data.startswith(MAGIC):
        raise invalid("it does not begin as a core dump does")
    return store_coredump(context, file.data, context.body.get("device_serial"))


def _commit_elf(context: RequestContext, file: CommittedFile) -> Response:
    device = _mark_seen(context)
    add_coredump(context.project, file.data, None, identity=device)
    _add_file(context, file)
    return accepted_response(context)


_COMMITS = {
    "COREDUMP": _commit_coredump,
    "ELF_COREDUMP": _commit_elf,
    "MAR": _commit_archive,
    "SYMBOL_FILE": _commit_symbols,
    "OTA_PAYLOAD": commit_release,
}


def _add_file(context: RequestContext, file: CommittedFile, **found: JSONValue) -> None:
    """Store a file with the fields of its commit, and what was found in it."""
    project = context.project
    fields = {key: value for key, value in context.body.items() if key != "file"}
    stored = StoredFile(
        id=project.next_id("files"),
        kind=file.kind,
        name=file.name,
        md5=file.md5,
        size=len(file.data),
        blob=file.blob,
        details={**fields, **found},
        created=project.now,
    )
    project.table(tables.FILES).put(str(stored.id), stored)


def _mark_seen(context: RequestContext) -> Identity:
    """Record that the device of a commit was seen, and return it."""
    device = msgspec.convert(context.body.get("device", context.body), Identity)
    context.project.mark_seen(device)
    return device
