"""PKCS #11 URIs (RFC 7512): they name a private key, its token, and a file with the PIN. Pure."""

import re
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from agent.errors import ConfigError

_SCHEME = "pkcs11:"
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE = re.compile(r"~|/(?!/)|[A-Za-z]:[\\/]")
_PATH = ("token", "manufacturer", "model", "serial", "slot-id", "object", "id", "type")
_QUERY = ("module-path", "pin-source")
_PIN_WAYS = "set CELLAGENT_DEVICE_CA_PIN, add pin-source=file:/PATH, or type it when asked"


class Pkcs11Uri(Struct, frozen=True):
    """A private key on a token; an attribute that the URI does not name is None and matches any.

    `pin_file` is "" where the URI names no source of the PIN.
    """

    module_path: str
    token: str | None = None
    manufacturer: str | None = None
    model: str | None = None
    serial: str | None = None
    slot_id: int | None = None
    object: str | None = None
    id: bytes | None = None
    pin_file: str = ""


def is_pkcs11(text: str) -> bool:
    """Return whether a setting that may be a path is a PKCS #11 URI."""
    return text[: len(_SCHEME)].lower() == _SCHEME


def parse_pkcs11(uri: str, what: str) -> Pkcs11Uri:
    """Return the parts of `uri`; `what` names the setting that it stands in.

    Raises ConfigError, which names an attribute and never shows its value: it may be a PIN.
    """
    path, _, query = uri[len(_SCHEME) :].partition("?")
    named, asked = _attributes(path, ";", what), _attributes(query, "&", what)
    if "pin-value" in named.keys() | asked.keys():
        raise ConfigError(
            f"{what}: pin-value puts the PIN where others read it: the profile, the process list",
            hint=f"change the PIN, remove pin-value, and {_PIN_WAYS}",
        )
    for unknown in (named.keys() - set(_PATH)) | (asked.keys() - set(_QUERY)):
        raise ConfigError(
            f"{what}: the attribute {unknown!r} cannot be used here",
            hint=f"a key is named by {', '.join(_PATH)}; behind the ? by {', '.join(_QUERY)}",
        )
    if named.get("type", b"private") != b"private":
        raise ConfigError(f"{what}: only type=private signs")
    if not asked.get("module-path"):
        raise ConfigError(
            f"{what}: the URI names no module",
            hint="add ?module-path= and the library of the token's maker, or OpenSC's "
            "(/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so)",
        )
    return Pkcs11Uri(
        module_path=_text(asked, "module-path", what) or "",
        token=_text(named, "token", what),
        manufacturer=_text(named, "manufacturer", what),
        model=_text(named, "model", what),
        serial=_text(named, "serial", what),
        slot_id=_number(named, "slot-id", what),
        object=_text(named, "object", what),
        id=named.get("id"),
        pin_file=_pin_file(_text(asked, "pin-source", what) or "", what),
    )


def _attributes(part: str, separator: str, what: str) -> dict[str, bytes]:
    """Return the attributes of one part of a URI, percent-decoded."""
    attributes: dict[str, bytes] = {}
    for attribute in filter(None, part.split(separator)):
        name, equals, value = attribute.partition("=")
        # A value that lost its name may be a PIN: the text itself is not shown.
        if not equals or not name:
            raise ConfigError(f"{what}: an attribute is not NAME=VALUE")
        if name in attributes:
            raise ConfigError(f"{what}: {name} stands there twice")
        if _BROKEN_ESCAPE.search(value):
            raise ConfigError(f"{what}: {name} holds a % that is no %XX", hint="write % as %25")
        # What came from a command line that is not UTF-8 is bytes again.
        attributes[name] = unquote_to_bytes(value.encode("utf-8", "surrogateescape"))
    return attributes


def _text(attributes: dict[str, bytes], name: str, what: str) -> str | None:
    value = attributes.get(name)
    if value is None:
        return None
    if b"\0" in value:
        raise ConfigError(f"{what}: {name} holds a NUL character")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what}: {name} is not UTF-8") from error


def _number(attributes: dict[str, bytes], name: str, what: str) -> int | None:
    value = attributes.get(name)
    if value is None:
        return None
    if not re.fullmatch(rb"[0-9]{1,20}", value):
        raise ConfigError(f"{what}: {name} is no number")
    return int(value)


def _pin_file(source: str, what: str) -> str:
    """Return the path in `pin-source`: a file: URI of this host, or a path."""
    if source.startswith("|"):
        raise ConfigError(
            f"{what}: pin-source names a program, and none is run for a PIN", hint=_PIN_WAYS
        )
    path = re.sub(r"^file:(//(localhost)?(?=/))?", "", source)
    if source and not _ABSOLUTE.match(path):
        raise ConfigError(f"{what}: pin-source is neither file:/PATH nor a path", hint=_PIN_WAYS)
    return path
