"""The devices of all teams: looked up by id in constant time, walked in a fixed order.

A fleet device is generated from its number until something changes it: a hundred thousand of them
take no memory, and do not slow a fetch.
"""

from collections.abc import Iterator, Mapping

import msgspec

from agent.json_value import JSONValue
from agent.standin.clock import iso
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import seed
from agent.standin.device_cloud.operations import Context
from agent.standin.device_cloud.refusals import no_device
from agent.standin.device_cloud.resource import Resource, new_version
from agent.standin.device_cloud.tables import DEVICES, DISCOVERIES, Device, DeviceFields, Service
from agent.standin.state import Cloud

_TAG: Schema = {"type": "string", "maxLength": 799, "pattern": "^[a-zA-Z0-9_.@:#-]+$"}
TAGS: Schema = {"type": "array", "items": _TAG}
SUB_TYPE: Schema = {"type": "string", "pattern": "^[a-zA-Z0-9_.,@/:#-]{0,799}$"}
_CREATED_AT_S = 1_735_787_045.678
"""When the fleet was made: 2025-01-02T03:04:05.678Z."""


class Registry:
    """The devices in the store of a cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._table = cloud.table(DEVICES)
        self._due = cloud.table(DISCOVERIES)
        self._team = cloud.team_id
        if not len(self._table):
            for fields in seed.seeded():
                self.create(self._team, fields)

    def get(self, team: str, device_id: str) -> Device:
        """Return a device of the team. Raises a 404 where there is none."""
        record = self.find(device_id)
        if record is None or record.team != team:
            raise no_device(device_id)
        return record

    def find(self, device_id: str) -> Device | None:
        """Return a device of any team, or None."""
        self._finish_discoveries()
        key = device_id.casefold()
        if key in self._table:
            return self._table.get(key)
        index = seed.fleet_index(key)
        if index is not None and index < self._cloud.settings.devices:
            return self._fleet_record(index)
        return None

    def create(self, team: str, fields: DeviceFields) -> Device:
        """Add a device, or replace the one of that id."""
        now = self._cloud.clock.iso()
        device = Device(
            team=team, fields=fields, version=new_version(), created_at=now, updated_at=now
        )
        self._table.put(fields.id.casefold(), device)
        return device

    def change(self, device: Device) -> None:
        """Store a device whose fields were changed: a new version, a new time of update."""
        device.version, device.updated_at = new_version(), self._cloud.clock.iso()
        self._table.put(device.fields.id.casefold(), device)

    def delete(self, device: Device) -> None:
        """Delete a device, and those that are connected through it."""
        fields = device.fields
        key = fields.id.casefold()
        if seed.fleet_index(key) is None:
            self._table.delete(key)
        else:
            self._table.put(key, None)
        self._due.delete(key)
        if fields.type == "Gateway":
            for child in self.children_of(fields.id):
                self.delete(child)
        elif fields.gateway_id:
            self.sync_connections(fields.gateway_id)

    def children_of(self, gateway_id: str) -> list[Device]:
        """Return the BLE devices that are connected through a gateway."""
        return [
            device
            for device in self._table.values()
            if device and device.fields.gateway_id == gateway_id
        ]

    def sync_connections(self, gateway_id: str) -> None:
        """Set `statusConnections` of a gateway to its BLE devices (clause D2.4)."""
        gateway = self.find(gateway_id)
        if gateway is None:
            return
        state = gateway.fields.state
        reported = _object(state.get("reported"))
        before = reported.get("statusConnections")
        known = _object(before)
        connected: JSONValue = {"status": {"connected": True}}
        children = [device.fields.id for device in self.children_of(gateway.fields.id)]
        now = {child: known.get(child, connected) for child in sorted(children, key=str.casefold)}
        if now != before:
            state["reported"] = {**reported, "statusConnections": now}
            self.change(gateway)

    def walk(self, team: str) -> Iterator[Device]:
        """Yield the team's devices in the order of their creation, the fleet last."""
        self._finish_discoveries()
        fleet = self._cloud.settings.devices if team == self._team else 0
        for key, record in self._table.items():
            index = seed.fleet_index(key)
            # Beyond the fleet such an id is one like any other.
            if record and record.team == team and (index is None or index >= fleet):
                yield record
        for index in range(fleet):
            key = seed.fleet_id(index)
            record = self._table.get(key) if key in self._table else self._fleet_record(index)
            if record and record.team == team:
                yield record

    def schedule_discovery(self, device: Device) -> None:
        """Rediscover the services of a BLE device after the delay (clause D7)."""
        key = device.fields.id.casefold()
        self._due.put(key, self._cloud.clock.time() + self._cloud.settings.discover_s)

    def _finish_discoveries(self) -> None:
        """Finish the discoveries that are due."""
        if not len(self._due):
            return
        now = self._cloud.clock.time()
        for key, due in self._due.items():
            if due <= now:
                self._due.delete(key)
                self._discover(key)

    def to_resource(self, device: Device, *, state: bool = True, metadata: bool = True) -> Resource:
        """Return the Device resource of a record."""
        content = {**msgspec.to_builtins(device.fields), "tenantId": device.team}
        if not state:
            del content["state"]
        elif device.fields.type != "BLE":
            content["state"] = _state_resource(device.fields.state, metadata=metadata)
        return Resource(content, device.version, device.created_at, device.updated_at)

    def _discover(self, key: str) -> None:
        device = self._table.get(key)
        if not device:
            return
        found = {**seed.led_button_service(), **seed.battery_service(87)}
        # A written value is kept: the peripheral holds it.
        known = services(device)
        device.fields.state = msgspec.to_builtins(
            {uuid: known.get(uuid, service) for uuid, service in found.items()}
        )
        self.change(device)

    def _fleet_record(self, index: int) -> Device:
        made = iso(_CREATED_AT_S)
        return Device(
            team=self._team,
            fields=seed.fleet_device(index),
            version=f"{index:08x}{self._team[:8]}",
            created_at=made,
            updated_at=made,
        )


