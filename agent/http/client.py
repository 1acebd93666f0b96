"""Sends a `Call`: credential, retries, one renewal of a token; turns refusals into errors.

Connections, their deadlines and TLS are of the transport (`agent.http.transport`).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from agent.auth.credential import Credential, Keyring
from agent.call import Call, Host, Response, Scheme
from agent.config.urls import check_base_url
from agent.errors import BadAnswer, NotConfigured, Unauthorized, Unavailable
from agent.http.refusals import refusal
from agent.http.transport import REDIRECTS, HttpTransport, next_url, same_origin
from agent.retry import DEFAULT_RETRIES, RetryPolicy, wait_before_retry
from at.protocol.errors import FirmwareRefused

OnExchange = Callable[[str, int, float, bool], None]
"""Is told of each request: method and path, the status of its answer or 0, the seconds, and whether
the answer is one of those that its call asks for."""
WhileWaiting = Callable[[str], contextlib.AbstractAsyncContextManager[None]]
"""Is entered while a request waits for its answer; takes the host and port that are asked."""
KitGate = Callable[[], Awaitable[None]]
"""Returns where calls may be made in the kit's name (D1.3). Raises FirmwareRefused, AtError."""

T = TypeVar("T")

MAX_REDIRECTS = 5

_log = logging.getLogger(__name__)
# Not the logger of this module: the agent's log leaves out what that tells of each try.
_warnings = logging.getLogger(__package__)


@lru_cache(maxsize=32)
def _warn_once(warning: str) -> None:
    """Log the warning of a call or a credential, once in the life of the process."""
    _warnings.warning("%s", warning)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request that lacks only its credential."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None


async def refuse_any_kit() -> None:
    """Refuse: the gate of a client that was given no kit."""
    raise FirmwareRefused(
        "this call is made in a kit's name, and there is no modem to ask for its firmware",
        hint="`--port PORT` names the kit, `cellagent config set kit.port PORT` from now on",
    )


