"""What devices push with the project key: events, chunks, core dumps; and the state of a push."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import uuid
import zlib
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse

from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import parse_datetime
from agent.standin.device_chunks import Reassembler
from agent.standin.observability.access import Access
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.ingest import event_schema
from agent.standin.observability.ingest.coredumps import BadCoredump
from agent.standin.observability.ingest.intake import take_coredump, take_event
from agent.standin.observability.ingest.messages import take_message
from agent.standin.observability.ingest.multipart import BadMultipart, boundary_of, split_parts
from agent.standin.observability.project import SLUG
from agent.standin.observability.rate_limits import limits
from agent.standin.observability.refusals import ObservabilityRefused, invalid, not_found
from agent.standin.observability.shapes import shape
from agent.standin.principal import Kind

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from agent.standin.core.schema import Schema
    from agent.standin.device_chunks import Received
    from agent.standin.observability.project import Project
    from agent.standin.state import Cloud


class WaitingChunks:
    """The one reassembler of a cloud, and what it would have to be told again."""

    def __init__(self, cloud: Cloud) -> None:
        self._reassembler = Reassembler()
        self._table = cloud.table("observability/waiting-chunks")
        self._rows: dict[str, list[str]] = {}
        self._last = 0
        for row, chunk in self._table.items():
            sender, _, number = row.rpartition("/")
            self._last = int(number)
            self._rows.setdefault(sender, []).append(row)
            self._reassembler.receive(sender, chunk["raw"], chunk["at"])

    def receive(self, project: Project, serial: str, raw: bytes) -> Received:
        """Take the next chunk of a device."""
        sender = f"{project.organization}/{project.slug}/{serial}"
        received = self._reassembler.receive(sender, raw, project.now)
        for other in received.over:
            for row in self._rows.pop(other, ()):
                self._table.delete(row)
        if received.waits:
            self._last += 1
            row = f"{sender}/{self._last}"
            self._rows.setdefault(sender, []).append(row)
            self._table.put(row, {"at": project.now, "raw": raw})
        return received


def waiting_chunks(cloud: Cloud) -> WaitingChunks:
    """Return the one of a cloud, made with its first chunk."""
    found: WaitingChunks | None = cloud.transient.get("observability chunks")
    if found is None:
        found = cloud.transient["observability chunks"] = WaitingChunks(cloud)
    return found


MAX_EVENTS_BODY = 1024 * 1024
MAX_CHUNK = 1024 * 1024
MAX_CHUNKS_BODY = 8 * 1024 * 1024
MAX_COREDUMP = 16 * 1024 * 1024
MAX_TASKS = 10_000
"""Pushes whose state is remembered; a stand-in may run for months."""
OCTETS = "application/octet-stream"

_BYTES: Schema = {"type": "string", "format": "binary", "minLength": 1}
_PARTS: Schema = {
    "type": "string",
    "format": "chunks",
    "description": "Parts in their order; each is a chunk, whatever its head says.",
}
_STATES = ("PENDING", "SUCCESS", "FAILURE")


def served() -> list[Served]:
    """Return the operations that devices push to, and that of the queue."""
    events = Operation(
        method="POST",
        path="/api/v0/events",
        name="PushEvents",
        summary="Push events: a list of them, or one alone",
        description="Accepts the project key.",
        tag="push",
        security=("ProjectKey",),
        bodies={JSON_TYPE: event_schema.EVENTS},
        answers={202: {JSON_TYPE: {"type": "object"}}},
        refusals=(400, 403, 413, 415, 429),
    )
    chunks = Operation(
        method="POST",
        path="/api/v0/chunks/{device_serial}",
        name="PushChunks",
        summary="Push one chunk of a device, or several in their order",
        description="Accepts the project key. What is wrong inside the chunks is not an error of"
        " this request: it goes to the processing log.",
        tag="push",
        security=("ProjectKey",),
        parameters=(Parameter(name="device_serial", schema=SLUG, where="path", required=True),),
        bodies={OCTETS: _BYTES, "multipart/mixed": _PARTS},
        answers={202: {"text/plain": {"type": "string"}}},
        refusals=(400, 403, 411, 413, 415, 429),
    )
    queue = Operation(
        method="GET",
        path="/api/v0/queue/{task_id}",
        name="GetTask",
        summary="What became of a push",
        description="Accepts the project key, too.",
        tag="push",
        security=("Basic", "ProjectKey"),
        parameters=(
            Parameter(
                name="task_id",
                schema={"type": "string", "maxLength": 64},
                where="path",
                required=True,
            ),
        ),
        answers={
            200: {JSON_TYPE: shape(status={"type": "string", "enum": list(_STATES)})},
        },
        refusals=(400, 401, 403, 404),
    )
    device_hosts = (Host.INGRESS, Host.API)
    return [
        Served(operation=events, handler=_push_events, access=Access.PROJECT_KEY,
               hosts=device_hosts, max_body=MAX_EVENTS_BODY),
        Served(operation=chunks, handler=_push_chunks, access=Access.PROJECT_KEY,
               hosts=(Host.CHUNKS,), max_body=MAX_CHUNKS_BODY),
        Served(operation=queue, handler=_task, access=Access.USER_OR_PROJECT_KEY,
               hosts=(Host.API, Host.INGRESS)),
    ]  # fmt: skip


def accepted(exchange: Exchange, status: str = "SUCCESS") -> JSON:
    """Answer 202 with the place where the state of the push is told."""
    cloud = exchange.cloud
    number = str(uuid.uuid4())
    project = exchange.project
    tasks = cloud.table("observability/tasks")
    if len(tasks) >= MAX_TASKS:
        tasks.delete(next(iter(tasks)))
    tasks.put(
        number,
        {"status": status, "project": f"{project.organization}/{project.slug}"},
    )
    base = cloud.urls.get("api") or str(exchange.request.base_url).rstrip("/")
    return JSON({}, 202, headers={"Location": f"{base}/api/v0/queue/{number}"})


async def take_direct_coredump(exchange: Exchange) -> Response:
    """Store a core dump that is the body itself, or the first file of a form."""
    request, project = exchange.request, exchange.project
    data = decoded(await request.body(), request.headers.get("content-encoding"), MAX_COREDUMP)
    content_type = request.headers.get("content-type", "")
    media = media_type(request)
    if media == "multipart/form-data":
        try:
            parts = split_parts(data, boundary_of(content_type))
        except BadMultipart as error:
            raise invalid(str(error)) from error
        files = [part for part in parts if part.is_file]
        if not files:
            raise invalid("no part of the form is a file")
        data = files[0].content
    elif media != OCTETS:
        raise ObservabilityRefused(415, f"a core dump does not come as {media or 'nothing'}")
    serial = request.query_params.get("device_serial")
    return store_coredump(exchange, project, data, serial)


def store_coredump(
    exchange: Exchange, project: Project, data: bytes, serial: str | None
) -> Response:
    """Store a core dump of the SDK and answer as for any push."""
    if not data:
        raise invalid("the core dump is empty")
    try:
        trace = take_coredump(project, data, serial)
    except BadCoredump as error:
        # Taken, as the service does, which looks at it later.
        project.log("error", f"core dump: {error}", serial)
        return accepted(exchange, "FAILURE")
    limits(exchange.cloud).count(project, "coredumps", trace["device"])
    return accepted(exchange)


def media_type(request: Request) -> str:
    """Return the media type of a request in lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def decoded(data: bytes, encoding: str | None, limit: int) -> bytes:
    """Undo a content encoding, to `limit` bytes at most. Raises 400, 413 or 415."""
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return data
    if name == "base64":
        try:
            return base64.b64decode(bytes(data).translate(None, b"\r\n \t"), validate=True)
        except (binascii.Error, ValueError) as error:
            raise invalid("the body is not base64") from error
    if name != "gzip":
        raise ObservabilityRefused(415, f"the content encoding {name[:40]!r} is not known")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise invalid("the body is not gzip") from error
    if len(found) > limit:
        raise ObservabilityRefused(413, f"it expands to more than {limit} bytes")
    return found


