"""The device cloud: each operation as a call, and `DeviceCloud`, which sends them."""

from agent.cloud.client import DeviceCloud
from agent.cloud.conventions import Page
from agent.cloud.device import Device
from agent.cloud.device_reads import Filter, Transformed
from agent.cloud.public_keys import BulkOperation, NewDevice, PublicKey

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
