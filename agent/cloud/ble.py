"""The state of a BLE device: services, characteristics, descriptors, values as bytes. Pure.

Worked example of the demo application (clause D3.3): a characteristic of two bytes whose first
is a bit mask, LED1 01 to LED4 08. To light LED2 and LED4:

>>> leds = {2, 4}
>>> bytes([sum(1 << (led - 1) for led in leds), 0]).hex(" ")
'0a 00'
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from agent.cloud.conventions import device_path, path_segment
from agent.errors import BadAnswer
from agent.json_value import JSONValue


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One descriptor; `path` is <service>/<characteristic>/<descriptor>."""

    uuid: str
    path: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Characteristic:
    """One characteristic; `path` is <service>/<characteristic>, `properties` the true ones."""

    uuid: str
    path: str
    value: bytes
    properties: frozenset[str]
    descriptors: Mapping[str, Descriptor]

    def can(self, name: str) -> bool:
        """Return whether a property ("notify") is true; a missing one is false."""
        return name in self.properties

    @property
    def is_writable(self) -> bool:
        """Whether a client may write the value, with a response or without one."""
        return self.can("write") or self.can("writeWithoutResponse")


@dataclass(frozen=True, slots=True)
class Service:
    """One service and its characteristics by UUID."""

    uuid: str
    characteristics: Mapping[str, Characteristic]


def read_services(state: JSONValue) -> dict[str, Service]:
    """Return the services of a BLE device's `state` by UUID, as written there (clause D3.1).

    A value without `characteristics` is no service and is skipped. Raises BadAnswer for a value
    that is no list of bytes.
    """
    services = {}
    for uuid, service in _objects(state):
        if isinstance(service.get("characteristics"), dict):
            inner = {
                key: _characteristic(f"{uuid}/{key}", key, value)
                for key, value in _objects(service["characteristics"])
            }
            services[uuid] = Service(str(service.get("uuid", uuid)), inner)
    return services


def decode_value(numbers: JSONValue, where: str) -> bytes:
    """Return the bytes of a value that came as a list of integers. Raises BadAnswer."""
    try:
        return bytes(msgspec.convert(numbers, list[int]))
    except ValueError as error:
        raise BadAnswer(f"the value of {where} is no list of bytes") from error


def _characteristic(path: str, uuid: str, raw: dict[str, JSONValue]) -> Characteristic:
    properties = raw.get("properties")
    names = properties.items() if isinstance(properties, dict) else ()
    return Characteristic(
        uuid=str(raw.get("uuid", uuid)),
        path=str(raw.get("path", path)),
        value=decode_value(raw.get("value", []), path),
        properties=frozenset(name for name, true in names if true is True),
        descriptors={
            key: Descriptor(
                str(value.get("uuid", key)),
                str(value.get("path", f"{path}/{key}")),
                decode_value(value.get("value", []), f"{path}/{key}"),
            )
            for key, value in _objects(raw.get("descriptors"))
        },
    )


def _objects(table: JSONValue) -> Iterator[tuple[str, dict[str, JSONValue]]]:
    if isinstance(table, dict):
        for key, value in table.items():
            if isinstance(value, dict):
                yield key, value


def plain(name: str) -> str:
    """Return a UUID or a path as it is compared: without hyphens, in lower case."""
    return name.replace("-", "").lower()


def characteristic_path(device_id: str, characteristic_id: str) -> str:
    """Return the path of a characteristic of a device. Raises UsageError."""
    characteristic = path_segment(characteristic_id, "a characteristic")
    return f"{device_path(device_id)}/characteristics/{characteristic}"
