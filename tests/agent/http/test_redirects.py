from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadAnswer
from agent.http.transport import next_url, same_origin


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
