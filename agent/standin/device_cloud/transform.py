"""Transforms of ListDevices and FetchDevice, by a JSONata engine in a process of its own (D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request
from agent.standin.jsonata_pool import Engine, EngineBusy, ExpressionFailed

if TYPE_CHECKING:
    from agent.standin.state import Cloud

LONGEST = 4096
"""Characters of an expression."""


async def apply(cloud: Cloud, expression: str, devices: list[Any]) -> list[Any]:
    """Return the result for each device, in order; null where the expression yields nothing."""
    if len(expression) > LONGEST:
        raise bad_request(f"a transform is {LONGEST} characters at most")
    if not expression.strip():
        raise bad_request("the transform is empty")
    engine = cloud.rooms.get("jsonata")
    if engine is None:
        engine = cloud.rooms["jsonata"] = Engine()
        cloud.closing.append(engine.close)
    assert isinstance(engine, Engine)
    try:
        results = await engine.evaluate(expression, msgspec.json.encode(devices))
    except ExpressionFailed as error:
        raise bad_request(f"the transform failed: {error}") from error
    except EngineBusy as error:
        raise DeviceCloudRefused(429, str(error), headers={"Retry-After": "5"}) from error
    # Already JSON: what the worker wrote goes out as it is.
    return [msgspec.Raw(result) for result in results]
