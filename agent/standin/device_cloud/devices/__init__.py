"""Devices: onboarding, claiming, state, messages, BLE devices, bulk requests."""
