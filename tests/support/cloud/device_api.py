"""The made-up devices of the stand-in, and the device cloud as their owner sees it."""

import re
from urllib.parse import quote

from tests.support.cloud.standin import StandIn

GATEWAY = "nrf-352656109000001"
BLE = "DE:AD:BE:EF:00:01"
GENERIC = "nrf-352656109000002"
FREE = "greenhouse north"
SERVICE = "00001523-1212-EFDE-1523-785FEABCD123"
LED = "00001525-1212-EFDE-1523-785FEABCD123"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Api:
    """The device cloud as its owner sees it."""

    def __init__(self, standin: StandIn, credential: str = "api_key") -> None:
        self.client = standin.client
        self.header = standin.bearer(credential)

    async def call(self, method: str, path: str, *, headers: dict | None = None, **given):
        return await self.client.request(
            method, "/v1" + path, headers=self.header | (headers or {}), **given
        )

    async def get(self, path: str, **query):
        answer = await self.call("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def device_path(device_id: str) -> str:
    return "/devices/" + quote(device_id, safe="")
