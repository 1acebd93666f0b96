"""Hold each answer of the stand-in to what its own document says of it."""

from collections.abc import Iterator
from functools import cache

import httpx
from starlette.routing import compile_path

from agent.standin.core.operation import Operation
from agent.standin.core.schema import check, decode
from agent.standin.device_cloud import routes as device_cloud
from agent.standin.observability import routes as observability

JSON = "application/json"


async def check_declared(answer: httpx.Response) -> None:
    """Check a success in JSON. What no operation declares passes."""
    if not answer.is_success or answer.headers.get("content-type") != JSON:
        return
    operation = operation_of(answer.request.method, answer.request.url.path)
    if operation is None:
        return
    declared = operation.answers[answer.status_code][JSON]
    wrong = check(decode(await answer.aread()), declared)
    assert not wrong, f"{operation.name} answers what its document does not say: {wrong}"


@cache
def operation_of(method: str, path: str) -> Operation | None:
    """Return the operation that serves a path: the one with the fewest variables that fits."""
    fitting = (
        one
        for one in sorted(operations(), key=lambda one: one.path.count("{"))
        if compile_path(one.path)[0].fullmatch(path)
    )
    template = next(fitting, None)
    found = (one for one in operations() if template and one.path == template.path)
    return next((one for one in found if one.method == method), None)


def operations() -> Iterator[Operation]:
    for served in device_cloud.OPERATIONS.values():
        yield from (one.operation for one in served if one.operation.name != "Download")
    yield from (one.operation for one in observability.every_operation())
