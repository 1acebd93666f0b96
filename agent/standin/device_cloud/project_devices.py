"""Devices made in bulk below a project, with an organization token.

The form is that of the newest released command-line tool, and nothing else is public of it: a CSV
with a header, an answer whose `Location` tells how far it is, errors by row and device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent.standin.clock import iso
from agent.standin.device_cloud import access, bulk
from agent.standin.device_cloud.credentials_csv import LINE_END, Table, parse_rows, read_text
from agent.standin.device_cloud.refusals import invalid, not_built, not_found
from agent.standin.device_cloud.resource import answer_one, with_meta
from agent.standin.dispatch import Endpoint

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from agent.standin.state import Cloud

_TOKENS = ("attestationToken", "onboardingToken")
TABLE = Table('device id,"PEM"', 2, 2, header="deviceId,certificate")
_CREATE = "/v1/organizations/{organization}/projects/{project}/long-range/devices/bulk"


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of bulk creation."""

    async def create(request: Request) -> Response:
        path = request.path_params
        who = access.project_client(request, cloud, path["organization"], path["project"])
        head, *rest = re.split(LINE_END, await read_text(request), maxsplit=1)
        columns, rows = head.split(","), "".join(rest)
        if any(name in columns for name in _TOKENS):
            raise not_built("nothing public says what such a token holds: send certificates")
        if columns != TABLE.header.split(","):
            raise invalid("the first row names the columns: deviceId,certificate")
        TABLE.rows(rows)
        key = bulk.start(cloud, who.team or cloud.team_id, bulk.BY_PROJECT, rows)
        return Response(status_code=202, headers={"Location": f"{request.url.path}/{key}"})

    async def fetch(request: Request) -> Response:
        path = request.path_params
        access.project_client(request, cloud, path["organization"], path["project"])
        row = cloud.table("bulk").get(path["request_id"])
        if row is None or row["endpoint"] != bulk.BY_PROJECT:
            raise not_found("no such bulk request")
        return answer_one(_show(cloud, path["request_id"], row))

    return [
        Endpoint(_CREATE, create, methods=["POST"], name="CreateProjectDevices"),
        Endpoint(_CREATE + "/{request_id}", fetch, methods=["GET"], name="FetchProjectDevices"),
    ]


def _show(cloud: Cloud, key: str, row: dict[str, Any]) -> dict[str, Any]:
    status = bulk.status(cloud, row)
    shown: dict[str, Any] = {
        "bulkOpsRequestId": key,
        # A released tool takes any other word for the end.
        "status": "IN_PROGRESS" if status == "PENDING" else status,
        "requestedAt": iso(row["requested_at"]),
    }
    if row["errors"]:
        ids = [fields[0] for fields in parse_rows(row["text"])]
        told = (error.removeprefix("[").partition("]: ") for error in row["errors"])
        shown["errorSummary"] = {
            "errors": [
                {"row": int(number), "deviceId": ids[int(number)], "error": text}
                for number, _, text in told
            ]
        }
    return with_meta(shown, shown["requestedAt"], iso(row["due"]) if row["done"] else "")
