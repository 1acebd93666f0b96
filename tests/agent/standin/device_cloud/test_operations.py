"""The short form of a declaration: what follows from a path, a method and a name."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from agent.standin.core.operation import Operation
from agent.standin.core.schema import OBJECT, TEXT
from agent.standin.core.serving import JSON_TYPE
from agent.standin.device_cloud import operations
from agent.standin.device_cloud.operations import Context
from agent.standin.device_cloud.seed import GENERIC


def declare(call: str, name: str, summary: str, **more: Any) -> Operation:
    async def handler(context: Context) -> Response:
        raise NotImplementedError

    return operations.declare(call, name, summary, handler, **more).operation


def test_a_variable_of_the_path_is_a_parameter_with_an_example_unless_it_is_deleted() -> None:
    call = "/v1/devices/{device_id}/things/{thing}"
    read = declare(f"GET {call}", "A", "A.", tag="T", answers={200: OBJECT})
    device, thing = read.parameters
    assert (device.name, device.where, device.required) == ("device_id", "path", True)
    assert device.schema["examples"] == [GENERIC]
    assert (thing.name, "examples" in thing.schema) == ("thing", False)
    seeded = declare(
        f"GET {call}", "A", "A.", tag="T", answers={200: OBJECT}, examples={"thing": "led"}
    )
    assert seeded.parameters[1].schema["examples"] == ["led"]
    deleted = declare(f"DELETE {call}", "B", "B.", tag="T", answers={202: None})
    assert not any("examples" in one.schema for one in deleted.parameters)


def test_every_change_and_no_read_takes_if_match() -> None:
    def description(method: str, **more: object) -> str:
        return declare(
            f"{method} /v1/x", "X", "X.", tag="T", answers={202: None}, **more
        ).description

    assert {method: "If-Match" in description(method) for method in ("GET", "PUT", "POST")} == {
        "GET": False,
        "PUT": True,
        "POST": False,
    }
    assert "If-Match" in description("POST", changes=True)


def test_a_body_is_json_and_an_answer_may_have_no_body_or_another_type() -> None:
    made = declare(
        "POST /v1/x", "X", "X.", tag="T", body=OBJECT, answers={200: OBJECT, 202: None},
        also={"text/plain": TEXT}, refusals=(409,),
    )  # fmt: skip
    assert made.bodies == {JSON_TYPE: OBJECT}
    assert made.answers == {200: {JSON_TYPE: OBJECT, "text/plain": TEXT}, 202: {}}
    assert {401, 404, 409} <= set(made.refusals)


def test_what_can_follow_an_operation_is_linked_by_its_name() -> None:
    (link,) = declare(
        "POST /v1/devices/public-keys",
        "RegisterPublicKeys",
        "Keys.",
        tag="T",
        answers={202: OBJECT},
    ).links
    assert (link.status, link.to) == (202, "FetchBulkOpsRequest")
    assert link.parameters == {"request_id": "$response.body#/bulkOpsRequestId"}
