"""Notices that a service answers again, so that what waits for it does not wait for its turn."""

import asyncio

from agent.call import Host
from agent.errors import AgentError, ConfigError
from agent.http import HttpClient

WATCH_S = 10.0
"""Between two looks, while something waits for a service."""
_PATIENCE_S = 5.0


class ServiceWatch:
    """Which services answered at the last look: a service that fails all the time is not back."""

    def __init__(self) -> None:
        self._answered: dict[str, bool] = {}

    def forget(self) -> None:
        """Forget what was seen: nothing waits any more."""
        self._answered.clear()

    async def is_back(self, client: HttpClient) -> bool:
        """Return whether a service answers that did not at the last look; at the first, any."""
        urls = _base_urls(client)
        answers = await asyncio.gather(*(_answers(client, url) for url in urls))
        before, self._answered = self._answered, dict(zip(urls, answers, strict=True))
        return any(now and not before.get(url, False) for url, now in self._answered.items())


def _base_urls(client: HttpClient) -> list[str]:
    urls: dict[str, None] = {}
    for host in Host:
        try:
            urls[client.base_url(host)] = None
        except ConfigError:
            continue
    return list(urls)


async def _answers(client: HttpClient, url: str) -> bool:
    """Ask for nothing in particular, without a credential; a refusal is an answer, too."""
    try:
        async with (
            asyncio.timeout(_PATIENCE_S),
            client.transport.open("GET", f"{url}/", headers={}) as answer,
        ):
            return answer.status < 500
    except (AgentError, TimeoutError):
        return False
