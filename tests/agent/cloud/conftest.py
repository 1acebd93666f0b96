"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.cloud import DeviceCloud
from tests.support.cloud.cloud_calls import client_of
from tests.support.cloud.standin import StandIn


@pytest.fixture
async def cloud(standin: StandIn) -> AsyncIterator[DeviceCloud]:
    async with client_of(standin) as client:
        yield DeviceCloud(client)
