from __future__ import annotations

import pytest

from agent.config.urls import (
    check_base_url,
    checked_url,
    host_and_port,
    is_loopback,
    is_loopback_url,
)
from agent.errors import ConfigError, UsageError


@pytest.mark.contract("D1.1")
@pytest.mark.parametrize(
    ("url", "named", "hint"),
    [
        ("http://cloud.example", "not encrypted", "did you mean 'https://cloud.example'?"),
        ("http://127.0.0.1.example", "not encrypted", "'https://127.0.0.1.example'?"),
        ("ftp://cloud.example", "no http or https", "write it as https://"),
        ("https://", "no http or https", "write it as https://"),
        ("https://cloud.example:0", "no http or https", "write it as https://"),
        ("https://cloud.example:port", "no URL", ""),
        ("https://user@cloud.example", "user name", "in the secrets file"),
        ("https://:word@cloud.example", "user name", "in the secrets file"),
        ("https://cloud.example/a b", "no URL may hold", ""),
        ("https://cloud.example\\@other.example", "no URL may hold", ""),
    ],
)
def test_a_url_that_may_not_be_used_is_refused_by_the_name_of_its_setting(
    url: str, named: str, hint: str
):
    with pytest.raises(ConfigError, match=named) as caught:
        checked_url(url, "hosts.api")
    assert str(caught.value).startswith("hosts.api: ")
    assert hint in caught.value.hint
    assert bool(caught.value.hint) is bool(hint)


@pytest.mark.contract("D1.1", "O1.4")
@pytest.mark.parametrize(
    ("url", "named", "hint"),
    [
        ("https://cloud.example/v1/", "ends with /v1", "did you mean 'https://cloud.example'?"),
        ("https://gate.example/x/api/v0", "ends with /api/v0", "'https://gate.example/x'?"),
        ("https://cloud.example?key=1", "has a query", "https://api.example.com"),
        ("https://cloud.example/#top", "a fragment", "https://api.example.com"),
        ("http://cloud.example/v1", "not encrypted", "https://cloud.example/v1"),
    ],
)
def test_what_a_path_cannot_be_added_to_is_no_base_url(url: str, named: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"hosts.api: '.*{named}") as caught:
        check_base_url(url, "hosts.api")
    assert hint in caught.value.hint


@pytest.mark.parametrize("path", ["", "/", "/services", "/v1/of/ours/", "/v10"])
def test_a_base_url_may_have_a_path_of_its_own(path: str) -> None:
    check_base_url(f"https://gate.example{path}", "hosts.api")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "[::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST."]
)
def test_plain_http_is_for_this_machine(host: str):
    assert is_loopback(host)
    assert checked_url(f"http://{host}:8080/x", "URL").port == 8080


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        (":65535", ("127.0.0.1", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("::1:80", ("::1", 80)),
    ],
)
def test_an_address_to_listen_on_is_read(text: str, address: tuple[str, int]) -> None:
    assert host_and_port(text, "--listen") == address


@pytest.mark.parametrize("port", ["", "65536", "-1", "+1", " 1", "1_0", "\u0661", "9" * 5000])
def test_another_port_than_one_of_65535_is_refused(port: str) -> None:
    with pytest.raises(UsageError, match=r"--listen .*not HOST:PORT"):
        host_and_port(f"127.0.0.1:{port}", "--listen")


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:80", True),
        ("http://localhost:8", True),
        ("http://[::1]", True),
        ("https://api.example.com", False),
        ("", False),
        ("http://[", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_the_stand_in_is_known_by_its_url(url: str, loopback: bool) -> None:
    assert is_loopback_url(url) is loopback
