"""Identifiers of a project keep their rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.project import is_semver, precedence
from tests.support.cloud.observability import error_of, with_token
from tests.support.cloud.standin import StandIn


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


# In ascending order, as clause 11 of Semantic Versioning 2.0.0 gives it.
ORDERED = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
    *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"),
]


@given(st.permutations(ORDERED))
def test_versions_are_ordered_by_semantic_versioning(versions: list[str]) -> None:
    assert sorted(versions, key=precedence) == ORDERED
    assert all(is_semver(version) for version in versions)


def test_build_metadata_does_not_count() -> None:
    assert precedence("1.0.0+a.1") == precedence("1.0.0+b") == precedence("1.0.0")


@pytest.mark.parametrize("text", ["", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3\n", "1.2.3-01"])
def test_what_is_no_semantic_version_names_no_release(text: str) -> None:
    assert not is_semver(text)
