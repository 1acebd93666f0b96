"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.cloud import DeviceCloud
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, speaking_for_kit


@pytest.fixture
async def cloud(standin: StandIn) -> AsyncIterator[DeviceCloud]:
    async with speaking_for_kit(standin, api_key(standin)) as client:
        yield DeviceCloud(client)
