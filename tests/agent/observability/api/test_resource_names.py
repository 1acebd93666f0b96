"""Names of resources: the rules for slugs and versions."""

from __future__ import annotations

import pytest

from agent.errors import UsageError
from agent.observability.api.resource_names import check_release_version, check_slug, check_version


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
def test_a_hardware_version_has_dots_and_plus() -> None:
    assert check_version("hardware version", "nrf9161dk+0.9.0")
    with pytest.raises(UsageError):
        check_version("hardware version", "nrf 9161")
