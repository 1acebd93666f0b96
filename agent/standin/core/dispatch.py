"""Dispatch from a path to its route in constant time, whatever the number of routes.

Starlette's router tries one route after the other; the stand-in has more than a hundred.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from agent.standin.core.bodies import Body, BodyGivenUp, BodyRefused, BodyTooLarge
from agent.standin.core.responses import MakeRefused, Refused
from agent.standin.state import Cloud
from agent.standin.store import NotWritten

_log = logging.getLogger(__name__)

_QUOTED_SLASH = "\ue000"
"""Stands for %2F while a path is matched: an id may hold one, which separates no segments."""
_DEPTH = 4
"""The most segments that a literal beginning has."""

DEFAULT_MAX_BODY = 4 * 1024 * 1024
_DRAINED_BYTES = 32 * 1024 * 1024
"""What is read of a request that was answered before its end."""
_DRAIN_S = 5.0


class Endpoint(Route):
    """A Starlette route with the largest body that it takes, in bytes."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        self.max_body: int = settings.pop("max_body", DEFAULT_MAX_BODY)
        super().__init__(path, endpoint, **settings)


class Dispatcher:
    """An ASGI application over routes, which are looked up by the literal beginning of a path.

    `refuse` makes an error that no route raises: unknown path, wrong method, body too large.
    """

    def __init__(self, routes: Sequence[Endpoint], cloud: Cloud, refuse: MakeRefused) -> None:
        self._by_beginning: dict[tuple[str, ...], list[Endpoint]] = {}
        self._cloud = cloud
        self._refuse = refuse
        # A path with fewer variables takes precedence (OpenAPI, "Paths").
        for route in sorted(routes, key=lambda route: route.path.count("{")):
            segments = route.path.split("/")[1:]
            literal = tuple(takewhile(lambda segment: "{" not in segment, segments))
            self._by_beginning.setdefault(literal[:_DEPTH], []).append(route)
        self._first_segments = {key[0] for key in self._by_beginning if key}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = False

        async def commit_and_send(message: Message) -> None:
            nonlocal started
            if not started:
                # What an answer says is stored before the answer is sent.
                self._cloud.store.commit()
                started = True
            await send(message)

        try:
            for prepare in self._cloud.before_request:
                prepare()
            route = self._match(scope)
            if int(dict(scope["headers"]).get(b"content-length", 0)) > route.max_body:
                raise BodyTooLarge(route.max_body)
            body = Body(receive, route.max_body)
            try:
                await route.handle(scope, body, commit_and_send)
            finally:
                body.release()
            return
        except ClientDisconnect:
            return
        except Exception as error:
            if started:
                raise
            answer = self._refused(scope, error).response()
            lingers = isinstance(error, BodyRefused)
        # The error is let go of before: its traceback holds what came of the body.
        with contextlib.suppress(NotWritten):  # a full disk does not hide why it was refused
            self._cloud.store.commit()
        if lingers:
            await _answer_and_linger(answer, receive, send)
        else:
            await answer(scope, receive, send)

    def _match(self, scope: Scope) -> Endpoint:
        """Return the route of a request, whose scope gets the route's part. Raises 404, 405."""
        has_quoted_slash = _keep_quoted_slashes(scope)
        path: str = scope["path"]
        allowed: set[str] = set()
        template = ""
        for route in self._candidates(path):
            # The first template that fits is the one of the path, whatever its methods.
            if template and route.path != template:
                continue
            match, child = route.matches(scope)
            if match is Match.FULL:
                if has_quoted_slash:
                    found = child["path_params"].items()
                    child["path_params"] = {k: v.replace(_QUOTED_SLASH, "/") for k, v in found}
                scope.update(child)
                return route
            if match is Match.PARTIAL:
                template = route.path
                allowed |= route.methods or set()
        if allowed:
            refused = self._refuse(path, 405, f"{scope['method']} is not offered here")
            refused.headers["Allow"] = ", ".join(sorted(allowed))
            raise refused
        raise self._refuse(path, 404, "no such path")

    def _candidates(self, path: str) -> Iterator[Endpoint]:
        """Yield the routes that may match, those with the longest literal beginning first."""
        segments = tuple(path.split("/", _DEPTH + 1)[1 : _DEPTH + 1])
        # The downloads host serves any path but those below what another host owns.
        shortest = 1 if segments[0] in self._first_segments else 0
        for length in range(len(segments), shortest - 1, -1):
            yield from self._by_beginning.get(segments[:length], ())

    def _refused(self, scope: Scope, error: Exception) -> Refused:
        """Return the refusal that answers what a request raised; a defect becomes 500."""
        path = scope["path"]
        if isinstance(error, BodyRefused):
            refused = self._refuse(path, error.status, str(error))
            # The rest of the body is read up to a bound only.
            refused.headers["Connection"] = "close"
            if isinstance(error, BodyGivenUp):
                refused.headers["Retry-After"] = "2"
            return refused
        if isinstance(error, Refused):
            return error
        if isinstance(error, HTTPException):
            return self._refuse(path, error.status_code, str(error.detail))
        if isinstance(error, NotWritten):
            text = f"the state file cannot be written: {error.strerror}"
            return self._refuse(path, 507, text)
        _log.error("defect while answering %s %s", scope["method"], path, exc_info=error)
        return self._refuse(path, 500, "internal error")


async def _answer_and_linger(answer: Response, receive: Receive, send: Send) -> None:
    """Answer, and read on before the connection is closed: a reset would hide the answer."""
    start = {"type": "http.response.start", "status": answer.status_code}
    await send({**start, "headers": answer.raw_headers})
    await send({"type": "http.response.body", "body": bytes(answer.body), "more_body": True})
    await drain(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def drain(receive: Receive) -> None:
    """Read what a client still sends, up to a bound."""
    left = _DRAINED_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _keep_quoted_slashes(scope: Scope) -> bool:
    """Have `path` hold _QUOTED_SLASH where it was quoted; return whether there is any."""
    raw = scope["raw_path"].decode("latin-1")
    kept = re.sub("%2f", _QUOTED_SLASH, raw, flags=re.IGNORECASE)
    if kept == raw:
        return False
    scope["path"] = unquote(kept)
    return True
