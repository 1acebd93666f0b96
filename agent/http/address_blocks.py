"""The blocks of IP addresses at which no server of the Internet is, after IANA's registries.

Sources: the IPv4 and the IPv6 Special-Purpose Address Registry (both as of 2025-10-09), the
Multicast registry (224.0.0.0/4), and the IPv6 Address Space registry (global unicast is 2000::/3).
Python's own `is_global` follows other editions of them from version to version, so it is not asked.

Of the blocks that the registries call globally reachable, those that lead to the nearest router or
to no host are here (192.0.0.9 and .10, 2001:1::1 to ::3, identifiers in 2001:20::/27), within
192.0.0.0/24 and 2001::/23; AS112 and AMT are not. Addresses that wrap one of IPv4 are judged by it.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_Address = IPv4Address | IPv6Address

_IPV4 = {
    IPv4Network(block): words
    for block, words in {
        "0.0.0.0/8": "an address of no single host",  # this network, RFC 791
        "10.0.0.0/8": "a private address",  # RFC 1918
        "100.64.0.0/10": "a private address, shared by the customers of a carrier",  # RFC 6598
        "127.0.0.0/8": "which is this machine",  # RFC 1122
        "169.254.0.0/16": "a link-local address",  # RFC 3927
        "172.16.0.0/12": "a private address",  # RFC 1918
        "192.0.0.0/24": "an address for protocols of the local network",  # RFC 6890
        "192.0.2.0/24": "an address for documentation",  # RFC 5737
        "192.88.99.0/24": "an address of 6to4 relays",  # RFC 7526
        "192.168.0.0/16": "a private address",  # RFC 1918
        "198.18.0.0/15": "an address for benchmarks",  # RFC 2544
        "198.51.100.0/24": "an address for documentation",  # RFC 5737
        "203.0.113.0/24": "an address for documentation",  # RFC 5737
        "224.0.0.0/4": "an address of no single host",  # multicast, RFC 5771
        "240.0.0.0/4": "an address of no single host",  # reserved and broadcast, RFC 1112
    }.items()
}
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_IPV6 = {
    IPv6Network(block): words
    for block, words in {
        # Within global unicast:
        "2001::/23": "an address for protocols, among them Teredo",  # RFC 2928, RFC 4380
        "2001:db8::/32": "an address for documentation",  # RFC 3849
        "3fff::/20": "an address for documentation",  # RFC 9637
        # Outside of it, where the words can say more than that:
        "::/128": "an address of no single host",  # RFC 4291
        "::1/128": "which is this machine",  # RFC 4291
        "64:ff9b:1::/48": "an address of a local translator",  # RFC 8215
        "fc00::/7": "a private address",  # RFC 4193
        "fe80::/10": "a link-local address",  # RFC 4291
        "fec0::/10": "a private address of the deprecated kind",  # RFC 3879
        "ff00::/8": "an address of no single host",  # multicast, RFC 4291
    }.items()
}
_MAPPED = IPv6Network("::ffff:0:0/96")  # RFC 4291
_TRANSLATED = IPv6Network("64:ff9b::/96")  # RFC 6052
_6TO4 = IPv6Network("2002::/16")  # RFC 3056


def why_not_public(text: str) -> str:
    """Return why no server of the Internet is at an IP address, "" where one may be."""
    try:
        address = ip_address(text)
    except ValueError:
        return "which is no address"
    address = _end_of(address)
    if isinstance(address, IPv4Address):
        return next((words for block, words in _IPV4.items() if address in block), "")
    if address.scope_id is not None:
        return "an address of one link"
    for block, words in _IPV6.items():
        if address in block:
            return words
    return "" if address in _GLOBAL_UNICAST else "no address of the public Internet"


def _end_of(address: _Address) -> _Address:
    """Return the address that packets to `address` end at: that of IPv4 where it wraps one."""
    if isinstance(address, IPv6Address):
        number = int(address)
        if address in _MAPPED or address in _TRANSLATED:
            return IPv4Address(number & 0xFFFFFFFF)
        if address in _6TO4:
            return IPv4Address(number >> 80 & 0xFFFFFFFF)
    return address
