from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota.allowed_hosts import AllowedHosts, checked_target, job_target
from agent.http.download_targets import SourceRefused
from tests.support.fota.hostile_urls import HOSTILE_ADDRESSES, HOSTILE_JOBS, HOSTILE_REDIRECTS

PUBLIC = AllowedHosts(hosts=("firmware.example.com", "bundles.example.com:8443"))

GOOD = "firmware.example.com"
STAND_IN = AllowedHosts(hosts=(), stand_in=True)


@pytest.mark.parametrize(
    ("host", "path", "url"),
    [
        ("firmware.example.com", "t/APP*1*v1/a.bin", "/t/APP*1*v1/a.bin"),
        ("https://firmware.example.com/", "/t/a.bin", "/t/a.bin"),
        ("FIRMWARE.example.com", "t/a%20b.bin", "/t/a%20b.bin"),
        ("firmware.example.com:443", "t/ä.bin", "/t/%C3%A4.bin"),
    ],
)
def test_host_and_path_make_one_url(host: str, path: str, url: str) -> None:
    assert job_target(host, path, PUBLIC).url == f"https://firmware.example.com{url}"


def test_a_port_must_be_listed_with_its_host() -> None:
    assert checked_target("https://bundles.example.com:8443/a", PUBLIC).port == 8443
    with pytest.raises(SourceRefused):
        checked_target("https://bundles.example.com/a", PUBLIC)


@pytest.mark.parametrize(
    "host", ["a.example", "a.example:8443", "[2001:db8::1]", "[2001:db8::1]:1"]
)
def test_a_host_passes_once_the_command_was_run_that_its_refusal_tells(host: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        checked_target(f"https://{host}/a.bin", PUBLIC)
    *_, key, value = shlex.split(refused.value.hint.split("`")[1])
    assert key == "fota.hosts"
    assert checked_target(f"https://{host}/a.bin", AllowedHosts(tuple(value.split(","))))


def test_the_stand_in_may_serve_plain_http_on_loopback_and_nothing_else() -> None:
    target = job_target("http://127.0.0.1:8080", "a.bin", STAND_IN)
    assert target.url == "http://127.0.0.1:8080/a.bin"
    assert job_target("http://[::1]:80", "a", STAND_IN).authority == "[::1]"
    for host in ("http://192.168.1.1", "https://firmware.example.com", "http://169.254.169.254"):
        with pytest.raises(SourceRefused):
            job_target(host, "a.bin", STAND_IN)


def test_there_are_200_hostile_urls() -> None:
    assert len(HOSTILE_JOBS) + len(HOSTILE_REDIRECTS) + len(HOSTILE_ADDRESSES) >= 200


@pytest.mark.parametrize(("host", "path"), HOSTILE_JOBS)
def test_a_hostile_job_is_refused(host: str, path: str) -> None:
    with pytest.raises(SourceRefused):
        job_target(host, path, PUBLIC)


@pytest.mark.parametrize("url", HOSTILE_REDIRECTS)
def test_a_hostile_redirect_is_refused(url: str) -> None:
    with pytest.raises(SourceRefused):
        checked_target(url, PUBLIC)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "file:a.bin", "ftp://a.example/", "data:,a"])
def test_a_redirect_by_another_scheme_is_refused_for_that(url: str) -> None:
    with pytest.raises(SourceRefused, match=f"^{url.partition(':')[0]}:.* by https only"):
        checked_target(url, PUBLIC)


@pytest.mark.parametrize("path", ["team/APP*1*v1/a b.bin", "/team/APP*1*v1/a b.bin"])
def test_a_path_that_is_a_whole_url_leads_where_host_and_path_would(path: str) -> None:
    for host, allowed in ((GOOD, PUBLIC), ("http://127.0.0.1:8080", STAND_IN)):
        base = host if "://" in host else f"https://{host}"
        whole = f"{base}/{path.removeprefix('/')}"
        for named in (host, "firmware.example.org"):
            assert job_target(named, whole, allowed) == job_target(host, path, allowed)


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["", "https://", "HTTP://"]))
def test_whatever_passes_goes_to_a_listed_host_by_https(host: str, path: str, scheme: str) -> None:
    try:
        target = job_target(host, scheme + path, PUBLIC)
    except SourceRefused:
        return
    assert target.scheme == "https"
    assert target.authority in PUBLIC.hosts
