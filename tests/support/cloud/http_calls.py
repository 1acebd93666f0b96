"""A call and a client whose service answers as a test says."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Call, Host, Request, Response, Scheme
from agent.config.secrets import Secret
from agent.http import HttpClient
from tests.support.cloud.answering_transport import answering_transport

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


KEY = "test-api-key-canary-0123456789"


BASE = "https://cloud.example"


async def at_once(_seconds: float) -> None:
    """Sleep not at all: what is tested is not the wait."""


@dataclass(frozen=True, slots=True)
class Read(Call[Any]):
    schemes = (Scheme.API_KEY,)

    def request(self) -> Request:
        return Request("GET", "/v1/thing", query=(("transform", "{'a b': id}"), ("x", "ä&=")))

    def parse(self, response: Response) -> Any:
        return response.json()


def client(answer, **settings: Any) -> HttpClient:
    transport = answering_transport(answer)
    return HttpClient(
        transport,
        {Host.DEVICE_CLOUD: BASE},
        Keyring([ApiKey(Secret(KEY))]),
        now=lambda: NOW,
        jitter=lambda: 0.0,
        **{"sleep": at_once, **settings},
    )