class HttpClient:
    """Sends the calls of every service.

    `hosts` are the base URLs; a call to a host that has none is a ConfigError. Clients made by
    `acting_as` share the transport; closing any of them closes it. `kit_gate` is awaited before
    each call in a kit's name, and before each token of a kit. `addresses` says of a base URL what
    helps where it cannot be reached. `project_paths` are the paths in a project that take the place
    of others, of a call that has one: what the path begins with -> what it then begins with.
    `on_exchange` is told of each request that was sent, `while_waiting` is entered for as long as
    one waits for its answer.
    """

    def __init__(
        self,
        transport: HttpTransport,
        hosts: Mapping[Host, str],
        keyring: Keyring | None = None,
        *,
        kit_gate: KitGate = refuse_any_kit,
        retries: RetryPolicy = DEFAULT_RETRIES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        addresses: Mapping[Host, str] | None = None,
        project_paths: Mapping[str, str] | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_exchange: OnExchange = lambda *_: None,
        while_waiting: WhileWaiting = lambda _: contextlib.nullcontext(),
    ) -> None:
        self.transport = transport
        self.keyring = keyring or Keyring()
        self.kit_gate = kit_gate
        self._hosts = {host: url.rstrip("/") for host, url in hosts.items() if url}
        self._addresses = addresses or {}
        self._project_paths = project_paths or {}
        self._retries = retries
        self._now = now
        self._jitter = jitter
        self._sleep = sleep
        self._on_exchange = on_exchange
        self._while_waiting = while_waiting
        for host, url in self._hosts.items():
            check_base_url(url, f"hosts.{host.value}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()

    def acting_as(
        self, *credentials: Credential, kit_gate: KitGate, on_exchange: OnExchange | None = None
    ) -> HttpClient:
        """Return a client for a kit, with these credentials in place of others of their kinds.

        Without `on_exchange` this client's own is told.
        """
        client = copy.copy(self)
        client.keyring = self.keyring.with_(*credentials)
        client.kit_gate = kit_gate
        client._on_exchange = on_exchange or self._on_exchange
        return client

    def base_url(self, host: Host) -> str:
        """Return the base URL of `host`, without a slash at its end. Raises NotConfigured."""
        try:
            return self._hosts[host]
        except KeyError:
            raise NotConfigured(
                f"hosts.{host.value} is not set",
                hint="`cellagent config use public` takes the public services; for the stand-in: "
                "`cellagent cloud serve --write-profile standin`",
            ) from None

    def require(self, call: Call[object]) -> None:
        """Raise what `send` would for this call if the configuration does not allow it.

        That is ConfigError, CredentialMissing or WrongCredential.
        """
        self.base_url(call.host)
        self._credential(call, None)
        self.transport.require_trust()

    async def send(
        self, call: Call[T], *, scheme: Scheme | None = None, retries: RetryPolicy | None = None
    ) -> T:
        """Send `call` and return its parsed answer.

        `scheme` asks for one kind of credential instead of the call's own preference;
        `retries` says how often and how long to try. Raises UsageError (ConfigError),
        CredentialError, ServiceRefusal, BadAnswer, Unavailable; and at.AtError where a modem
        makes the credential, FirmwareRefused where the gate refuses the kit.
        """
        self.base_url(call.host)  # what is missing first is told first
        credential = self._credential(call, scheme)
        prepared = self._prepare(call, credential)
        own_token = credential is not None and credential.scheme is Scheme.DEVICE_JWT
        if own_token or call.in_kit_name:
            await self.kit_gate()
        for warning in (call.warning, credential.warning if credential is not None else ""):
            if warning:
                _warn_once(warning)
        response = await self._sent(call, prepared, credential, retries or self._retries)
        try:
            return call.parse(response)
        except BadAnswer as error:
            raise type(error)(
                f"{call.title}: {error}", hint=error.hint, status=response.status
            ) from error

    async def _sent(
        self,
        call: Call[object],
        prepared: _Prepared,
        credential: Credential | None,
        retries: RetryPolicy,
    ) -> Response:
        """Send, again after each failure as far as `retries` and the error allow."""
        began, tries = time.monotonic(), 0
        # A change that depends on a version cannot tell its own first try from another's.
        repeatable = call.repeatable and "if-match" not in prepared.headers
        while True:
            try:
                return await self._authorized(call, prepared, credential)
            except Unavailable as error:
                if not error.sent and (about := self._addresses.get(call.host)):
                    error.hint = f"{error.hint}; {about}" if error.hint else about
                tries += 1
                wait_s = wait_before_retry(
                    error,
                    tries,
                    retries,
                    repeatable=repeatable,
                    jitter=self._jitter(),
                    elapsed_s=time.monotonic() - began,
                )
                if wait_s is None:
                    raise
                _log.warning("%s; try again in %.1f s", error, wait_s)
            await self._sleep(wait_s)

    async def _authorized(
        self, call: Call[object], prepared: _Prepared, credential: Credential | None
    ) -> Response:
        """Send with the credential; after a 401 with a renewed one, once."""
        if credential is None:
            return await self._followed(call, prepared, {}, None)
        secret = await credential.headers(call)
        try:
            return await self._followed(call, prepared, secret, credential)
        except Unauthorized:
            if not credential.forget():
                raise
        secret = await credential.headers(call)
        return await self._followed(call, prepared, secret, credential)

    async def _followed(
        self,
        call: Call[object],
        prepared: _Prepared,
        secret: Mapping[str, str],
        credential: Credential | None,
    ) -> Response:
        """Send; follow redirects as far as the call allows, the secret only within its origin."""
        url = prepared.url
        headers: Mapping[str, str] = {**prepared.headers, **secret}
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._exchanged(call, prepared, url, headers)
            location = response.headers.get("location", "")
            follows = call.follows and prepared.method == "GET"
            if not (follows and location and response.status in REDIRECTS):
                return self._accepted(call, response, credential)
            url = next_url(url, location)
            if not same_origin(prepared.url, url):
                # Once away it stays away: a hop back home may be the other host's doing.
                headers = prepared.headers
        raise BadAnswer(f"{call.title}: more than {MAX_REDIRECTS} redirects")

    async def _exchanged(
        self, call: Call[object], prepared: _Prepared, url: str, headers: Mapping[str, str]
    ) -> Response:
        began, status = time.monotonic(), 0
        try:
            async with self._while_waiting(urlsplit(url).netloc):
                response = await self.transport.exchange(
                    prepared.method,
                    url,
                    headers=headers,
                    content=prepared.content,
                    max_bytes=call.max_bytes,
                )
            status = response.status
        finally:
            # A query may hold what is signed, or names somebody.
            what = f"{prepared.method} {urlsplit(url).path}"
            answered = 200 <= status < 400 or status in call.accepts
            self._on_exchange(what, status, time.monotonic() - began, answered)
        return response

    def _accepted(
        self, call: Call[object], response: Response, credential: Credential | None
    ) -> Response:
        if 200 <= response.status < 300 or response.status in call.accepts:
            return response

        def advise(status: int, code: int | None) -> str:
            own = call.advice(status, code)
            return self.keyring.advice(credential, status, own) if credential else own

        raise refusal(call.title, response, now=self._now(), advise=advise)

    def _credential(self, call: Call[object], scheme: Scheme | None) -> Credential | None:
        has_path = call.in_project and self._path_in_project(call.request().path)
        also = (Scheme.ORGANIZATION_TOKEN,) if has_path else ()
        return self.keyring.choose(call, scheme, also)

    def _path_in_project(self, path: str) -> str:
        """Return the path that the profile names for this one in a project, "" for none."""
        for old in sorted(self._project_paths, key=len, reverse=True):
            if path == old or path.startswith(f"{old}/"):
                return self._project_paths[old] + path.removeprefix(old)
        return ""

    def _prepare(self, call: Call[object], credential: Credential | None) -> _Prepared:
        request = call.request()
        path = request.path
        if call.in_project and credential and credential.scheme is Scheme.ORGANIZATION_TOKEN:
            path = self._path_in_project(path)
        url = self.base_url(call.host) + path
        if request.query:
            url += "?" + urlencode(request.query, quote_via=quote)
        headers = {"accept": "application/json"}
        content = request.content
        if request.json is not msgspec.UNSET:
            content = msgspec.json.encode(request.json)
            headers["content-type"] = "application/json"
        headers.update({name.lower(): value for name, value in request.headers.items()})
        return _Prepared(request.method, url, headers, content)
