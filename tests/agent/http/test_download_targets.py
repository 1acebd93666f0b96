from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota.allowed_hosts import AllowedHosts, checked_target
from agent.http.download_targets import (
    SourceRefused,
    address_refusal,
    checked_addresses,
    plain_target,
)
from tests.support.fota.hostile_urls import HOSTILE_ADDRESSES

PUBLIC = AllowedHosts(hosts=("firmware.example.com", "bundles.example.com:8443"))


@pytest.mark.parametrize("address", HOSTILE_ADDRESSES)
def test_an_address_inside_is_refused_whatever_name_led_to_it(address: str) -> None:
    target = checked_target("https://firmware.example.com/a", PUBLIC)
    with pytest.raises(SourceRefused):
        checked_addresses(target, ["93.184.215.14", address], stand_in=False)
    with pytest.raises(SourceRefused):
        checked_addresses(target, [address], stand_in=False)


def test_a_public_address_is_taken() -> None:
    target = checked_target("https://firmware.example.com/a", PUBLIC)
    found = ["2600::1", "2600::2", "93.184.215.14", "93.184.215.15"]
    tried = checked_addresses(target, found, stand_in=False)
    assert tried == ["2600::1", "93.184.215.14"], "no time for all of a large host"
    with pytest.raises(SourceRefused):
        checked_addresses(target, [], stand_in=False)
    with pytest.raises(SourceRefused):
        checked_addresses(target, ["93.184.215.14"], stand_in=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://h/ a?signature={}",
        "https://[h?signature={}",
        "https://h:0/a?signature={}",
        "ftp://h/a?signature={}",
        "https://h/a/../b?signature={}",
        "https://h/a?signature={}#b",
        "https://h:65536/a?signature={}",
        "https://127.1/a?signature={}",
        "https://h/%252e%252e/a?signature={}",
    ],
)
def test_a_refusal_does_not_show_what_a_url_was_signed_with(url: str) -> None:
    with pytest.raises(SourceRefused) as told:
        plain_target(url.format("test-only"), stand_in=False)
    assert "test-only" not in str(told.value) + told.value.hint


def test_an_address_of_ipv6_is_asked_in_brackets_and_shown_without_its_query() -> None:
    target = plain_target("https://[2600::1]:8443/a?signature=test-only", stand_in=False)
    assert target.url == "https://[2600::1]:8443/a?signature=test-only"
    assert target.shown == "https://[2600::1]:8443/a"


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_the_same_in_every_ipv6_wrapping(address: object) -> None:
    number = int(address)  # type: ignore[call-overload]
    plain = address_refusal(str(address), stand_in=False)
    mapped = address_refusal(f"::ffff:{address}", stand_in=False)
    nat64 = address_refusal(f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}", stand_in=False)
    sixtofour = address_refusal(f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1", stand_in=False)
    assert plain == mapped == nat64 == sixtofour
