"""The provisioning commands of a claimed device, as its kit takes them and answers.

As the SDK's provisioning client asks over HTTP (`nrf_provisioning` and its CDDL): a GET gives the
commands as CBOR, a POST takes the answers. A kit that has asked once carries its commands out
itself: the stand-in plays that device no more. No document describes these two operations.
"""

import io
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.operation import in_query
from agent.standin.core.schema import TEXT
from agent.standin.device_cloud.access import IDENTITY
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.refusals import bad_request
from agent.standin.device_cloud.tables import CLAIMED, COMMANDS, Command

CBOR = "application/cbor"
_MOST = 100
_AT, _FINISHED, _ERROR, _AT_ANSWER, _FINISHED_ANSWER = 0, 2, 99, 100, 102
_KEY = "2"
_CERTIFICATES = {"serverCertificate": "0", "clientCertificate": "1"}
"""Kind of command -> the type of %CMNG that it writes."""
FOR_KITS = frozenset({"certificateSigningRequest", "finished", *_CERTIFICATES})
"""The kinds that are known as what a kit gets. The stand-in answers the others, whoever asks."""


async def _fetch(context: Context) -> Response:
    cloud, device = context.cloud, context.principal.device_id
    claimed = cloud.table(CLAIMED)[device]
    if not claimed.has_kit:
        claimed.has_kit = True
        cloud.table(CLAIMED).put(device, claimed)
    waiting = list(_waiting(context))[: context.query.get("limit", _MOST)]
    if not waiting:
        return Response(status_code=204)
    import cbor2

    listed = [_as_kit_command(name, command) for name, command in waiting]
    return Response(cbor2.dumps(listed), media_type=CBOR)


def _waiting(context: Context) -> Iterator[tuple[str, Command]]:
    """Yield the device's commands that a kit knows and has not answered, the oldest first."""
    table = context.cloud.table(COMMANDS)
    for name in context.cloud.table(CLAIMED)[context.principal.device_id].commands:
        command = table[name]
        if command.response is None and not FOR_KITS.isdisjoint(command.request):
            yield name, command


def _as_kit_command(name: str, command: Command) -> list[object]:
    ((kind, content),) = command.request.items()
    if kind == "finished":
        return [name, _FINISHED]
    tag = content["secTag"]
    if kind in _CERTIFICATES:
        return [name, _AT, "%CMNG", f'0,{tag},{_CERTIFICATES[kind]},"{content["content"]}"', []]
    attributes, usage = content.get("attributes", ""), content.get("keyUsage", "101010000")
    return [name, _AT, "%KEYGEN", f'{tag},{_KEY},0,"{attributes}","{usage}"', []]


async def _answer(context: Context) -> Response:
    table = context.cloud.table(COMMANDS)
    waiting = dict(_waiting(context))
    for name, kind, *rest in _answers(context.body):
        if (command := waiting.get(name)) is None:
            continue
        ((asked, _),) = command.request.items()
        said: dict[str, JSONValue] = {}
        if kind == _ERROR:
            command.failed = True
            said = {"code": rest[0], "message": rest[1]}
        elif asked == "certificateSigningRequest":
            said = {"csr": rest[0].partition('"')[2].partition('"')[0]}
        command.response, command.by_kit = {asked: said}, True
        table.put(name, command)
    return Response(status_code=200)


def _answers(body: bytes) -> list[list[Any]]:
    """Return the answers of a body: name, kind, and what that kind has. Raises 400."""
    import cbor2

    stream = io.BytesIO(body)
    shapes: dict[object, tuple[type, ...]] = {
        _ERROR: (int, str), _AT_ANSWER: (str,), _FINISHED_ANSWER: (),
    }  # fmt: skip
    try:
        answers = cbor2.load(stream)
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
        raise bad_request("the body is no CBOR") from error
    if not isinstance(answers, list) or stream.read(1):
        raise bad_request("the body is no list of answers")
    for one in answers:
        known = isinstance(one, list) and len(one) > 1 and isinstance(one[1], int)
        shape = shapes.get(one[1]) if known else None
        if shape is None or tuple(map(type, one[2:])) != shape or not isinstance(one[0], str):
            raise bad_request("an answer is not of the client's grammar")
    return answers


_SIZE = {"type": "integer", "minimum": 0}
OPERATIONS = (
    declare(
        "GET /v1/provisioning/commands", "FetchKitCommands", "What a kit has to do.", _fetch,
        tag="Provisioning", access=IDENTITY, answered_as=CBOR, answers={200: TEXT, 204: None},
        parameters=in_query(
            after=TEXT, rxMaxSize=_SIZE, txMaxSize=_SIZE, mver=TEXT, cver=TEXT,
            limit={"type": "integer", "minimum": 1, "maximum": _MOST},
        ),
    ),
    declare(
        "POST /v1/provisioning/response", "AnswerKitCommands", "What came of it.", _answer,
        tag="Provisioning", access=IDENTITY, bodies={CBOR: TEXT}, answers={200: None},
    ),
)  # fmt: skip
