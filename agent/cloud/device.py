"""A device as the cloud describes it: typed fields, and the whole answer (clause D2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from agent.cloud import ble
from agent.errors import BadAnswer, NotFound, UsageError
from agent.json_value import JSONValue, object_in


class _Meta(msgspec.Struct, rename="camel"):
    version: str | int | None = None
    created_at: str | None = None
    updated_at: str | None = None


class _Firmware(msgspec.Struct):
    supports: tuple[str, ...] | None = None


class _Fields(msgspec.Struct, rename="camel"):
    id: str
    name: str | None = None
    type: str | None = None
    sub_type: str | None = None
    gateway_id: str | None = None
    tenant_id: str | None = None
    tags: tuple[str, ...] | None = None
    firmware: _Firmware | None = None
    meta: _Meta | None = msgspec.field(default=None, name="$meta")


@dataclass(frozen=True, slots=True)
class Device:
    """One device. `raw` is the whole answer, also with the fields that have no attribute here.

    `version` is the ETag if the answer had one, else $meta.version: opaque, sent back as it is.
    """

    raw: Mapping[str, JSONValue]
    id: str
    name: str
    type: str
    sub_type: str | None
    gateway_id: str | None
    tenant_id: str | None
    tags: tuple[str, ...]
    supports: tuple[str, ...]
    """The kinds of firmware that can be updated ("APP", "MODEM")."""
    version: str | None
    created_at: datetime | None
    updated_at: datetime | None

    @classmethod
    def of(cls, raw: JSONValue, etag: str | None = None) -> Device:
        """Return the device that `raw` describes. Raises BadAnswer, naming device and field."""
        try:
            fields = msgspec.convert(raw, _Fields)
            whole = msgspec.convert(raw, dict[str, JSONValue])
            meta = fields.meta or _Meta()
            created_at, updated_at = read_time(meta.created_at), read_time(meta.updated_at)
        except (msgspec.ValidationError, BadAnswer) as error:
            # In a list of thousands it has to be found.
            its_id = raw.get("id") if isinstance(raw, dict) else None
            what = f"the device {its_id!r} cannot be read" if its_id else "this is no device"
            raise BadAnswer(f"{what}: {error}") from error
        version = etag or (str(meta.version) if meta.version is not None else None)
        return cls(
            raw=whole,
            id=fields.id,
            name=fields.name if fields.name is not None else fields.id,
            type=fields.type or "",
            sub_type=fields.sub_type,
            gateway_id=fields.gateway_id,
            tenant_id=fields.tenant_id,
            tags=fields.tags or (),
            supports=(fields.firmware and fields.firmware.supports) or (),
            version=version,
            created_at=created_at,
            updated_at=updated_at,
        )

    @property
    def state(self) -> dict[str, JSONValue]:
        """The state as it came, {} if the list left it out."""
        return object_in(self.raw, "state")

    @property
    def reported(self) -> Mapping[str, JSONValue]:
        """The state that an IP device reports of itself (clause D3.2)."""
        return object_in(self.state, "reported")

    @property
    def connected_ids(self) -> tuple[str, ...]:
        """The ids of the BLE devices that are connected through this gateway (clause D2.4)."""
        return tuple(object_in(self.reported, "statusConnections"))

    @property
    def services(self) -> Mapping[str, ble.Service]:
        """The services of a BLE device by UUID. Raises BadAnswer."""
        return ble.read_services(self.state)

    def characteristic(self, wanted: str) -> ble.Characteristic:
        """Return the characteristic that `wanted` names by UUID or path, in upper or lower case.

        Raises NotFound, and UsageError where several services have the UUID.
        """
        every, name = self._characteristics, ble.plain(wanted)
        matching = [each for each in every if name in {ble.plain(each.uuid), ble.plain(each.path)}]
        if not matching:
            there = ", ".join(each.path for each in every[:8]) or "none"
            raise NotFound(f"no characteristic {wanted!r}; there are: {there}")
        if len(matching) > 1:
            paths = ", ".join(each.path for each in matching)
            raise UsageError(f"{wanted!r} is ambiguous: {paths}", hint="give the path")
        return matching[0]

    def descriptor(self, path: str) -> tuple[ble.Characteristic, ble.Descriptor] | None:
        """Return the descriptor with this path and its characteristic, None without one."""
        for owner in self._characteristics:
            for found in owner.descriptors.values():
                if ble.plain(found.path) == ble.plain(path):
                    return owner, found
        return None

    def wire_id(self, characteristic: ble.Characteristic) -> str:
        """Return the id by which requests name a characteristic of this device.

        It is the UUID, but the path where several services have one of that UUID.
        """
        uuids = [ble.plain(each.uuid) for each in self._characteristics]
        is_alone = uuids.count(ble.plain(characteristic.uuid)) == 1
        return characteristic.uuid if is_alone else characteristic.path

    @property
    def _characteristics(self) -> list[ble.Characteristic]:
        services = self.services.values()
        return [each for service in services for each in service.characteristics.values()]


def read_time(text: str | None) -> datetime | None:
    """Return an ISO 8601 time as an aware datetime; one without offset is UTC (clause D2.3).

    Raises BadAnswer.
    """
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadAnswer(f"{text!r} is no time") from error
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when
