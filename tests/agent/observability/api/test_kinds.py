"""The paths of resources."""

from __future__ import annotations

import pytest

from agent.errors import UsageError
from agent.observability import KINDS, Scope
from agent.observability.api.kinds import path


@pytest.mark.contract("O1.2")
def test_each_resource_has_its_path() -> None:
    scope = Scope("acme", "kits")
    project = "/api/v0/organizations/acme/projects/kits"
    assert path(KINDS["organization"], scope, "acme") == "/api/v0/organizations/acme"
    assert path(KINDS["project"], scope, "kits") == project
    assert path(KINDS["release"], scope, "1.0.0+b.1") == f"{project}/releases/1.0.0%2Bb.1"
    assert path(KINDS["cohort"], scope, "beta") == f"{project}/cohorts/beta"
    assert path(KINDS["device"], scope, "TEST_1") == f"{project}/devices/TEST_1"
    for name in ("deployment", "event", "trace", "issue", "install"):
        assert path(KINDS[name], scope, "17") == f"{project}/{name}s/17"
        assert path(KINDS[name], scope) == f"{project}/{name}s"
        for bad in ("", ".", "..", "a\n"):
            with pytest.raises(UsageError):
                path(KINDS[name], scope, bad)
        assert path(KINDS[name], scope, "a/../b").endswith("/a%2F..%2Fb")
    assert len(KINDS) == 10


def test_a_missing_organization_or_project_is_named() -> None:
    with pytest.raises(UsageError, match="no organization is given"):
        path(KINDS["project"], Scope())
    with pytest.raises(UsageError, match="no project is given"):
        path(KINDS["event"], Scope("acme"))


@pytest.mark.contract("O1.1")
def test_a_name_that_cannot_be_is_refused_by_what_it_should_be_the_name_of() -> None:
    for scope, what in ((Scope("a b", "kits"), "organization"), (Scope("acme", "k.1"), "project")):
        with pytest.raises(UsageError, match=rf"^{what}\b"):
            path(KINDS["event"], scope)
