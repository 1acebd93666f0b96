"""The companion scans the access points in range of the kit."""

from __future__ import annotations

import re

from at.virtual.families.wifi import VirtualCompanion
from tests.support.modem.virtual_modems import switched_on


def test_the_companion_hears_what_is_around_the_kit() -> None:
    kit = switched_on()
    companion = VirtualCompanion(kit.kit)
    companion.receive(b"ATE0\r\nAT+CWLAP\r\nAT+CWMODE=1\r\nAT+CWLAP\r\n")
    text = companion.out.decode()
    assert text.startswith("ATE0\r\n\r\nOK\r\n\r\nERROR\r\n\r\nOK\r\n")
    heard = re.findall(r'\+CWLAP:\(3,"([^"]*)",(-\d+),"([0-9a-f:]{17})",(\d+),', text)
    assert {"phone", "cafe_nomap", "net-000"} <= {ssid for ssid, *_ in heard}
    levels = [int(level) for _, level, *_ in heard]
    assert levels == sorted(levels, reverse=True)


def scanned(companion: VirtualCompanion, line: str) -> list[str]:
    companion.out.clear()
    companion.receive(line.encode() + b"\r\n")
    return [text for text in companion.out.decode().split("\r\n") if text]


def ready() -> VirtualCompanion:
    companion = VirtualCompanion(switched_on().kit)
    scanned(companion, "ATE0")
    scanned(companion, "AT+CWMODE=1")
    return companion


def test_a_scan_is_filtered_by_name_address_and_channel() -> None:
    companion = ready()
    every = scanned(companion, "AT+CWLAP")[:-1]
    ssid, bssid, channel = every[0].split(",")[1], every[0].split(",")[3], every[0].split(",")[4]
    assert scanned(companion, f"AT+CWLAP={ssid}") == [every[0], "OK"]
    assert scanned(companion, f"AT+CWLAP=,{bssid.upper()}") == [every[0], "OK"]
    of_channel = scanned(companion, f"AT+CWLAP=,,{channel}")[:-1]
    assert of_channel == [line for line in every if line.split(",")[4] == channel]


def test_the_mask_chooses_the_fields() -> None:
    companion = ready()
    scanned(companion, "AT+CWLAPOPT=1,6")
    first = scanned(companion, "AT+CWLAP")[0]
    assert re.fullmatch(r'\+CWLAP:\("[^"]*",-\d+\)', first)


def test_what_the_companion_does_not_have_is_an_error() -> None:
    companion = ready()
    assert scanned(companion, "AT+CFUN?") == ["ERROR"]
    assert scanned(companion, "AT+CWMODE=4") == ["ERROR"]
    assert scanned(companion, "A" * 1000) == ["ERROR"]
    assert scanned(companion, "AT") == ["OK"]
