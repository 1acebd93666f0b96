"""Who may see the page: the host that is named, the origin, a link that works once, a cookie.

A link's token is exchanged for a cookie, and is worth nothing from then on. The cookie is signed
with a key in the state folder, so that a page stays open while the agent is started again. Acts
need a second token: a link has it behind its #, which no browser sends, and the script keeps it.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Collection
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.files.private_files import read_private, write_private

LINK_S = 60.0
"""Seconds for which a link works."""
COOKIE_S = 30 * 86400
"""Seconds for which a browser that has opened a link may come back."""
_SEES, _ACTS = "sees ", "acts "
"""What a signature is for."""
ACT_HEADER = "x-cellagent-act"
"""The header with the second token."""
_MOST_LINKS = 8
_KEY_BYTES = 32
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Links:
    """The tokens of links that were made, and the cookies that they were exchanged for."""

    def __init__(
        self,
        key: bytes,
        *,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self._key = key
        self._clock = clock
        self._calendar = calendar
        self._open: dict[str, float] = {}

    def new(self) -> str:
        """Return the token of a new link; of too many the oldest works no more."""
        while len(self._open) >= _MOST_LINKS:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(32)
        self._open[token] = self._clock() + LINK_S
        return token

    def exchange(self, token: str) -> str | None:
        """Return a cookie for a token, once and in time; else None."""
        given = token.encode(errors="replace")
        known = [each for each in self._open if hmac.compare_digest(each.encode(), given)]
        if not known or self._open.pop(known[0]) < self._clock():
            return None
        return self._sealed(_SEES)

    def act_token(self) -> str:
        """Return a token that allows acts to who has a cookie as well."""
        return self._sealed(_ACTS)

    def knows(self, cookie: str) -> bool:
        """Return whether a cookie is one of ours, and not too old."""
        return self._is_ours(_SEES, cookie)

    def may_act(self, token: str) -> bool:
        """Return whether a token allows acts: it is one of ours, and not too old."""
        return self._is_ours(_ACTS, token)

    def _sealed(self, purpose: str) -> str:
        until = f"{self._calendar() + COOKIE_S:.0f}"
        return f"{until}.{self._sign(purpose + until)}"

    def _is_ours(self, purpose: str, sealed: str) -> bool:
        until, _, signature = sealed.partition(".")
        expected = self._sign(purpose + until).encode()
        if not hmac.compare_digest(signature.encode(errors="replace"), expected):
            return False
        return float(until) > self._calendar()

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).hexdigest()


def signing_key(path: Path) -> bytes:
    """Return the key that signs cookies; make it where there is none.

    Raises ConfigError where others may read it, OSError.
    """
    if not path.exists():
        write_private(path, secrets.token_hex(_KEY_BYTES).encode())
    return read_private(path, "the key of the page's cookies").encode()


class Guard:
    """An ASGI layer that passes on what may see the page, and sets what an answer forbids.

    `hosts` are the values of Host that name this server, `scheme` is http or https; `refused`
    makes the page for who has no cookie.
    """

    def __init__(
        self,
        app: ASGIApp,
        links: Links,
        hosts: Collection[str],
        scheme: str,
        refused: Callable[[], Response],
    ) -> None:
        self._app = app
        self._links = links
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"{scheme}://{host}" for host in self._hosts)
        self._refused = refused
        self._is_secure = scheme == "https"
        # Cookies do not know ports: each page of this host has one of its own.
        self._cookie = f"cellagent-{urlsplit(next(iter(self._origins))).port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer that this layer gives itself; None where the page is to answer."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get(b"host", "").lower() not in self._hosts:
            return Response("the Host header names another server\n", 421)
        if headers.get(b"origin", next(iter(self._origins))).lower() not in self._origins:
            return Response("the Origin is another site\n", 403)
        if scope["path"] == "/" and scope["method"] == "GET" and scope["query_string"]:
            return self._exchanged(scope["query_string"].decode("latin-1"))
        if scope["path"].startswith("/static/"):
            return None
        if not self._is_known(headers.get(b"cookie", "")):
            return self._refused()
        if scope["method"] in {"GET", "HEAD"}:
            return None
        if b"origin" in headers and self._links.may_act(headers.get(ACT_HEADER.encode(), "")):
            return None
        return Response("this browser may look, and do nothing: it has not opened the link\n", 403)

    def _exchanged(self, query: str) -> Response:
        cookie = self._links.exchange(parse_qs(query).get("token", [""])[0])
        if cookie is None:
            return self._refused()
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._cookie,
            cookie,
            max_age=COOKIE_S,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )
        return answer

    def _is_known(self, header: str) -> bool:
        try:
            cookie = SimpleCookie(header).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and self._links.knows(cookie.value)
