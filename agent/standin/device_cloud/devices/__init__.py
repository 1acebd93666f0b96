"""Devices, their shadow, messages, Bluetooth children and bulk operations."""
