"""The kinds of files that are uploaded: how large, committed where, and with which words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.standin.observability.ingest.push import MAX_COREDUMP
from agent.standin.observability.project import RELEASE_VERSION, SLUG, VERSION
from agent.standin.observability.shapes import shape
from agent.standin.observability.uploads.files import MAX_FILE

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema

_MEBIBYTE = 1024 * 1024
_NAME: Schema = {"type": "string", "maxLength": 512}
IDENTITY = shape(
    device_serial=SLUG,
    hardware_version=VERSION,
    software_type=VERSION,
    software_version=VERSION,
)
_SOFTWARE: Schema = {
    "type": "object",
    "required": ["version", "software_type"],
    "properties": {
        "version": {
            # Two are a step, from the one to the other.
            "anyOf": [
                RELEASE_VERSION,
                {"type": "array", "items": RELEASE_VERSION, "minItems": 2, "maxItems": 2},
            ]
        },
        "software_type": VERSION,
        "revision": _NAME,
    },
}
_BUILD: Schema = {**_SOFTWARE, "properties": {**_SOFTWARE["properties"], "version": _NAME}}
"""What symbols are of: an Android app's version has its code behind a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file: the most bytes, where it is committed, and what its commit says."""

    name: str
    limit: int
    key_path: str | None
    user_path: str
    fields: dict[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def body(self) -> Schema:
        """Return the schema of the commit."""
        token: Schema = {
            "type": "object",
            "required": ["token"],
            "properties": {
                "token": {"type": "string", "pattern": f"^{TOKEN}$"},
                "md5": {"type": "string", "pattern": "^([0-9a-fA-F]{32})?$"},
                "name": _NAME,
            },
        }
        return {
            "type": "object",
            "required": ["file", *self.required],
            "properties": {"file": token, **self.fields},
        }


TOKEN_BYTES = 24
TOKEN = "[A-Za-z0-9_-]{32}"
"""What `token_urlsafe` makes of them."""

KINDS = (
    Kind(name="COREDUMP", limit=MAX_COREDUMP, key_path="coredump", user_path="coredumps",
         fields={"device_serial": SLUG}),
    Kind(name="ELF_COREDUMP", limit=MAX_FILE, key_path="elf_coredump",
         user_path="elf_coredumps", fields={"device": IDENTITY}, required=("device",)),
    Kind(name="MAR", limit=64 * _MEBIBYTE, key_path="mar", user_path="mar",
         fields=dict(IDENTITY["properties"]), required=tuple(IDENTITY["required"])),
    Kind(name="ANDROID_BUG_REPORT", limit=MAX_FILE, key_path="bugreport",
         user_path="bugreports"),
    Kind(name="CUSTOM_DATA_RECORDING", limit=16 * _MEBIBYTE, key_path="custom-data-recording",
         user_path="custom-data-recording",
         fields={
             "start_time": {"type": "string", "maxLength": 64},
             "duration_secs": {"type": "number", "minimum": 0},
             "mimetypes": {"type": "array", "items": _NAME, "maxItems": 100},
             "reason": _NAME,
             "device": IDENTITY,
         },
         required=("start_time", "mimetypes", "reason", "device")),
    Kind(name="SYMBOL_FILE", limit=MAX_FILE, key_path=None, user_path="symbols",
         fields={"software_version": _BUILD}),
    Kind(name="SBOM", limit=64 * _MEBIBYTE, key_path=None, user_path="sboms",
         fields={"software_version": VERSION, "software_type": VERSION},
         required=("software_version", "software_type")),
    Kind(name="OTA_PAYLOAD", limit=MAX_FILE, key_path=None, user_path="releases/ota_payload",
         fields={
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
    Kind(name="QCOMM_X", limit=MAX_FILE, key_path="qc/x", user_path="qc/x",
         fields={
             "device_serial": SLUG,
             "hardware_version": VERSION,
             "trace_attributes": {"type": "array", "items": {"type": "object"}, "maxItems": 1000},
         },
         required=("device_serial", "hardware_version")),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


def prepare() -> Schema:
    """Return the schema of what an upload is prepared with; each kind has its largest size."""
    limits = sorted({kind.limit for kind in KINDS})
    return {
        "type": "object",
        "required": ["kind", "size"],
        "properties": {
            "kind": {"type": "string", "enum": list(BY_NAME)},
            "size": {"type": "integer", "minimum": 0},
            "device": {"type": ["object", "null"]},
            "content_encoding": {"enum": ["gzip", "identity", None]},
        },
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
