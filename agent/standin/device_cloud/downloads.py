"""The host of files: images of jobs and prediction files, with ranges (RFC 9110, 14).

No credential is asked for: the path is the secret, as with the real service's signed links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud.assistance import predictions
from agent.standin.device_cloud.ranged import ranged
from agent.standin.device_cloud.refusals import not_found
from agent.standin.dispatch import Endpoint

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> list[Route]:
    """Return the route that serves files."""

    async def file(request: Request) -> Response:
        path = request.path_params["path"]
        content = cloud.table("files").get(path)
        if content is None and path in cloud.table("predictions"):
            content = predictions(*cloud.table("predictions").get(path))
        if content is None:
            raise not_found("no such file")
        return ranged(content, request.headers)

    return [Endpoint("/{path:path}", file, methods=["GET"])]
