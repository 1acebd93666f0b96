"""Turns an HTTP refusal into the exception that says why and what to try. Pure."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from html import unescape
from http import HTTPStatus
from itertools import islice

import msgspec

from agent import errors
from agent.auth.token_lifetime import NOTABLE_SKEW_S
from agent.call import LOGIN_PAGE, Response
from agent.json_value import JSONValue
from agent.redact import redact
from agent.retry import RETRIED_STATUSES, http_date, retry_after

Advise = Callable[[int, int | None], str]


MAX_TEXT = 300
"""Characters of the service's own words that a message quotes."""
_WORDS = ("message", "Message", "detail", "error")
"""Of these fields the first that is there says why; a gateway before a service writes `Message`."""
_MOST_TEXTS, _DEEPEST = 20, 12
"""Of an answer that lists what is wrong with it."""

_REFUSALS: dict[int, type[errors.AgentError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.NotFound,
    412: errors.PreconditionFailed,
    413: errors.PayloadTooLarge,
}
_SILENT_REFUSAL = (
    "a service says why it refuses: where nothing is said, a proxy or another server may answer in "
    "its place: `cellagent config show hosts`"
)
_SILENT_TROUBLE = "the service is in trouble, or a proxy before it: try again later"
_STORAGE_ERROR = re.compile(r"<(Code|Message)>([^<]+)")
"""In the XML of an object store: <Error><Code>EntityTooLarge</Code><Message>..."""
_QUERY = re.compile(r"\?[^\s?=]+=\S*")
_TITLE = re.compile(r"<(title|h1)[^>]*>(.{1,500}?)</\1", re.IGNORECASE | re.DOTALL)


def refusal(what: str, response: Response, *, now: datetime, advise: Advise) -> errors.AgentError:
    """Return the error for an answer that is no success.

    `what` names the call; `now` is this machine's clock (aware), against which the service's is
    compared when it refuses a credential; `advise` gives what to try, from status and code.
    """
    status = response.status
    code, text = service_message(response)
    advice = advise(status, code)
    if status < 400 or status == 511:  # RFC 6585, 6: Network Authentication Required
        advice = advice or LOGIN_PAGE
    message = f"{what}: the service answered {status} {_phrase(status)}"
    is_for_later = status in RETRIED_STATUSES or status >= 500
    wait_s = retry_after(response.headers, now)
    if text:
        message += f": {text}"
    elif not advice and wait_s is None:
        advice = _SILENT_TROUBLE if is_for_later else _SILENT_REFUSAL
    if is_for_later:
        later = {408: errors.DeadlineExceeded, 429: errors.RateLimited}.get(
            status, errors.ServerTrouble
        )
        return later(message, hint=advice, status=status, code=code, retry_after_s=wait_s)
    if status < 400:
        # The query may be what a URL was signed with.
        location = _shorten(response.headers.get("location", "").partition("?")[0])
        redirect = f"{what}: the service redirects to {location!r}, which is not followed"
        return errors.BadAnswer(
            redirect if location else message, hint=advice, status=status, code=code
        )
    if status == 401:
        advice = "; ".join(filter(None, (skew_hint(response, now), advice)))
    return _REFUSALS.get(status, errors.InvalidRequest)(
        message, hint=advice, status=status, code=code
    )


def skew_hint(response: Response, now: datetime) -> str:
    """Return a sentence about the clocks if this machine's and the service's differ, else ""."""
    theirs = http_date(response.headers.get("date", ""))
    if theirs is None:
        return ""
    ahead = (now - theirs).total_seconds()
    if abs(ahead) < NOTABLE_SKEW_S:
        return ""
    return (
        f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
        "the service's: set it right first"
    )


def service_message(response: Response) -> tuple[int | None, str]:
    """Return the service's own error number and message, in whatever form they came.

    Forms met: {code, message}; {message, cause}; {message, errors}; {Message}; {error, message};
    {error: {code, message, type}}, each with a text or nested lists of texts; an array of strings;
    a bare string; HTML; the XML of an object store; nothing. The text has no control characters.
    """
    try:
        body = msgspec.json.decode(response.content) if response.content else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None, _shorten(_plain(response.content[: 64 * 1024]))
    code: int | None = None
    if isinstance(body, dict):
        inner = body.get("error")
        told = inner if isinstance(inner, dict) else body
        number = told.get("code")
        code = number if isinstance(number, int) and not isinstance(number, bool) else None
        said = next((told[name] for name in _WORDS if told.get(name)), None)
        body = [said, told.get("errors"), told.get("cause")]
    return code, _shorten("; ".join(islice(_texts(body), _MOST_TEXTS)))


def _texts(value: JSONValue, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the texts in nested objects and arrays, each with the path that leads to it."""
    if value is None or depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, path, depth + 1)
    else:
        yield f"{path}: {value}" if path else str(value)


def _plain(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    if found := dict(_STORAGE_ERROR.findall(text)):
        return unescape(": ".join(found.values()))
    title = _TITLE.search(text)
    if title:
        return unescape(re.sub(r"<[^>]*>", " ", title.group(2)))
    return "" if "<" in text[:200] else text


def _shorten(text: str) -> str:
    # A service that quotes the credential must not bring it into what is kept, as the outbox does.
    # Nor must what a URL was signed with, which is in its query.
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    text = redact(_QUERY.sub("?…", " ".join(text.split())))
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(no standard status)"
