"""Identifiers, envelope, paging, filters, sort, methods: clauses O1 to O3, the stand-in's half."""

from __future__ import annotations

import re

import pytest
from observability import (
    a_trace,
    an_event,
    error_of,
    with_password,
    with_project_key,
    with_token,
)
from standin import StandIn, running_standin

LISTS = (
    "releases", "cohorts", "devices", "deployments", "events", "traces", "issues", "installs",
)  # fmt: skip
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d\d:\d\d")


async def push(standin: StandIn, *events: dict) -> None:
    answer = await with_project_key(standin)("POST", "/api/v0/events", "ingress", json=list(events))
    assert answer.status_code == 202, answer.text


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize(
    ("serial", "taken"),
    [("a" * 128, True), ("a" * 129, False), ("A_b-9", True), ("a.b", False), ("a b", False),
     ("", False), ("kit-1\n", False), ("kït", False)],
)  # fmt: skip
async def test_a_device_serial_keeps_the_rule_of_slugs(
    standin: StandIn, serial: str, taken: bool
) -> None:
    body = {"device_serial": serial, "hardware_version": "nrf9161dk"}
    answer = await with_token(standin)("POST", "~/devices", json=body)
    assert answer.status_code == (201 if taken else 400)
    if not taken:
        assert "device_serial" in error_of(answer)["message"]


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize(
    ("version", "taken"),
    [("1.2.3", True), ("1.0.0-rc.1+build.5", True), ("1.2", False), ("01.2.3", False),
     ("v1.2.3", False), ("1.2.3-" + "a" * 122, True), ("1.2.3-" + "a" * 123, False)],
)  # fmt: skip
async def test_a_release_is_a_semantic_version(standin: StandIn, version: str, taken: bool) -> None:
    answer = await with_token(standin)("POST", "~/releases", json={"version": version})
    assert answer.status_code == (201 if taken else 400)


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize("hardware", ["rev_1.2+b", "x" * 128])
async def test_a_hardware_version_may_hold_dots_and_plus(standin: StandIn, hardware: str) -> None:
    body = {"device_serial": "kit-1", "hardware_version": hardware}
    assert (await with_token(standin)("POST", "~/devices", json=body)).status_code == 201
    body["hardware_version"] = hardware + "!"
    assert (await with_token(standin)("POST", "~/devices", json=body)).status_code == 400


@pytest.mark.contract("O1.1")
async def test_a_slug_of_a_path_is_held_to_the_rule(standin: StandIn) -> None:
    caller = with_token(standin)
    assert error_of(await caller("GET", "~/devices/a%20b"))["http_code"] == 400
    assert error_of(await caller("GET", "/api/v0/organizations/a.b/projects"))["http_code"] == 400
    assert error_of(await caller("GET", "~/devices/never-seen"))["http_code"] == 404


@pytest.mark.contract("O1.2")
async def test_every_resource_has_its_route(standin: StandIn) -> None:
    await push(standin, a_trace("kit-1"))
    caller = with_token(standin)
    keys = {"releases": "version", "cohorts": "slug", "devices": "device_serial"}
    body = {"release": "2.4.1", "cohort": "default"}
    assert (await caller("POST", "~/deployments", json=body)).status_code == 201
    for name in LISTS:
        (item, *_) = await caller.data(f"~/{name}")
        one = await caller.data(f"~/{name}/{item[keys.get(name, 'id')]}")
        assert one == item
    assert (await caller.data("~"))["slug"] == standin.project
    assert (await caller.data(f"/api/v0/organizations/{standin.organization}"))["slug"] == "acme"
    for missing in ("~/hardware-versions", "~/hardware_versions"):
        assert error_of(await caller("GET", missing))["http_code"] == 404


@pytest.mark.contract("O1.4")
async def test_the_four_hosts_are_told_apart(tmp_path) -> None:
    async with running_standin(tmp_path, split=True) as standin:
        device, user = with_project_key(standin), with_token(standin)
        events = [an_event()]
        assert (await device("POST", "/api/v0/events", "ingress", json=events)).status_code == 202
        assert (await device("POST", "/api/v0/events", "chunks", json=events)).status_code == 404
        assert (await user("GET", "~/devices", "api")).status_code == 200
        for host in ("chunks", "ingress", "files"):
            assert error_of(await user("GET", "~/devices", host))["http_code"] == 404
        octets = {"Content-Type": "application/octet-stream"}
        for host, status in (("chunks", 202), ("api", 202), ("ingress", 404), ("files", 404)):
            answer = await device(
                "POST", "/api/v0/chunks/kit-1", host, content=b"\x08\0\0", headers=octets
            )
            assert answer.status_code == status, host
        prepare = {"kind": "MAR", "size": 3}
        for host, status in (("files", 200), ("api", 200), ("ingress", 200), ("chunks", 404)):
            answer = await device("POST", "/api/v0/upload", host, json=prepare)
            assert answer.status_code == status, host