def registry(cloud: Cloud) -> Registry:
    """Return the one registry of a cloud."""
    return cloud.of_tables(Registry, lambda: Registry(cloud))


def own_device(context: Context) -> Device:
    """Return the team's device that the path names. Raises a 404 where there is none."""
    return registry(context.cloud).get(context.team, context.path["device_id"])


def device_to_change(context: Context) -> Device:
    """Return the device of the path, once it may be changed. Raises 404, 412."""
    device = own_device(context)
    context.check_if_match(device.version)
    return device


def services(device: Device) -> dict[str, Service]:
    """Return the services of a BLE device; another has none."""
    return msgspec.convert(
        device.fields.state if device.fields.type == "BLE" else {}, dict[str, Service]
    )


def _object(value: JSONValue) -> dict[str, JSONValue]:
    return value if isinstance(value, dict) else {}


def _state_resource(state: Mapping[str, JSONValue], *, metadata: bool) -> dict[str, JSONValue]:
    resource = {key: value for key, value in state.items() if metadata or key != "metadata"}
    delta = difference(_object(state.get("desired")), state.get("reported"))
    if delta:
        resource["delta"] = delta
    return resource


def merge(old: JSONValue, change: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return `old` with `change` merged into it, object by object; null removes a key."""
    merged = dict(_object(old))
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def timestamps(content: Mapping[str, JSONValue], now: int) -> dict[str, JSONValue]:
    """Return the time of each value of a change, in the shape of the change."""
    times: dict[str, JSONValue] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            times[key] = timestamps(value, now)
        else:
            times[key] = None if value is None else {"timestamp": now}
    return times


def difference(desired: Mapping[str, JSONValue], reported: JSONValue) -> dict[str, JSONValue]:
    """Return what of `desired` is not `reported`: this is `state.delta`, which a device acts on.

    Objects are compared key by key, lists as a whole; a key that is only reported is ignored.
    """
    known = _object(reported)
    found: dict[str, JSONValue] = {}
    for key, value in desired.items():
        has = known.get(key)
        if isinstance(value, dict) and isinstance(has, dict):
            inner = difference(value, has)
            if inner:
                found[key] = inner
        elif (
            key not in known or has != value or isinstance(has, bool) is not isinstance(value, bool)
        ):
            found[key] = value
    return found
