"""Which access points are sent, and in which form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.location.access_points import (
    AccessPoint,
    Exclusion,
    access_points_to_json,
    channel_of,
    normalize_mac,
    rssi_of_percentage,
    select_usable,
)


@pytest.mark.contract("D8.1")
@pytest.mark.parametrize(
    "text", ["40:01:7A:C7:96:90", "40-01-7a-c7-96-90", "40017ac79690", "40:01:7a:c7:96:90"]
)
def test_a_mac_is_sent_with_colons_however_it_was_written(text: str) -> None:
    assert normalize_mac(text) == "40:01:7a:c7:96:90"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "40:01:7a:c7:96",
        "40:01-7a:c7:96:90",
        "40:01:7a:c7:96:9g",
        "40:01:7a:c7:96:90\n",
        "\u06640017ac79690",
    ],
)
def test_what_is_no_mac_is_not_made_one(text: str) -> None:
    assert normalize_mac(text) is None


@pytest.mark.contract("D8.1")
@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (AccessPoint("41:01:7a:c7:96:90", -60), Exclusion.MULTICAST),
        (AccessPoint("ff:ff:ff:ff:ff:ff", -60), Exclusion.MULTICAST),
        (AccessPoint("42:01:7a:c7:96:90", -60), Exclusion.LOCAL),
        (AccessPoint("00:00:00:00:00:00", -60), Exclusion.EMPTY),
        (AccessPoint("40:01:7a:c7:96:90", -60, ssid=b"cafe_nomap"), Exclusion.NOMAP),
        (AccessPoint("40:01:7a:c7:96:90", 1), Exclusion.LEVEL),
        (AccessPoint("40:01:7a:c7:96:90", 0), Exclusion.LEVEL),
        (AccessPoint("40:01:7a:c7:96:90", -129), Exclusion.LEVEL),
        (AccessPoint("here", -60), Exclusion.NOT_A_MAC),
    ],
)
def test_what_may_not_be_sent_is_left_out_with_its_reason(
    point: AccessPoint, reason: Exclusion
) -> None:
    assert select_usable([point]).usable == ()
    assert select_usable([point]).left_out == ((point, reason),)


@pytest.mark.parametrize("level", [-1, -128])
def test_the_strongest_and_the_weakest_level_are_sent(level: int) -> None:
    point = AccessPoint("40:01:7a:c7:96:90", level, ssid=b"a_nomap_of_ours")
    assert select_usable([point]).usable == (point,)


@pytest.mark.parametrize("order", [1, -1])
def test_a_hidden_name_that_asks_to_be_left_out_counts_for_the_beacons_without_it(
    order: int,
) -> None:
    beacon = AccessPoint("40:01:7a:c7:96:90", -60)
    answer = AccessPoint("40:01:7A:C7:96:90", -62, ssid=b"cafe_nomap")
    selection = select_usable([beacon, answer][::order])
    assert selection.usable == ()
    assert [reason for _, reason in selection.left_out] == [Exclusion.NOMAP] * 2


def test_of_two_sightings_the_newer_is_kept() -> None:
    old = AccessPoint("40:01:7a:c7:96:90", -60, age_s=9.0)
    new = AccessPoint("40-01-7A-C7-96-90", -70, age_s=1.0)
    for heard in ([old, new], [new, old]):
        chosen = select_usable(heard)
        assert (chosen.usable, chosen.left_out) == ((new,), ((old, Exclusion.DOUBLE),))


@given(
    st.lists(
        st.builds(
            AccessPoint, st.from_regex(r"[0-9a-f]{12}", fullmatch=True), st.integers(-140, 10)
        )
    )
)
def test_every_point_is_either_sent_once_or_left_out(points: list[AccessPoint]) -> None:
    chosen = select_usable(points)
    assert len(chosen.usable) + len(chosen.left_out) == len(points)
    macs = [normalize_mac(point.bssid) for point in chosen.usable]
    assert len(set(macs)) == len(macs)
    levels = [point.rssi_dbm for point in chosen.usable]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.contract("D8.1")
def test_what_is_not_known_is_left_out_of_the_json() -> None:
    known = [{"macAddress": "40:01:7a:c7:96:90", "signalStrength": -61}]
    named = AccessPoint("40:01:7A:C7:96:90", -61, ssid=b"home")
    assert access_points_to_json([named]) == known
    assert access_points_to_json([replace(named, ssid=b"")], send_ssid=True) == known


@pytest.mark.contract("D8.1")
def test_a_name_is_sent_only_when_asked_and_no_channel_where_the_frequency_is_known() -> None:
    point = AccessPoint(
        "40:01:7a:c7:96:90", -61, b"h\xff", channel=1, frequency_mhz=5955, age_s=1.5
    )
    assert access_points_to_json([point], send_ssid=True) == [
        {"macAddress": "40:01:7a:c7:96:90", "signalStrength": -61, "ssid": "h\ufffd", "age": 1500,
         "frequency": 5955}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("frequency", "channel"),
    [
        (2412, 1),
        (2437, 6),
        (2472, 13),
        (2484, 14),
        (5160, 32),
        (5885, 177),
        (5955, 1),
        (7115, 233),
        (900, None),
    ],
)
def test_a_frequency_has_its_channel(frequency: int, channel: int | None) -> None:
    assert channel_of(frequency) == channel


@pytest.mark.parametrize("dbm", range(-100, -39))
def test_a_percentage_becomes_the_dbm_that_networkmanager_made_it_of(dbm: int) -> None:
    assert rssi_of_percentage(100 - int(100 * abs(dbm + 40) / 60)) == dbm


@pytest.mark.parametrize(("percent", "dbm"), [(-1, -100), (250, -40)])
def test_a_percentage_beyond_its_ends_is_that_end(percent: int, dbm: int) -> None:
    assert rssi_of_percentage(percent) == dbm
