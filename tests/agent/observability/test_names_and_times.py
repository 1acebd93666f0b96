from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadAnswer, UsageError
from agent.observability import KINDS, Scope
from agent.observability.api.kinds import path
from agent.observability.api.resources import checked_time, filter_query, read_time, time_parameter
from agent.observability.api.slugs import release_version, slug, version_name


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize("good", ["a", "A_b-9", "UPPER", "x" * 128])
def test_a_slug_of_the_rule_is_taken(good: str) -> None:
    assert slug(good, "project") == good


@pytest.mark.contract("O1.1")
@pytest.mark.parametrize("bad", ["", "a b", "a.b", "a/b", "x" * 129, "a\n", "ä", "٣", "..", "a+b"])
def test_another_slug_is_refused_with_the_rule(bad: str) -> None:
    with pytest.raises(UsageError, match=r"project .*(may hold letters|at most 128)"):
        slug(bad, "project")


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
        assert release_version(version) == version
    else:
        with pytest.raises(UsageError, match="release version"):
            release_version(version)


@pytest.mark.contract("O1.1")
def test_a_hardware_version_has_dots_and_plus() -> None:
    assert version_name("nrf9161dk+0.9.0", "hardware version")
    with pytest.raises(UsageError):
        version_name("nrf 9161", "hardware version")


@pytest.mark.contract("O2.3")
@pytest.mark.parametrize(
    "bad",
    [
        "2026-01-02",
        "2026-01-02T03:04:05+00:00",
        "",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "٢٠٢٦-01-02T03:04:05Z",
    ],
)
def test_a_time_that_the_service_would_refuse_is_not_sent(bad: str) -> None:
    with pytest.raises(UsageError, match="not a valid time"):
        checked_time(bad, "first_seen")
    with pytest.raises(UsageError, match="not a valid time"):
        filter_query({"created_date": bad})


@pytest.mark.contract("O2.3")
@given(when=st.datetimes(timezones=st.timezones()))
def test_an_aware_time_goes_out_in_utc_and_comes_back(when: datetime) -> None:
    try:
        sent = time_parameter(when)
    except OverflowError:
        return
    assert checked_time(sent, "since") == sent
    assert read_time(sent) == when.astimezone(UTC).replace(microsecond=0)


@pytest.mark.contract("O2.3")
def test_a_naive_time_is_refused_both_ways() -> None:
    with pytest.raises(UsageError, match="without a time zone"):
        time_parameter(datetime(2026, 1, 2))  # noqa: DTZ001 - the point
    for naive in ("2026-01-02T03:04:05.123", "2026-01-02", None, 5, "soon"):
        with pytest.raises(BadAnswer):
            read_time(naive)
    assert read_time("2026-01-02T03:04:05.123456+02:00") == datetime(
        2026, 1, 2, 3, 4, 5, 123456, timezone(timedelta(hours=2))
    )


@pytest.mark.contract("O2.4")
def test_a_list_valued_filter_repeats_its_bare_name() -> None:
    query = filter_query({"cohort[]": ["a", "b"], "type": "trace", "ok": True, "n": 3})
    assert query == [
        ("cohort", "a"),
        ("cohort", "b"),
        ("type", "trace"),
        ("ok", "true"),
        ("n", "3"),
    ]
    with pytest.raises(UsageError):
        filter_query({"x": {"nested": 1}})


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
