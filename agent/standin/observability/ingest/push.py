"""Pushes with the project key (events, chunks, core dumps), and their state."""

import base64
import gzip
import io
import uuid
import zlib
from functools import partial

import msgspec
from starlette.responses import PlainTextResponse, Response

from agent.standin.core.operation import Host, in_path
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema, object_schema, parse_datetime
from agent.standin.observability.access import Access
from agent.standin.observability.ingest.coredumps import BadCoredump
from agent.standin.observability.ingest.event_schema import EVENTS
from agent.standin.observability.ingest.messages import add_message, reassembler_of
from agent.standin.observability.ingest.multipart import (
    BadMultipart,
    Part,
    boundary_of,
    split_parts,
)
from agent.standin.observability.ingest.records import PushedEvent, add_coredump, add_event
from agent.standin.observability.operations import RequestContext, declare
from agent.standin.observability.project import SLUG
from agent.standin.observability.rate_limits import count_request
from agent.standin.observability.refusals import ObservabilityRefused, invalid, not_found
from agent.standin.observability.tables import TASKS, Task
from agent.standin.principal import CredentialKind

MAX_EVENTS_BODY = 1024 * 1024
MAX_CHUNK = 1024 * 1024
MAX_CHUNKS_BODY = 8 * 1024 * 1024
MAX_COREDUMP = 16 * 1024 * 1024
MAX_TASKS = 10_000
"""Pushes whose state is stored; older ones are dropped, because a stand-in may run for months."""
OCTETS = "application/octet-stream"

_BYTES: Schema = {"type": "string", "format": "binary", "minLength": 1}
_PARTS: Schema = {
    "type": "string",
    "format": "chunks",
    "description": "Parts in their order; each is a chunk, whatever its head says.",
}
_TASK: Schema = {"type": "string", "maxLength": 64}
_STATES = ("PENDING", "SUCCESS", "FAILURE")


def accepted_response(context: RequestContext, status: str = "SUCCESS") -> JSON:
    """Return 202 with the location of the state of the push."""
    cloud = context.cloud
    number = str(uuid.uuid4())
    tasks = cloud.table(TASKS)
    if len(tasks) >= MAX_TASKS:
        tasks.delete(next(iter(tasks)))
    tasks.put(number, Task(status=status, project=context.project.path))
    return JSON({}, 202, headers={"Location": f"{cloud.urls['api']}/api/v0/queue/{number}"})


async def push_coredump(context: RequestContext) -> Response:
    """Store a core dump that is the request's body, or the first file of a form."""
    data = decode_content(context.raw, context.headers.get("content-encoding"), MAX_COREDUMP)
    media = context.media_type
    if media == "multipart/form-data":
        files = [part for part in _parts(context, data) if part.is_file]
        if not files:
            raise invalid("no part of the form is a file")
        data = files[0].content
    elif media != OCTETS:
        raise ObservabilityRefused(415, f"a core dump does not come as {media or 'nothing'}")
    return store_coredump(context, data, context.query.get("device_serial"))


def store_coredump(context: RequestContext, data: bytes, serial: str | None) -> Response:
    """Store a core dump of the SDK and return the response of a push."""
    project = context.project
    if not data:
        raise invalid("the core dump is empty")
    count = partial(count_request, project, "coredumps")
    try:
        add_coredump(project, data, serial, count=count)
    except BadCoredump as error:
        # Accepted, as by the service, which parses it later.
        project.log("error", f"core dump: {error}", serial)
        return accepted_response(context, "FAILURE")
    return accepted_response(context)


def decode_content(data: bytes, encoding: str | None, limit: int) -> bytes:
    """Return the decoded content, `limit` bytes at most. Raises 400, 413 or 415."""
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return data
    if name == "base64":
        try:
            return base64.b64decode(bytes(data).translate(None, b"\r\n \t"), validate=True)
        except ValueError as error:
            raise invalid("the body is not base64") from error
    if name != "gzip":
        raise ObservabilityRefused(415, f"the content encoding {name[:40]!r} is not known")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise invalid("the body is not gzip") from error
    if len(content) > limit:
        raise ObservabilityRefused(413, f"it expands to more than {limit} bytes")
    return content


