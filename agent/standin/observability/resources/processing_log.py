"""The processing log: errors that the service found in data after it was accepted.

Unlike the resources of the contract it pages by cursor.
"""

from starlette.responses import Response

from agent.standin.core.operation import in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, NUMBER, TEXT, Schema, object_schema
from agent.standin.observability import tables
from agent.standin.observability.operations import PROJECT_PATH, RequestContext, declare
from agent.standin.observability.resources import serializers
from agent.standin.observability.schemas import TEXT_OR_NULL

LIFE_S = 60 * 86_400
_LINE = object_schema(
    id=NUMBER, created_date=MOMENT, level=TEXT, message=TEXT, device_serial=TEXT_OR_NULL
)
_PAGE: Schema = object_schema(
    data={"type": "array", "items": _LINE}, links=object_schema(next=TEXT_OR_NULL)
)


async def _list_lines(context: RequestContext) -> Response:
    query, project = context.query, context.project
    size, after = query["page[size]"], query["page[after]"]
    oldest = project.now - LIFE_S
    lines = [
        line
        for line in project.table(tables.PROCESSING_LOG).values()
        if line.id > after
        and line.created >= max(oldest, query.get("start", oldest))
        and line.level in query.get("level", [line.level])
        and query.get("device_serial", line.device_serial) == line.device_serial
    ]
    following = None
    if len(lines) > size:
        following = context.url_with(**{"page[after]": lines[size - 1].id})
    return JSON(
        {
            "data": [serializers.shown(_LINE, line) for line in lines[:size]],
            "links": {"next": following},
        }
    )


_SIZE: Schema = {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
_AFTER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31, "default": 0}
_LEVELS: Schema = {"type": "array", "items": {"enum": ["info", "warning", "error"]}}
_START: Schema = {"type": "string", "format": "date-time", "pattern": "Z$"}
OPERATIONS = (
    declare(
        f"GET {PROJECT_PATH}/processing-log", "ListProcessingLog",
        "What was found wrong in data that was taken; the next page is `links.next`",
        _list_lines, tag="processing-log",
        parameters=(
            *in_query(**{"page[size]": _SIZE, "page[after]": _AFTER}),
            *in_query(level=_LEVELS, start=_START, device_serial=TEXT),
        ),
        answers={200: _PAGE},
    ),
)  # fmt: skip
