from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.urls import checked_url, is_loopback, next_url, same_origin
from agent.errors import BadAnswer, ConfigError


@pytest.mark.contract("D1.1")
@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://cloud.example", "not encrypted"),
        ("http://127.0.0.1.example", "not encrypted"),
        ("ftp://cloud.example", "no http or https"),
        ("https://", "no http or https"),
        ("https://cloud.example:0", "no http or https"),
        ("https://cloud.example:port", "no URL"),
        ("https://user@cloud.example", "user name"),
        ("https://:word@cloud.example", "user name"),
        ("https://cloud.example/a b", "no URL may hold"),
        ("https://cloud.example\\@other.example", "no URL may hold"),
    ],
)
def test_a_url_that_may_not_be_used_is_refused_by_the_name_of_its_setting(url: str, named: str):
    with pytest.raises(ConfigError, match=named) as caught:
        checked_url(url, "hosts.api")
    assert str(caught.value).startswith("hosts.api: ")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST."])
def test_plain_http_is_for_this_machine(host: str):
    assert is_loopback(host)
    assert checked_url(f"http://{host}:8080/x", "URL").port == 8080


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://A.example:443/y?z", True),
        ("http://127.0.0.1", "http://127.0.0.1:80", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "https://b.a.example", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool):
    assert same_origin(one, other) is same


def test_a_redirect_may_be_relative_and_never_leaves_https():
    assert next_url("https://a.example/b/c", "d?e") == "https://a.example/b/d?e"
    assert next_url("http://127.0.0.1:1/b", "https://a.example") == "https://a.example"
    for location in ("http://127.0.0.1/", "http://a.example/", "//[", "javascript:x"):
        with pytest.raises(BadAnswer):
            next_url("https://a.example/b", location)


@given(st.text(max_size=60))
def test_any_redirect_ends_at_https_or_is_refused(location: str):
    try:
        target = next_url("https://a.example/b", location)
    except BadAnswer:
        return
    assert target.startswith("https://")
