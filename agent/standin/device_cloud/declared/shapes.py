"""What the declarations of the device cloud half share: schemes, shapes, a short form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.core.operation import Operation, Parameter
from agent.standin.device_cloud.paging import TOKEN
from agent.standin.device_cloud.seed import GENERIC
from agent.standin.state import ORGANIZATION, PROJECT

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema

SIMPLE_TOKEN = "Simple Token"
JSON_WEB_TOKEN = "JSON Web Token"
EVALUATION_TOKEN = "Evaluation Token"
ORGANIZATION_TOKEN = "Organization Auth Token"
KEY = (SIMPLE_TOKEN,)
BOTH = (SIMPLE_TOKEN, JSON_WEB_TOKEN)
JSON = "application/json"
BYTES = "application/octet-stream"
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"enum": [True, False, 0, 1]}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {
    "type": "object",
    "required": ["$meta"],
    "properties": {
        "$meta": {
            "type": "object",
            "required": ["version", "createdAt", "updatedAt"],
            "properties": {
                "version": TEXT,
                "createdAt": MOMENT,
                "updatedAt": MOMENT,
            },
        }
    },
}
LIST: Schema = {
    "type": "object",
    "required": ["items", "total"],
    "properties": {
        "items": {"type": "array"},
        "total": {"type": "integer"},
        "pageNextToken": TEXT,
    },
}
PAGES = (
    Parameter(name="pageLimit", schema={"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter(name="pageNextToken", schema={"type": "string", "pattern": f"^{TOKEN}$"}),
    Parameter(name="pageSort", schema={"type": "string", "enum": ["asc", "desc"]}),
)
_IF_MATCH = "Takes an optional `If-Match`; another version than the latest is refused with 412."
_SEEDED = {"organization": ORGANIZATION, "project": PROJECT, "device_id": GENERIC}
_REFUSALS = (400, 401, 403, 404, 412, 413, 415, 422)


def _in_path(name: str, method: str, seeded: dict[str, str]) -> Parameter:
    schema: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]{1,128}$"}
    # What is there from the start is no example of what to delete.
    if name in seeded and method != "DELETE":
        schema["examples"] = [seeded[name]]
    return Parameter(name=name, schema=schema, where="path", required=True)


def one(
    call: str, name: str, summary: str, *, answers: dict[int, Schema | None], **more: Any
) -> Operation:
    """Return an operation; `call` is "METHOD /path", an answer None has no body.

    `seeded` are values of path parameters that are there from the start, where they are others.
    `also` are media types, with their schemas, that an answer with a body may have as well.
    """
    method, _, path = call.partition(" ")
    seeded = {**_SEEDED, **more.pop("seeded", {})}
    own = {p.name for p in more.get("parameters", ())}
    parameters = [*more.pop("parameters", ())]
    for part in path.split("/"):
        if part.startswith("{") and part[1:-1] not in own:
            parameters += [_in_path(part[1:-1], method, seeded)]
    changes = method in {"PUT", "PATCH", "DELETE"} or more.pop("changes", False)
    body = more.pop("body", None)
    also = more.get("also", {})
    bodies = more.pop("bodies", {JSON: body} if body is not None else {})
    return Operation(
        method=method,
        path=path,
        name=name,
        summary=summary,
        tag=more.pop("tag"),
        description=_IF_MATCH if changes else "",
        security=more.pop("security", KEY),
        parameters=tuple(parameters),
        bodies=bodies,
        answers={
            status: {} if schema is None else {more.get("kind", JSON): schema, **also}
            for status, schema in answers.items()
        },
        refusals=(*_REFUSALS, *more.pop("refusals", ())),
        deprecated=more.get("deprecated", False),
        body_required=more.get("body_required", True),
    )
