"""Names of resources: the rules for slugs and versions."""

from __future__ import annotations

import pytest

from agent.errors import UsageError
from agent.observability.api.kinds import KINDS, Scope
from agent.observability.api.resource_names import check_release_version, check_slug, check_version
from agent.observability.api.resources import CreateResource, PutRelation, UpdateResource


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize("good", ["a", "A_b-9", "UPPER", "x" * 128])
def test_a_slug_of_the_rule_is_taken(good: str) -> None:
    assert check_slug("project", good) == good


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize("bad", ["", "a b", "a.b", "a/b", "x" * 129, "a\n", "ä", "٣", "..", "a+b"])
def test_another_slug_is_refused_with_the_rule(bad: str) -> None:
    with pytest.raises(UsageError, match=r"project .*(may hold letters|at most 128)"):
        check_slug("project", bad)


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("1.2.3", True),
        ("0.0.4", True),
        ("1.0.0-alpha.1", True),
        ("1.0.0+cfacefbcb", True),
        ("1.0.0-0A.is.legal+build.11", True),
        ("1.2", False),
        ("01.2.3", False),
        ("1.2.3-01", False),
        ("v1.2.3", False),
        ("1.2.3\n", False),
        ("1.2.3-", False),
        ("1.2.3+", False),
        ("1.2.3-é", False),
        ("1.2.3+" + "x" * 130, False),
    ],
)
def test_a_release_is_a_semantic_version(version: str, good: bool) -> None:
    if good:
        assert check_release_version(version) == version
    else:
        with pytest.raises(UsageError, match="release version"):
            check_release_version(version)


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("slug", "beta", "bad slug"),
        ("cohort", "beta", "béta"),
        ("device_serial", "SERIAL-1", "a.b"),
        ("hardware_version", "nrf9161dk+0.9.0", "nrf 9161"),
        ("version", "1.2.3", "1.2"),
        ("version", "1.2.3", 1.2),
        ("version", "1.2.3", ["1.2.3"]),
        ("release", ["1.2.3", "1.3.0"], ["1.2.3", "1.3"]),
        ("min_version", "", "1"),
        ("slug", "x" * 128, "x" * 129),
        ("name", "any text at all", None),
    ],
)
def test_a_name_among_the_fields_is_checked_before_it_is_sent(
    field: str, good: object, bad: object
) -> None:
    scope = Scope("acme", "kits")
    for call in (
        lambda fields: CreateResource(KINDS["cohort"], scope, fields),
        lambda fields: UpdateResource(KINDS["cohort"], scope, "beta", fields),
        lambda fields: PutRelation(KINDS["cohort"], scope, "beta", KINDS["device"], "S1", fields),
    ):
        assert call({field: good}).request().json == {field: good}
        if bad is not None:
            with pytest.raises(UsageError, match=f"^{field}"):
                call({field: bad}).request()


@pytest.mark.contract("O1.1")
def test_a_hardware_version_has_dots_and_plus() -> None:
    assert check_version("hardware version", "nrf9161dk+0.9.0")
    with pytest.raises(UsageError):
        check_version("hardware version", "nrf 9161")