async def _push_events(exchange: Exchange) -> Response:
    body: Any = exchange.body
    events = body if isinstance(body, list) else [body]
    for serial in dict.fromkeys(event["device_serial"] for event in events):
        limits(exchange.cloud).count(exchange.project, "events", serial)
    for event in events:
        captured = event.get("captured_date")
        take_event(exchange.project, event, parse_datetime(captured) if captured else None)
    return accepted(exchange)


async def _push_chunks(exchange: Exchange) -> Response:
    request, project = exchange.request, exchange.project
    if "content-length" not in request.headers:
        raise ObservabilityRefused(411, "Content-Length is needed")
    data = await request.body()
    encoding = request.headers.get("content-encoding")
    media = media_type(request)
    if media == "multipart/mixed":
        try:
            parts = split_parts(data, boundary_of(request.headers["content-type"]))
        except BadMultipart as error:
            raise invalid(str(error)) from error
        chunks = [decoded(part.content, encoding, MAX_CHUNK) for part in parts]
    elif media == OCTETS:
        chunks = [decoded(data, encoding, MAX_CHUNK)]
    else:
        raise ObservabilityRefused(415, f"chunks do not come as {media or 'nothing'}")
    if not chunks or not all(chunks):
        raise invalid("a chunk is empty")
    if any(len(chunk) > MAX_CHUNK for chunk in chunks):
        raise ObservabilityRefused(413, f"a chunk is {MAX_CHUNK} bytes at most")
    serial = exchange.path["device_serial"]
    limits(exchange.cloud).count(project, "chunks", serial)
    waiting = waiting_chunks(exchange.cloud)
    for chunk in chunks:
        received = waiting.receive(project, serial, chunk)
        for problem in received.problems:
            project.log("error", f"chunk: {problem}", serial)
        if received.message is not None:
            take_message(project, serial, received.message)
    return PlainTextResponse("Accepted", status_code=202)


async def _task(exchange: Exchange) -> Response:
    found = exchange.cloud.table("observability/tasks").get(exchange.path["task_id"])
    if exchange.who.kind is Kind.PROJECT_KEY and found is not None:
        project = exchange.project
        if found["project"] != f"{project.organization}/{project.slug}":
            found = None
    if found is None:
        raise not_found("task")
    return JSON({"status": found["status"]})
