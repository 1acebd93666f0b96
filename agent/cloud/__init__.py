"""The device cloud: each operation as a call, and `DeviceCloud`, which sends them."""

from agent.cloud.client import DeviceCloud
from agent.cloud.device import Device
from agent.cloud.device_reads import Filter, Transformed
from agent.cloud.public_keys import BulkOperation, NewDevice, PublicKey
from agent.cloud.request_parts import Page

__all__ = [
    "BulkOperation",
    "Device",
    "DeviceCloud",
    "Filter",
    "NewDevice",
    "Page",
    "PublicKey",
    "Transformed",
]