@pytest.mark.contract("O1.5")
async def test_errors_are_json_too(standin: StandIn) -> None:
    caller = with_token(standin)
    for method, path in (
        ("GET", "/api/v0/nowhere"), ("GET", "/api/v0/organizations/nobody/projects"),
        ("TRACE", "/api/v0/organizations"), ("GET", "/auth/nothing"),
    ):  # fmt: skip
        assert error_of(await caller(method, path))["message"]
    wrong = await caller("POST", "~/devices", content=b"{", headers={"Content-Type": "text/plain"})
    assert error_of(wrong)["http_code"] == 415
    for body in (b"{", b"[" * 100_000, b'{"a":1e999}', b"\xff", b'{"a":' * 200 + b"1" + b"}" * 200):
        answer = await caller(
            "POST", "~/devices", content=body, headers={"Content-Type": "application/json"}
        )
        assert error_of(answer)["http_code"] == 400


@pytest.mark.contract("O2.1", "O2.2")
@pytest.mark.parametrize(
    "path",
    [
        "/api/v0/organizations",
        "/api/v0/organizations/acme/projects",
        *(f"~/{name}" for name in (*LISTS, "coredumps", "files")),
    ],
)
async def test_every_list_pages_in_the_envelope(standin: StandIn, path: str) -> None:
    caller = with_token(standin)
    answer = (await caller("GET", path)).json()
    assert answer["paging"]["page"] == 1
    assert answer["paging"]["per_page"] == 20
    for query in ({"per_page": 101}, {"per_page": 0}, {"page": 0}, {"page": "x"}, {"page": ""},
                  {"per_page": "1.5"}, {"page": [1, 2]}):  # fmt: skip
        refused = await caller("GET", path, params=query)
        assert error_of(refused)["http_code"] == 400, query
    assert (await caller("GET", path, params={"per_page": 100})).status_code == 200


@pytest.mark.contract("O2.1", "O2.2", "O3.3")
async def test_the_pages_of_a_list_add_up(standin: StandIn) -> None:
    await push(standin, *(an_event(f"kit-{number}") for number in range(45)))
    caller = with_token(standin)
    seen = []
    for page, count in ((1, 20), (2, 20), (3, 5), (4, 0)):
        answer = (await caller("GET", "~/events", params={"page": page})).json()
        assert answer["paging"] == {
            "item_count": count, "total_count": 45, "page": page, "page_count": 3, "per_page": 20,
        }  # fmt: skip
        seen += [event["id"] for event in answer["data"]]
    assert len(set(seen)) == 45
    one = (await caller("GET", "~/events", params={"per_page": 100})).json()
    assert [event["id"] for event in one["data"]] == seen


@pytest.mark.contract("O2.3")
async def test_timestamps_have_a_fraction_and_a_numeric_offset(standin: StandIn) -> None:
    await push(standin, a_trace(captured_date="2026-11-01T00:00:00Z"))
    standin.clock.set(1_793_500_000)
    await push(standin, a_trace(captured_date="2026-11-01T00:00:00Z"))
    caller = with_token(standin)
    (event, *_) = await caller.data("~/events")
    (issue,) = await caller.data("~/issues")
    (device,) = await caller.data("~/devices")
    stamps = [event[f"{name}_date"] for name in ("created", "captured", "received")]
    for stamp in [*stamps, issue["first_seen"], device["last_seen"], device["created_date"]]:
        assert TIMESTAMP.fullmatch(stamp), stamp


@pytest.mark.contract("O2.3")
@pytest.mark.parametrize(
    ("path", "parameter"),
    [("~/events", "since"), ("~/devices", "created_date"), ("~/issues", "first_seen"),
     ("~/devices", "last_seen_since"), ("~/releases", "created_date")],
)  # fmt: skip
async def test_a_timestamp_parameter_ends_with_z(
    standin: StandIn, path: str, parameter: str
) -> None:
    caller = with_token(standin)
    for good in ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678Z"):
        assert (await caller("GET", path, params={parameter: good})).status_code == 200
    for bad in ("2026-01-02", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05", "yesterday",
                "2026-02-30T00:00:00Z", "2026-01-02 03:04:05Z", "", "1700000000"):  # fmt: skip
        refused = await caller("GET", path, params={parameter: bad})
        assert error_of(refused)["http_code"] == 400
        assert "Not a valid datetime" in refused.text, bad


@pytest.mark.contract("O2.3", "O2.4")
async def test_timestamps_filter(standin: StandIn) -> None:
    standin.clock.freeze()
    standin.clock.set(1_793_500_000)  # 2026-11-01T01:46:40Z
    await push(standin, an_event("early", captured_date="2026-10-31T10:00:00Z"))
    await push(standin, an_event("late", captured_date="2026-11-01T01:00:00+00:00"))
    caller = with_token(standin)
    for query, serials in (
        ({"since": "2026-11-01T00:00:00Z"}, ["late"]),
        ({"until": "2026-11-01T00:00:00Z"}, ["early"]),
        ({"since": "2027-01-01T00:00:00Z"}, []),
    ):
        found = await caller.data("~/events", **query)
        assert [event["device"]["device_serial"] for event in found] == serials


