"""One call to a service as data: its request and how its answer is read. No I/O.

Each operation of a service is a `Call`; the client (`agent.http`)
chooses the credential, sends, retries and turns refusals into errors, in one place for all.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from agent.errors import BadAnswer, EmptyAnswer
from agent.json_value import JSONValue
from at.protocol.counts import counted

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")


class Host(Enum):
    """The hosts of the two services (clauses D1.1, O1.4); each is a URL in the profile."""

    DEVICE_CLOUD = "device_cloud"
    API = "api"
    CHUNKS = "chunks"
    INGRESS = "ingress"
    FILES = "files"
    PROVISIONING = "provisioning"


class Scheme(Enum):
    """The kinds of credential that an operation may take (clauses D1.5, D10, O4)."""

    API_KEY = "API key"
    DEVICE_JWT = "device JWT"
    SERVICE_JWT = "service-key JWT"
    EVALUATION_TOKEN = "evaluation token"
    SERVICE_TOKEN = "service token"
    ORGANIZATION_TOKEN = "organization auth token"
    BASIC = "email with password or user API key"
    PROJECT_KEY = "project key"
    MODEM_PROJECT_KEY = "modem project key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without its credential. `path` is quoted and starts with "/"."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    json: object = msgspec.UNSET
    content: bytes | None = None


LOGIN_PAGE = (
    "this network may want a log-in on a page of its own first, or another server is at that "
    "address: `cellagent config show hosts`"
)
"""What helps where a page, or a redirect to one, comes in the service's place."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response: a 2xx, or a status that the call itself listed in `accepts`."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes

    def json(self) -> JSONValue:
        """Return the body as plain JSON. Raises BadAnswer, which describes the body."""
        value: JSONValue = self._decoded(JSONValue)
        return value

    def decode(self, kind: type[V]) -> V:
        """Return the body as a `kind` (a msgspec type), whose numbers may have come as texts.

        Raises BadAnswer.
        """
        value: V = self._decoded(kind)
        return value

    def _decoded(self, kind: object) -> Any:
        if not self.content:
            raise EmptyAnswer("expected JSON, got an empty body", status=self.status)
        try:
            return msgspec.json.decode(self.content, type=kind, strict=False)
        except msgspec.ValidationError as error:
            raise BadAnswer(f"the answer has another shape: {error}", status=self.status) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise BadAnswer(
                f"expected JSON, got {self._describe_body()}",
                hint=LOGIN_PAGE if self._is_page() else "",
                status=self.status,
            ) from error

    def check_accepted(self, expected: str = "that it is taken") -> None:
        """Check that the service answered, in no form that can be checked here.

        Raises BadAnswer for HTML: a captive portal answers everything with a page. `expected` is
        said in its message.
        """
        if self._is_page():
            raise BadAnswer(
                f"expected {expected}, got {self._describe_body()}",
                hint=LOGIN_PAGE,
                status=self.status,
            )

    def _is_page(self) -> bool:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        page = self.content.lstrip()
        return bool(page) and (kind == "text/html" or page[:1] == b"<")

    def _describe_body(self) -> str:
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        return f"{counted(len(self.content), 'bytes')} of {kind or 'no declared type'}"


_LENGTH = re.compile(r"[0-9]{1,19}")
# RFC 9110, 14.1: the unit is told whatever its case.
_RANGE = re.compile(r"(?i:bytes) ([0-9]{1,19})-([0-9]{1,19})/(?:([0-9]{1,19})|\*)")


def content_length(headers: Mapping[str, str]) -> int | None:
    """Return the bytes that a body is said to have, None where no number is said."""
    text = headers.get("content-length", "").strip()
    return int(text) if _LENGTH.fullmatch(text) else None


def content_range(headers: Mapping[str, str]) -> tuple[int, int, int | None] | None:
    """Return the first and the last byte of a part, and the size of the whole, None for "*".

    None where the headers have no legal range.
    """
    match = _RANGE.fullmatch(headers.get("content-range", "").strip())
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3]) if match[3] else None


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One operation. A subclass holds its parameters as fields.

    `schemes` are the credentials that it takes, the preferred first; `accepts` the statuses,
    beside 2xx, that are an answer and not an error; `repeatable` whether it may be sent again
    when nobody knows whether the first try arrived. `service` names the service whose key signs
    a SERVICE_JWT ("location", "fota"); `in_project` that it takes an ORGANIZATION_TOKEN as well,
    where the profile names its path in a project; `max_bytes` bounds the answer's body; `follows`
    allows redirects of a GET (without the credential once the origin changes).
    """

    accepts: ClassVar[frozenset[int]] = frozenset()
    repeatable: ClassVar[bool] = True
    service: ClassVar[str] = ""
    in_project: ClassVar[bool] = False
    max_bytes: ClassVar[int] = 8 * 1024 * 1024
    follows: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """What it does, in words for a message: "list devices"."""
        return "".join(
            f" {letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__
        ).strip()

    @property
    def host(self) -> Host:
        """The host that it is sent to; most calls hide this behind a class variable."""
        return Host.DEVICE_CLOUD

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """The credentials that it takes; most calls hide this behind a class variable."""
        return ()

    def request(self) -> Request:
        """Return what to send."""
        raise NotImplementedError

    def parse(self, response: Response) -> T_co:
        """Return the answer as a value. Raises BadAnswer when the body is not what it must be."""
        raise NotImplementedError

    def serves(self) -> str:
        """Return the id of the one device in whose place the request is made, "" where none.

        A service-key JWT names it as its subject (clause D10.4).
        """
        return ""

    @property
    def in_kit_name(self) -> bool:
        """Whether it is made in a kit's name: for its device, or with what it heard (D1.3).

        The client sends such a call only where the firmware gate lets the kit pass, whatever the
        credential; with a token of the kit's own any call is one.
        """
        return bool(self.serves())

    @property
    def warning(self) -> str:
        """A warning to log before it is sent, "" where there is none."""
        return ""

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - for subclasses
        """Return what to try after this refusal, "" where the client's own advice will do."""
        return ""


@dataclass(frozen=True, slots=True)
class StatusCall(Call[None]):
    """Base of the calls of which the status alone counts, if it is the service's.

    202 means that it is queued, not that it can be read.
    """

    def parse(self, response: Response) -> None:
        """Check that the service accepted it. Raises BadAnswer."""
        response.check_accepted()
