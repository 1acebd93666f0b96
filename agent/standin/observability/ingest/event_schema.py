"""The JSON Schema of the events push (clause O3.4). Pure."""

from agent.standin.core.schema import Schema, body_schema, object_schema
from agent.standin.observability.project import MAX_LENGTH, RELEASE_VERSION, SLUG, VERSION

MAX_EVENTS = 1000
_OPEN: Schema = {"type": ["object", "null"]}
_IDENTITY: Schema = {
    "device_serial": SLUG,
    "software_type": VERSION,
    "software_version": VERSION,
    "release_version": RELEASE_VERSION,
    "hardware_version": VERSION,
    "sdk_version": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH},
    "captured_date": {"type": "string", "format": "date-time"},
    "build_id": {"type": "string", "pattern": "^[0-9a-fA-F]{2,128}$"},
    "user_info": _OPEN,
    "extra_info": _OPEN,
}
_REQUIRED = ["type", "device_serial", "hardware_version", "sdk_version", "event_info"]
# The newer pair of fields, or the one before it.
_VERSIONS: list[Schema] = [
    {"required": ["software_type", "software_version"]},
    {"required": ["release_version"]},
]
_METRICS: Schema = {
    "type": "object",
    "propertyNames": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH},
    "additionalProperties": {
        "anyOf": [{"type": ["number", "boolean", "null"]}, {"type": "string", "maxLength": 1000}]
    },
}
_ADDRESS: Schema = {"type": "number", "minimum": 0, "maximum": 2**64 - 1}


def _event_schema(kind: str, info: Schema) -> Schema:
    fields = {"type": {"type": "string", "enum": [kind]}, **_IDENTITY, "event_info": info}
    return {**body_schema(*_REQUIRED, **fields), "anyOf": _VERSIONS}


_HEARTBEAT = _event_schema("heartbeat", object_schema(metrics=_METRICS))
_TRACE = _event_schema(
    "trace",
    body_schema(
        "reason",
        "pc",
        reason={"type": "integer", "minimum": 0, "maximum": 0xFFFF_FFFF},
        **dict.fromkeys(("pc", "lr", "sp"), _ADDRESS),
    ),
)
EVENT: Schema = {
    **object_schema(type={"type": "string", "enum": ["heartbeat", "trace"]}),
    "anyOf": [_HEARTBEAT, _TRACE],
}
EVENTS: Schema = {
    "anyOf": [{"type": "array", "minItems": 1, "maxItems": MAX_EVENTS, "items": EVENT}, EVENT]
}