@pytest.mark.contract("O2.4")
async def test_a_list_valued_filter_repeats_its_name(standin: StandIn) -> None:
    caller = with_token(standin)
    for slug in ("alpha", "beta", "gamma"):
        assert (await caller("POST", "~/cohorts", json={"slug": slug})).status_code == 201
        device = {"device_serial": slug, "hardware_version": "r1", "cohort": slug}
        assert (await caller("POST", "~/devices", json=device)).status_code == 201
    found = await caller.data("~/devices", cohort=["alpha", "gamma"])
    assert {device["device_serial"] for device in found} == {"alpha", "gamma"}
    encoded = await caller("GET", "~/devices?cohort=%61lpha&cohort=b%65ta&sort=-device_serial")
    assert [device["device_serial"] for device in encoded.json()["data"]] == ["beta", "alpha"]


@pytest.mark.contract("O2.4")
async def test_sort_is_ascending_and_descending_with_a_minus(standin: StandIn) -> None:
    await push(standin, *(an_event(serial) for serial in ("b", "c", "a")))
    caller = with_token(standin)
    for sort, order in (("device_serial", "abc"), ("-device_serial", "cba")):
        found = await caller.data("~/devices", sort=sort)
        assert "".join(device["device_serial"] for device in found) == order
    assert error_of(await caller("GET", "~/devices", params={"sort": "colour"}))


@pytest.mark.contract("O3.1")
async def test_the_methods_do_what_the_table_of_methods_says(standin: StandIn) -> None:
    caller = with_token(standin)
    body = {"device_serial": "kit-1", "hardware_version": "r1", "nickname": "one"}
    assert (await caller("POST", "~/devices", json=body)).status_code == 201
    assert error_of(await caller("POST", "~/devices", json=body))["http_code"] == 409
    changed = (await caller("PATCH", "~/devices/kit-1", json={"description": "by the door"})).json()
    assert changed["data"]["nickname"] == "one"
    assert changed["data"]["description"] == "by the door"
    assert (await caller("POST", "~/cohorts", json={"slug": "beta"})).status_code == 201
    for _ in range(2):  # creates the relation, then changes nothing
        assert (await caller("PUT", "~/cohorts/beta/devices/kit-1")).status_code == 200
    assert (await caller.data("~/devices/kit-1"))["cohort"]["slug"] == "beta"
    assert (await caller("DELETE", "~/devices/kit-1")).status_code == 204
    assert error_of(await caller("GET", "~/devices/kit-1"))["http_code"] == 404


@pytest.mark.contract("O3.1")
async def test_many_are_deleted_by_ids_in_the_body_all_or_none(standin: StandIn) -> None:
    await push(standin, *(an_event(f"kit-{number}") for number in range(4)))
    caller = with_token(standin)
    ids = [device["id"] for device in await caller.data("~/devices", sort="device_serial")]
    assert error_of(await caller("DELETE", "~/devices", json={"ids": [ids[0], 999]}))
    assert (await caller("DELETE", "~/devices", json={"ids": ids[:2]})).status_code == 204
    assert (await caller("DELETE", "~/devices", json=[ids[2]])).status_code == 204
    (left,) = await caller.data("~/devices")
    assert left["device_serial"] == "kit-3"


@pytest.mark.contract("O3.1")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "~/events", {"GET", "HEAD"}), ("DELETE", "~/events/1", {"GET", "HEAD"}),
     ("PATCH", "~/installs/1", {"GET", "HEAD"}), ("PUT", "~/devices/kit-1", None),
     ("POST", "~/issues", {"GET", "HEAD"}), ("GET", "/api/v0/events", {"POST"})],
)  # fmt: skip
async def test_a_route_that_a_resource_lacks_is_refused_with_what_there_is(
    standin: StandIn, method: str, path: str, allowed: set[str] | None
) -> None:
    answer = await with_password(standin)(method, path, json={})
    assert error_of(answer)["http_code"] == 405
    offered = set(answer.headers["Allow"].split(", "))
    assert offered == allowed if allowed else method not in offered


@pytest.mark.contract("O3.1")
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_body_is_to_be_declared_as_json(standin: StandIn, method: str) -> None:
    await push(standin, an_event("kit-1"))
    path = "~/devices" + ("/kit-1" if method == "PATCH" else "")
    for media in ("text/plain", "application/x-www-form-urlencoded"):
        answer = await with_token(standin)(
            method, path, content=b"{}", headers={"Content-Type": media}
        )
        assert error_of(answer)["http_code"] == 415
    good = await with_token(standin)(
        method,
        path,
        content=b'{"device_serial":"x","hardware_version":"y"}',
        headers={"Content-Type": "application/json; charset=utf-8"},
    )
    assert good.status_code in {200, 201}
