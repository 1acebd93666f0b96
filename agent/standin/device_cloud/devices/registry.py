"""The devices of all teams: looked up by id in constant time, walked in a fixed order.

A fleet device is generated from its number until something changes it: a hundred thousand of them
take no memory, and do not slow a fetch.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from agent.standin.clock import iso
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import seed
from agent.standin.device_cloud.refusals import no_device
from agent.standin.device_cloud.resource import new_version
from agent.standin.state import Cloud

Record = dict[str, Any]
"""{"team", "fields": a Device without tenantId and $meta, "version", "created_at", "updated_at"}"""
_TAG: Schema = {"type": "string", "maxLength": 799, "pattern": "^[a-zA-Z0-9_.@:#-]+$"}
TAGS: Schema = {"type": "array", "items": _TAG}
_CREATED_AT_S = 1_735_787_045.678
"""When the fleet was made: 2025-01-02T03:04:05.678Z."""
# Any text may be an id (clause D2.2); a control character is none.
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


class Registry:
    """The devices in the store of a cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._table = cloud.table("devices")
        self._due = cloud.table("discoveries")
        self._team = cloud.team_id
        if not len(self._table):
            for fields in seed.seeded():
                self.create(self._team, fields)

    def get(self, team: str, device_id: str) -> Record:
        """Return a device of the team. Raises a 404 where there is none."""
        record = self.find(device_id)
        if record is None or record["team"] != team:
            raise no_device(device_id)
        return record

    def find(self, device_id: str) -> Record | None:
        """Return a device of any team, or None."""
        self._finish_discoveries()
        key = device_id.casefold()
        if key in self._table:
            record: Record | None = self._table.get(key)
            return record
        index = seed.fleet_index(key)
        if index is not None and index < self._cloud.settings.devices:
            return self._fleet_record(index)
        return None

    def create(self, team: str, fields: dict[str, Any]) -> Record:
        """Add a device, or replace the one of that id."""
        now = self._cloud.clock.iso()
        record = {
            "team": team,
            "fields": fields,
            "version": new_version(),
            "created_at": now,
            "updated_at": now,
        }
        self._table.put(fields["id"].casefold(), record)
        return record

    def change(self, record: Record, fields: dict[str, Any]) -> Record:
        """Store new fields of a device: a new version, a new time of update."""
        changed = {
            **record,
            "fields": fields,
            "version": new_version(),
            "updated_at": self._cloud.clock.iso(),
        }
        self._table.put(fields["id"].casefold(), changed)
        return changed

    def delete(self, record: Record) -> None:
        """Delete a device, and those that are connected through it."""
        fields = record["fields"]
        key = fields["id"].casefold()
        if seed.fleet_index(key) is None:
            self._table.delete(key)
        else:
            self._table.put(key, None)
        self._due.delete(key)
        if fields["type"] == "Gateway":
            for child in self.children_of(fields["id"]):
                self.delete(child)
        elif "gatewayId" in fields:
            self.sync_connections(fields["gatewayId"])

    def children_of(self, gateway_id: str) -> list[Record]:
        """Return the BLE devices that are connected through a gateway."""
        return [
            record
            for record in self._table.values()
            if record and record["fields"].get("gatewayId") == gateway_id
        ]

    def sync_connections(self, gateway_id: str) -> None:
        """Set `statusConnections` of a gateway to its BLE devices (clause D2.4)."""
        gateway = self.find(gateway_id)
        if gateway is None:
            return
        fields = copy.deepcopy(gateway["fields"])
        reported = fields["state"].setdefault("reported", {})
        before = reported.get("statusConnections")
        known = before if isinstance(before, dict) else {}
        children = [record["fields"]["id"] for record in self.children_of(fields["id"])]
        now = {
            child: known.get(child, {"status": {"connected": True}})
            for child in sorted(children, key=str.casefold)
        }
        if now != before:
            reported["statusConnections"] = now
            self.change(gateway, fields)

    def walk(self, team: str) -> Iterator[Record]:
        """Yield the team's devices in the order of their creation, the fleet last."""
        self._finish_discoveries()
        for key, record in self._table.items():
            if record and record["team"] == team and seed.fleet_index(key) is None:
                yield record
        if team == self._team:
            for index in range(self._cloud.settings.devices):
                key = seed.fleet_id(index)
                record = self._table.get(key) if key in self._table else self._fleet_record(index)
                if record:
                    yield record

    def schedule_discovery(self, record: Record) -> None:
        """Rediscover the services of a BLE device after the delay (clause D7)."""
        key = record["fields"]["id"].casefold()
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

    def to_resource(self, record: Record, *, state: bool = True, metadata: bool = True) -> Record:
        """Return the Device resource of a record."""
        device = {**record["fields"], "tenantId": record["team"]}
        if not state:
            del device["state"]
        elif device["type"] != "BLE":
            device["state"] = _state_resource(device["state"], metadata=metadata)
        device["$meta"] = {
            "version": record["version"],
            "createdAt": record["created_at"],
            "updatedAt": record["updated_at"],
        }
        return device

    def _discover(self, key: str) -> None:
        record = self._table.get(key)
        if not record:
            return
        fields = copy.deepcopy(record["fields"])
        found = {**seed.led_button_service(), **seed.battery_service(87)}
        # A written value is kept: the peripheral holds it.
        fields["state"] = found | {
            uuid: service for uuid, service in fields["state"].items() if uuid in found
        }
        self.change(record, fields)

    def _fleet_record(self, index: int) -> Record:
        made = iso(_CREATED_AT_S)
        return {
            "team": self._team,
            "fields": seed.fleet_device(index),
            "version": f"{index:08x}{self._team[:8]}",
            "created_at": made,
            "updated_at": made,
        }


def registry(cloud: Cloud) -> Registry:
    """Return the one registry of a cloud."""
    return cloud.transient(Registry, lambda: Registry(cloud))


def _state_resource(state: dict[str, Any], *, metadata: bool) -> dict[str, Any]:
    resource = {key: value for key, value in state.items() if metadata or key != "metadata"}
    desired = state.get("desired")
    delta = difference(desired, state.get("reported")) if desired else None
    if delta:
        resource["delta"] = delta
    return resource


def is_device_id(text: str) -> bool:
    """Return whether a text may be a device id: 1 to 128 characters, no control characters."""
    return _ID.fullmatch(text) is not None


def merge(old: Any, change: dict[str, Any]) -> dict[str, Any]:
    """Return `old` with `change` merged into it, object by object; null removes a key."""
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def timestamps(content: Any, now: int) -> Any:
    """Return the time of each value of a change, in the shape of the change."""
    if isinstance(content, dict):
        return {
            key: None if value is None else timestamps(value, now) for key, value in content.items()
        }
    return {"timestamp": now}


def difference(desired: dict[str, Any], reported: Any) -> dict[str, Any]:
    """Return what of `desired` is not `reported`: this is `state.delta`, which a device acts on.

    Objects are compared key by key, lists as a whole; a key that is only reported is ignored.
    """
    known = reported if isinstance(reported, dict) else {}
    found = {}
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
