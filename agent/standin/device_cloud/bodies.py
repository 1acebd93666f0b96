"""What the bodies of the device cloud may hold: handlers check by these, the document shows them.

A format that no standard defines (`pem`, `firmware-bundle`) names what no keyword can say; the
handler looks into such a value itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud.bundles import FIRMWARE_TYPES

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema

TEXT: Schema = {"type": "string"}
_LINE: Schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\r\\n]+$"}
_TAG: Schema = {"type": "string", "maxLength": 799, "pattern": "^[a-zA-Z0-9_.@:#-]+$"}
_PART: Schema = {"type": ["object", "null"]}
_PEM: Schema = {
    "type": "string",
    "format": "pem",
    "description": "A certificate or a public key of the curve P-256.",
}

NAME: Schema = {
    "anyOf": [_LINE, {"type": "array", "minItems": 1, "maxItems": 1, "items": _LINE}],
    "description": "A text, or, as vendor scripts send it, a list of one.",
}
TAGS: Schema = {"type": "array", "items": _TAG}
STATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {"reported": _PART, "desired": _PART},
}
# The longest is that of an attribute: Bluetooth Core, volume 3, part F, 3.2.9.
VALUE: Schema = {
    "type": "array",
    "maxItems": 512,
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
}
MESSAGE: Schema = {
    "type": "object",
    "required": ["message"],
    "properties": {"message": {"type": ["object", "array", "string"]}},
    "description": "`topic` may be added, a text: one of the device's own, d/<id>/d2c,"
    " d/<id>/d2c/bulk for a list or d/<id>/d2c/bin for base64.",
}
NEWCOMER: Schema = {
    "type": "object",
    "anyOf": [{"required": ["certificate"]}, {"required": ["onboardingToken"]}],
    "properties": {
        "certificate": _PEM,
        "onboardingToken": _PEM,
        "subType": {"type": "string", "pattern": "^[a-zA-Z0-9_.,@/:#-]{0,799}$"},
        "tags": TAGS,
        "supportedFirmwareTypes": {
            "type": "array",
            "items": {"type": "string", "enum": sorted(FIRMWARE_TYPES)},
        },
    },
}
_IDS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "items": {"type": "string", "minLength": 1},
}
_TARGETS = ("deviceIds", "tags", "deviceIdentifiers")
JOB: Schema = {
    "type": "object",
    "required": ["bundleId"],
    "oneOf": [{"required": [name]} for name in _TARGETS],
    "properties": {
        "bundleId": TEXT,
        **dict.fromkeys(_TARGETS, _IDS),
        "name": {"type": "string", "maxLength": 64},
        "description": {"type": "string", "maxLength": 1024},
        # A released tool sends the text.
        "autoApply": {"enum": [True, False, "true", "false"]},
    },
}

# The body of an attestation token is a CBOR array of five with fixed lengths: identity, the
# device's UUID, its type, its firmware's UUID, a nonce. So is its signature: ES256, not attached.
_SIX_BITS = "[A-Za-z0-9_-]"
_IDENTITY = f"2dn3hQFQ{_SIX_BITS}{{21}}[AQgw][BFJNRVZdhlptx159]Q"
_IDENTITY += f"{_SIX_BITS}{{21}}[FVl1][A-D]{_SIX_BITS}{{21}}"
CLAIM: Schema = {
    "type": "object",
    "required": ["claimToken"],
    "properties": {
        "claimToken": {
            "type": "string",
            "maxLength": 4096,
            "pattern": rf"^{_IDENTITY}(\.{_SIX_BITS}*)?$",
            "description": "What AT%ATTESTTOKEN answers.",
        },
        "tags": TAGS,
    },
}

# Attributes of a distinguished name as RFC 4514 writes them, those that need no escape.
_ASCII = "[A-Za-z0-9]([A-Za-z0-9 ._:@/-]{0,62}[A-Za-z0-9])?"
_ATTRIBUTE = f"(C=[A-Z]{{2}}|(CN|O|OU|L|ST|STREET|UID)={_ASCII})"
_SEC_TAG: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}


def _command(**fields: Schema) -> Schema:
    return {
        "type": "object",
        "required": [name for name in fields if name in {"secTag", "content"}],
        "properties": fields,
    }


COMMANDS = {
    "certificateSigningRequest": _command(
        secTag=_SEC_TAG,
        attributes={
            "type": "string",
            "maxLength": 512,
            "pattern": f"^({_ATTRIBUTE}(,{_ATTRIBUTE})*)?$",
        },
        keyUsage={"type": "string", "pattern": "^[01]{9}$"},
    ),
    "clientCertificate": _command(secTag=_SEC_TAG, content=TEXT),
    "serverCertificate": _command(secTag=_SEC_TAG, content=TEXT),
    "clientPrivateKeyGeneration": _command(secTag=_SEC_TAG),
    "cloudAccessKeyGeneration": _command(secTag=_SEC_TAG),
    "finished": _command(),
}
COMMAND: Schema = {
    "type": "object",
    "required": ["request"],
    "properties": {
        "description": {"type": "string", "maxLength": 1024},
        "request": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": COMMANDS,
        },
    },
}


def named(key: str) -> Schema:
    """Return the body of what is known by one field."""
    name: Schema = {"type": "string", "minLength": 1}
    return {"type": "object", "required": [key], "properties": {key: name, "tags": TAGS}}