async def _push_events(context: RequestContext) -> Response:
    body = context.body
    events = msgspec.convert(body if isinstance(body, list) else [body], list[PushedEvent])
    serials = dict.fromkeys(event.device_serial for event in events)
    count_request(context.project, "events", *serials)
    for event in events:
        captured = event.captured_date
        add_event(context.project, event, parse_datetime(captured) if captured else None)
    return accepted_response(context)


async def _push_chunks(context: RequestContext) -> Response:
    headers, project = context.headers, context.project
    if "content-length" not in headers:
        raise ObservabilityRefused(411, "Content-Length is needed")
    data, encoding, media = context.raw, headers.get("content-encoding"), context.media_type
    if media == "multipart/mixed":
        parts = _parts(context, data)
        chunks = [decode_content(part.content, encoding, MAX_CHUNK) for part in parts]
    elif media == OCTETS:
        chunks = [decode_content(data, encoding, MAX_CHUNK)]
    else:
        ways = f"a chunk is sent as {OCTETS}, several as multipart/mixed"
        raise ObservabilityRefused(415, f"{ways}, not as {media or 'no type at all'}")
    if not chunks or not all(chunks):
        raise invalid("a chunk is empty")
    if any(len(chunk) > MAX_CHUNK for chunk in chunks):
        raise ObservabilityRefused(413, f"a chunk is {MAX_CHUNK} bytes at most")
    serial = context.path["device_serial"]
    count_request(project, "chunks", serial)
    reassembler = reassembler_of(context.cloud)
    for chunk in chunks:
        received = reassembler.receive(project, serial, chunk)
        for problem in received.problems:
            project.log("error", f"chunk: {problem}", serial)
        if received.message is not None:
            add_message(project, serial, received.message)
    return PlainTextResponse("Accepted", status_code=202)


async def _task(context: RequestContext) -> Response:
    task = context.cloud.table(TASKS).get(context.path["task_id"])
    with_key = context.principal.kind is CredentialKind.PROJECT_KEY
    if task is None or (with_key and task.project != context.project.path):
        raise not_found("task")
    return JSON({"status": task.status})


def _parts(context: RequestContext, body: bytes) -> list[Part]:
    try:
        return split_parts(body, boundary_of(context.headers["content-type"]))
    except BadMultipart as error:
        raise invalid(str(error)) from error


OPERATIONS = (
    declare(
        "POST /api/v0/events", "PushEvents", "Push events: a list of them, or one alone",
        _push_events, tag="push", access=Access.PROJECT_KEY, hosts=(Host.INGRESS,),
        also=(Host.API,), max_body=MAX_EVENTS_BODY, body=EVENTS,
        answers={202: {"type": "object"}}, refusals=(429,),
    ),
    declare(
        "POST /api/v0/chunks/{device_serial}", "PushChunks",
        "Push one chunk of a device, or several in their order", _push_chunks,
        tag="push", access=Access.PROJECT_KEY, hosts=(Host.CHUNKS,), also=(Host.API,),
        max_body=MAX_CHUNKS_BODY,
        description="What is wrong inside the chunks is not an error of this request: it goes"
        " to the processing log.",
        parameters=(in_path("device_serial", SLUG),),
        bodies={OCTETS: _BYTES, "multipart/mixed": _PARTS},
        answered_as="text/plain", answers={202: {"type": "string"}}, refusals=(411, 415, 429),
    ),
    declare(
        "GET /api/v0/queue/{task_id}", "GetTask", "What became of a push", _task,
        tag="push", access=Access.USER_OR_PROJECT_KEY, hosts=(Host.API, Host.INGRESS),
        parameters=(in_path("task_id", _TASK),),
        answers={200: object_schema(status={"type": "string", "enum": list(_STATES)})},
        refusals=(404,),
    ),
)  # fmt: skip
