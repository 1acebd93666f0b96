"""The control protocol: what commands and the running agent say to each other, a line of JSON each.

A command sends a request, and the agent answers with the request's answer or an `ErrorAnswer`. A
hold, a lease and a window on a console last until the connection is closed. On a lease the bytes of
the modem follow; on a window notices, and the lines that are typed in it the other way.

A request must be understood whole: what an older agent would leave out may be what mattered. In an
answer a field that this side does not know is left out; what it needs must be there.
"""

import contextlib
import json
import math
from collections.abc import Iterator
from typing import Annotated, Generic, Literal, NoReturn, TypeVar, get_args

import msgspec

from agent.console.line_classifier import ConsoleCounts, ConsoleItem, decode_item
from agent.daemon.recent import Moment
from agent.daemon.snapshot import AgentStatus

T = TypeVar("T")


# --- requests


class Request(msgspec.Struct, tag_field="do", forbid_unknown_fields=True):
    """What a command asks for."""


class StatusRequest(Request, tag="status"):
    """The status, once: StatusAnswer."""


class WatchRequest(Request, tag="watch", omit_defaults=True):
    """The status now and at each change: StatusAnswers.

    With `changed_only` each answer after the first has only the kits that have changed.
    """

    changed_only: bool = False


class ReloadRequest(Request, tag="reload"):
    """Read the profile again: Answer."""


class OutboxRequest(Request, tag="outbox", omit_defaults=True):
    """List, drop or flush, for a command that cannot open the outbox itself: OutboxAnswer."""

    what: Literal["list", "drop", "flush"]
    limit: int | None = None
    ids: list[int] | None = None
    parked: bool | None = None
    everything: bool | None = None


class HoldRequest(Request, tag="hold"):
    """Let go of a kit, named or of a port ("" for the only one), for a program: HoldAnswer."""

    kit: str = ""
    who: str = "another program"


class LeaseRequest(Request, tag="lease"):
    """Pass on the bytes of a kit's modem: LeaseAnswer."""

    kit: str = ""
    who: str = "another program"


class ConsoleRequest(Request, tag="console"):
    """Open a window on a kit's console: ConsoleAnswer, then notices."""

    kit: str = ""


class RecentRequest(Request, tag="recent"):
    """What happened to a kit lately, and what comes: MomentsAnswers."""

    kit: str = ""


class PageRequest(Request, tag="page"):
    """A link to the page that the agent serves: PageAnswer."""


AnyRequest = (
    StatusRequest
    | WatchRequest
    | ReloadRequest
    | OutboxRequest
    | HoldRequest
    | LeaseRequest
    | ConsoleRequest
    | RecentRequest
    | PageRequest
)
REQUESTS = frozenset(kind.__struct_config__.tag for kind in get_args(AnyRequest))
"""What can be asked for."""


# --- answers


class Answer(msgspec.Struct):
    """It was done."""

    ok: Literal[True]


class StatusAnswer(Answer, kw_only=True, omit_defaults=True):
    """The status; with `names` those of all kits, in their order, where some are left out."""

    status: AgentStatus
    names: list[str] | None = None


class OutboxAnswer(Answer, Generic[T], kw_only=True):
    """What `agent.outbox.queries` found or did."""

    outbox: T


class HoldAnswer(Answer, kw_only=True):
    """The ports of the kit are free."""

    kit: str
    port: str


class LeaseAnswer(Answer, kw_only=True):
    """The modem is the command's."""

    kit: str
    dialect: str
    terminator: str


class ConsoleAnswer(Answer, kw_only=True):
    """The window is open."""

    kit: str
    port: str
    pid: int


class MomentsAnswer(Answer, kw_only=True):
    """Moments, the oldest first; a gap in their numbers is what was not kept."""

    moments: list[Moment]


class PageAnswer(Answer, kw_only=True):
    """A link that works once, for a minute; None where the agent serves no page."""

    link: str | None


class ErrorObject(msgspec.Struct):
    """An error, as commands print it with --json."""

    exit: Annotated[int, msgspec.Meta(ge=1, le=255)] = 1
    kind: str = "failed"
    message: str = ""
    hint: str = msgspec.field(name="try", default="")


class ErrorAnswer(msgspec.Struct):
    """It was refused, or failed."""

    error: ErrorObject


# --- a window on a console


class TypedLine(msgspec.Struct, forbid_unknown_fields=True):
    """From the window: a line to be written to the kit."""

    line: str = msgspec.field(name="type")


class DumpNotice(msgspec.Struct):
    """A core dump began, of which so many bytes were read; 0 when it is over."""

    coming: int


class LostNotice(msgspec.Struct):
    """So many lines were not read in time."""

    lost: int


class CountsNotice(msgspec.Struct):
    """How much was received since the window was opened."""

    counts: ConsoleCounts


class TroubleNotice(msgspec.Struct):
    """Why nothing is received, and what to try; "" when the console is back."""

    trouble: str
    hint: str = msgspec.field(name="try", default="")


class TypedAnswer(msgspec.Struct):
    """The modem's answer to a typed line."""

    answer: list[str]


class RefusedLine(msgspec.Struct):
    """Why a typed line was not written, and what to try."""

    refused: str
    hint: str = msgspec.field(name="try", default="")


Notice = DumpNotice | LostNotice | CountsNotice | TroubleNotice | TypedAnswer | RefusedLine
_NOTICES: dict[str, type[Notice]] = {kind.__struct_fields__[0]: kind for kind in get_args(Notice)}
"""The kinds of notice by the field that tells them apart: each has one of its own."""


# --- lines


def encode(message: msgspec.Struct) -> bytes:
    """Return a message as a line."""
    return line_of(msgspec.to_builtins(message))


def line_of(message: dict[str, object]) -> bytes:
    """Return a message that was made with `msgspec.to_builtins` as a line."""
    # Escaped, as `json` does it: a port may have any bytes in its name.
    return json.dumps(message).encode() + b"\n"


def parse(line: bytes) -> dict[str, object]:
    """Return the object of a line. Raises ValueError."""
    try:
        message = json.loads(line, parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if isinstance(message, dict):
        return message
    raise ValueError("it is no object")


def convert(message: dict[str, object], kind: type[T]) -> T:
    """Return an object that was parsed as a message. Raises ValueError, naming what is wrong."""
    with _valid():
        return msgspec.convert(message, kind)


def request_of(message: dict[str, object]) -> AnyRequest:
    """Return an object that was parsed as a request. Raises ValueError as above."""
    with _valid():
        request: AnyRequest = msgspec.convert(message, AnyRequest)
    return request


def notice_of(message: dict[str, object]) -> Notice | ConsoleItem:
    """Return a message to a window: a notice, or what the kit printed. Raises ValueError."""
    if "is" in message:
        return decode_item(message)
    for key, kind in _NOTICES.items():
        if key in message:
            return convert(message, kind)
    raise ValueError(f"no notice has {', '.join(message) or 'no field'}")


@contextlib.contextmanager
def _valid() -> Iterator[None]:
    try:
        yield
    except (msgspec.ValidationError, OverflowError) as error:
        raise ValueError(str(error)) from None


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is no number")
