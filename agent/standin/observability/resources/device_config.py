"""What a Linux device asks for from time to time: how much of what it is to collect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.core.operation import Host, Operation
from agent.standin.core.responses import JSON
from agent.standin.observability.access import Access
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.resources.conventions import one
from agent.standin.observability.shapes import NUMBER, OPEN, shape
from agent.standin.observability.uploads.upload_kinds import IDENTITY

if TYPE_CHECKING:
    from starlette.responses import Response

REVISION = 1
_RESOLUTIONS = ("debugging", "logging", "monitoring")
_ANSWER = one(shape(revision=NUMBER, completed={"type": ["integer", "null"]}, config=OPEN))


def served() -> list[Served]:
    """Return the one operation."""
    operation = Operation(
        method="POST",
        path="/api/v0/device-config",
        name="GetDeviceConfig",
        summary="The configuration of a device, and which revision it has confirmed",
        description="Accepts the project key.",
        tag="devices",
        security=("ProjectKey",),
        bodies={JSON_TYPE: shape(device=IDENTITY)},
        answers={200: {JSON_TYPE: _ANSWER}},
        refusals=(400, 403, 413, 415),
    )
    hosts = (Host.API, Host.INGRESS)
    return [
        Served(operation=operation, handler=_config, access=Access.PROJECT_KEY, hosts=hosts),
    ]


async def _config(exchange: Exchange) -> Response:
    device = exchange.body["device"]
    record = exchange.project.device(device["device_serial"], device["hardware_version"])
    sampling = {f"{name}.resolution": "normal" for name in _RESOLUTIONS}
    return JSON(
        {
            "data": {
                "revision": REVISION,
                # A device confirms in its next archive.
                "completed": record.get("config_revision"),
                "config": {"memfault": {"sampling": sampling}},
            }
        }
    )
