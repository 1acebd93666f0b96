"""Which addresses are public: examples and edges of IANA's registries, in every wrapping."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.http.address_blocks import why_not_public

# Written from the registries of 2025-10-09: what is not globally reachable, and what is reserved.
NOT_PUBLIC = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.170/32", "192.0.0.171/32",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
    "::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32",
    "2001:2::/48", "2001:10::/28", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7",
    "fe80::/10", "fec0::/10", "ff00::/8", "::/8", "200::/7", "400::/6", "800::/5", "1000::/4",
    "4000::/3", "6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/4", "f000::/5", "f800::/6",
    "fe00::/9",
]  # fmt: skip
# Beside the edges of blocks that are not: the first address before, the first behind.
PUBLIC = [
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
    "191.255.255.255", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255",
    "203.0.114.0", "223.255.255.255", "192.31.196.1", "192.52.193.1", "192.175.48.1",
    "2000::", "2001:200::", "2001:db7:ffff::1", "2001:db9::", "2003::1", "2600::1",
    "2620:4f:8000::1", "3ffe:ffff::1", "3fff:1000::", "64:ff9b::808:808", "2002:808:808::1",
    "::ffff:8.8.8.8",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_global_unicast_address_is_public(address: str) -> None:
    assert why_not_public(address) == ""


@pytest.mark.parametrize("block", NOT_PUBLIC)
def test_the_edges_of_a_special_block_are_not_public(block: str) -> None:
    network = ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        wraps_public_ipv4 = str(address).startswith(("::ffff:", "64:ff9b::"))
        assert why_not_public(str(address)) or wraps_public_ipv4, address


@given(st.sampled_from(NOT_PUBLIC), st.integers(0, 2**128))
def test_no_address_of_a_special_block_is_public(block: str, place: int) -> None:
    network = ip_network(block)
    address = network[place % network.num_addresses]
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped
    assert why_not_public(str(address)) or mapped or address in IPv6Network("64:ff9b::/96")


@given(st.ip_addresses(v=6))
def test_a_public_ipv6_address_is_global_unicast_or_wraps_a_public_ipv4_one(
    address: IPv6Address,
) -> None:
    if not why_not_public(str(address)) and not address.ipv4_mapped:
        assert address in IPv6Network("2000::/3") or address in IPv6Network("64:ff9b::/96")


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_judged_as_the_one_in_it(address: IPv4Address) -> None:
    number, plain = int(address), why_not_public(str(address))
    for wrapped in (
        0xFFFF << 32 | number,
        0x64_FF9B << 96 | number,
        0x2002 << 112 | number << 80 | 1,
    ):
        assert why_not_public(str(IPv6Address(wrapped))) == plain


@given(st.ip_addresses(v=4))
def test_no_other_way_to_wrap_an_address_is_public(address: IPv4Address) -> None:
    number = int(address)
    teredo = 0x2001 << 112 | number << 64 | (number ^ 0xFFFFFFFF)
    for wrapped in (number, 0xFFFF << 48 | number, 0x64_FF9B_0001 << 80 | number, teredo):
        assert why_not_public(str(IPv6Address(wrapped)))


@pytest.mark.parametrize("text", ["", "1.2.3", "010.0.0.1", "2600::1%eth0", "[::1]", "example.com"])
def test_what_is_no_plain_address_is_not_public(text: str) -> None:
    assert why_not_public(text)
