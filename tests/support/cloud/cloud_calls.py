"""Clients of the stand-in's device cloud."""

from collections.abc import AsyncIterator
from typing import Any

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Host
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn


def client_of(standin: StandIn, key: str = "") -> HttpClient:
    credential = ApiKey(Secret(key or standin.credentials["api_key"]))
    hosts = {Host.DEVICE_CLOUD: standin.urls["device_cloud"]}
    return HttpClient(HttpTransport(), hosts, Keyring([credential]), kit_gate=open_gate)


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]
