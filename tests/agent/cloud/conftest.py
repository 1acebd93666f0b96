"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from cloud_calls import client_of
from standin import StandIn

from agent.cloud import DeviceCloud


@pytest.fixture
async def cloud(standin: StandIn) -> AsyncIterator[DeviceCloud]:
    async with client_of(standin) as client:
        yield DeviceCloud(client)
