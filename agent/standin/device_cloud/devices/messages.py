"""Messages of devices: sent with an API key or a JWT, listed by users."""

import base64

from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.clock import iso
from agent.standin.core.operation import in_query
from agent.standin.core.schema import MOMENT, TEXT, Schema
from agent.standin.device_cloud.access import DEVICE
from agent.standin.device_cloud.devices.registry import own_device
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import invalid
from agent.standin.device_cloud.resource import accepted, with_meta
from agent.standin.device_cloud.shapes import list_of, resource
from agent.standin.device_cloud.tables import MESSAGES, Message
from agent.standin.state import Cloud

_DAY_S = 86400
KEPT_S = 30 * _DAY_S
OLDEST_STAMP_S = 90 * _DAY_S
_MOST = 100_000


MESSAGE: Schema = {
    "type": "object",
    "required": ["message"],
    "properties": {"message": {"type": ["object", "array", "string"], "items": {}}},
    "description": "`topic` may be added, a text: one of the device's own, d/<id>/d2c,"
    " d/<id>/d2c/bulk for a list or d/<id>/d2c/bin for base64.",
}


async def _send(context: Context) -> Response:
    cloud, team = context.cloud, context.team
    own = own_device(context).fields.id
    body = context.body
    topic = body.get("topic", f"d/{own}/d2c")
    if not isinstance(topic, str) or not _is_topic(topic, own):
        raise invalid(f"a topic of this device is d/{own}/d2c, …/d2c/bulk or …/d2c/bin")
    for message in _messages(topic, body["message"]):
        _store(cloud, team, own, topic, message)
    return accepted()


async def _listed(context: Context) -> Response:
    cloud, query = context.cloud, context.query
    since = query.get("inclusiveStart", query.get("start", 0.0))
    until = query.get("exclusiveEnd", query.get("end", float("inf")))
    oldest = cloud.clock.time() - KEPT_S
    matching = (
        row.message
        for row in context.owned(MESSAGES).values()
        if max(since, oldest) <= row.at < until
        and query.get("deviceId") in {None, row.message["deviceId"]}
        and query.get("topic") in {None, row.message["topic"]}
        and ("appId" not in query or query["appId"] == _app_id(row.message["message"]))
    )
    return context.page(descending=True).answer(matching)


def _is_topic(topic: str, device_id: str) -> bool:
    """Return whether a topic, with or without the team's prefix, is one of this device's own."""
    own = f"d/{device_id}/d2c"
    return any(
        topic == form or topic.endswith(f"/m/{form}") for form in (own, own + "/bulk", own + "/bin")
    )


def _messages(topic: str, message: JSONValue) -> list[JSONValue]:
    if topic.endswith("/bulk"):
        if not isinstance(message, list):
            raise invalid("the bulk topic takes a list")
        return message
    if topic.endswith("/bin"):
        if not isinstance(message, str):
            raise invalid("the binary topic takes base64")
        try:
            base64.b64decode(message, validate=True)
        except ValueError as error:
            raise invalid("the binary topic takes base64") from error
    return [message]


def _store(cloud: Cloud, team: str, device_id: str, topic: str, message: JSONValue) -> None:
    now = cloud.clock.time()
    at = now
    stamp = message.get("ts") if isinstance(message, dict) else None
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        stamped = stamp / 1000
        if now - OLDEST_STAMP_S <= stamped <= now:
            at = stamped
    table = cloud.table(MESSAGES)
    when = iso(at)
    resource = {
        "tenantId": team,
        "topic": topic,
        "deviceId": device_id,
        "receivedAt": when,
        "message": message,
    }
    row = Message(team=team, at=at, message=with_meta(resource, when))
    table.put(f"{table.next_number():012d}", row)
    if len(table) > _MOST:
        table.delete(next(iter(table)))


def _app_id(message: object) -> object:
    return message.get("appId") if isinstance(message, dict) else None


_SENT = resource(tenantId=TEXT, topic=TEXT, deviceId=TEXT, receivedAt=MOMENT, message={})
OPERATIONS = (
    declare(
        "POST /v1/devices/{device_id}/messages", "SendDeviceMessage",
        "Send a message in a device's name.", _send,
        tag="Messages", access=DEVICE, body=MESSAGE, answers={202: None},
    ),
    declare(
        "GET /v1/messages", "ListMessages", "What devices sent.", _listed, tag="Messages",
        parameters=(
            *in_query(inclusiveStart=MOMENT, exclusiveEnd=MOMENT, start=MOMENT, end=MOMENT),
            *in_query(deviceId=TEXT, appId=TEXT, topic=TEXT),
            *PAGES,
        ),
        answers={200: list_of(_SENT)},
    ),
)  # fmt: skip
