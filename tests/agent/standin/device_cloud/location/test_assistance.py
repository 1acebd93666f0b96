"""A-GNSS and P-GPS at the stand-in: files of the documented formats (clause D8.2)."""

from __future__ import annotations

import math
import struct
import time

import pytest

from agent.standin.device_cloud.location.assistance import _location
from agent.standin.device_cloud.location.radio_world import Fix
from tests.support.cloud.standin import StandIn, running_standin
from tests.support.location.location_scans import url

SIZES = {1: 14, 2: 62, 3: 31, 4: 8, 5: 8, 6: 4, 7: 16, 8: 15, 9: 4, 11: 31, 12: 62, 13: 4}
SIZES |= {14: 24, 15: 61, 16: 8, 17: 8}


def blocks(data: bytes) -> dict[int, tuple[int, bytes]]:
    assert data[0] == 1
    at, found = 1, {}
    while at < len(data):
        kind, count = struct.unpack_from("<BH", data, at)
        size = SIZES[kind] * count
        found[kind] = (count, data[at + 3 : at + 3 + size])
        at += 3 + size
    assert at == len(data)
    return found


@pytest.mark.contract("D8.2")
async def test_agnss_is_a_file_of_the_documented_format_in_any_pieces(standin: StandIn) -> None:
    header = standin.bearer("organization_auth_token")
    cell = {"mcc": 1, "mnc": 1, "tac": 2305, "eci": 33703681}
    asked = {"types": [*range(1, 10), *range(11, 18)], **cell}
    whole = await standin.client.post(url("agnss"), headers=header, json=asked)
    assert whole.status_code == 200
    assert whole.headers["content-type"] == "application/octet-stream"
    found = blocks(whole.content)
    assert set(found) == set(asked["types"])
    assert found[2][0] == found[3][0] == found[6][0] == 32
    lat, lon = struct.unpack_from("<ii", found[8][1])
    assert abs(lat * 90 / 2**23 - 63.39) < 0.1
    assert abs(lon * 360 / 2**24 - 10.34) < 0.1
    day = struct.unpack_from("<H", found[7][1])[0]
    assert day == int((time.time() + 18 - 315964800) // 86400)
    pieces = b""
    while len(pieces) < len(whole.content):
        # Seconds pass between two pieces, and the pieces fit all the same.
        standin.clock.advance(61)
        part = await standin.client.post(
            url("agnss"),
            headers=header | {"Range": f"bytes={len(pieces)}-{len(pieces) + 1699}"},
            json=asked,
        )
        assert part.status_code == 206
        assert part.headers["content-range"].endswith(f"/{len(whole.content)}")
        pieces += part.content
    assert set(blocks(pieces)) == set(asked["types"])
    # The first piece began a file of its own: no other piece of it is from another moment.
    again = await standin.client.post(
        url("agnss"), headers=header | {"Range": "bytes=1-"}, json=asked
    )
    assert pieces[1:] == again.content
    beyond = await standin.client.post(
        url("agnss"), headers=header | {"Range": "bytes=99999-"}, json=asked
    )
    assert (beyond.status_code, beyond.json()["code"]) == (416, 41600)
    query = {"types": asked["types"], **cell}
    size = await standin.client.head(url("agnss"), headers=header, params=query)
    assert int(size.headers["content-length"]) == len(whole.content)
    seen = await standin.client.post(
        url("agnss"), headers=header, json={"types": [2], "filtered": True, **cell}
    )
    assert 4 <= blocks(seen.content)[2][0] <= 16


@pytest.mark.contract("D8.2", "D8.3")
async def test_the_older_query_gets_what_a_post_gets_and_is_legacy_alone(standin: StandIn) -> None:
    header = standin.bearer("service_token")
    cell = {"mcc": 1, "mnc": 1, "tac": 2305, "eci": 33703681}
    asked = {"requestType": "custom", "customTypes": "9,2"}
    older = await standin.client.get("/v1/location/agnss", headers=header, params=asked)
    assert (older.status_code, older.headers["content-type"]) == (200, "application/octet-stream")
    newer = await standin.client.post("/v1/location/agnss", headers=header, json={"types": [2, 9]})
    assert older.content == newer.content
    part = await standin.client.get(
        "/v1/location/agnss", headers=header | {"Range": "bytes=0-9"}, params=asked
    )
    assert (part.status_code, part.content) == (206, older.content[:10])
    kinds = {"rtAssistance": {1, 2, 3, 4, 6, 7, 8, 9}, "rtLocation": {8}}
    for kind, types in kinds.items():
        named = await standin.client.get(
            "/v1/location/agnss", headers=header, params={"requestType": kind, **cell}
        )
        assert set(blocks(named.content)) == types
        size = await standin.client.head(
            "/v1/location/agnss", headers=header, params={"requestType": kind, **cell}
        )
        assert int(size.headers["content-length"]) == len(named.content)
    size = await standin.client.head("/v1/location/agnss", headers=header, params=asked)
    assert int(size.headers["content-length"]) == len(older.content)
    bare = await standin.client.get("/v1/location/agnss", headers=header)
    assert set(blocks(bare.content)) == kinds["rtAssistance"] - {8}
    size = await standin.client.head("/v1/location/agnss", headers=header, params={"types": [2]})
    assert (size.status_code, size.content) == (200, b"")
    assert int(size.headers["content-length"]) == len(blocks(newer.content)[2][1]) + 4
    current = await standin.client.get(
        url("agnss"), headers=standin.bearer("organization_auth_token"), params=asked
    )
    assert current.status_code == 405


@pytest.mark.parametrize(
    "wrong",
    [
        {"requestType": "custom"},
        {"requestType": "custom", "customTypes": "18"},
        {"requestType": "custom", "customTypes": "8"},
        {"requestType": "rtLocation"},
        {"requestType": "everything"},
        {"eci": 33703681},
        {"requestType": "rtLocation", "mcc": 1, "mnc": 1, "eci": 33703681},
    ],
    ids=str,
)
async def test_an_older_query_that_makes_no_sense_is_refused(
    standin: StandIn, wrong: dict[str, str | int]
) -> None:
    for method in ("GET", "HEAD"):
        refused = await standin.client.request(
            method, "/v1/location/agnss", headers=standin.bearer("service_token"), params=wrong
        )
        assert refused.status_code == 422, (method, refused.text)


@pytest.mark.contract("D8.2", "D8.3")
@pytest.mark.parametrize(("lat", "steps"), [(90, 2**23 - 1), (-90, -(2**23)), (45, 2**22)])
def test_a_latitude_fits_its_24_bits_at_the_poles_too(lat: float, steps: int) -> None:
    assert struct.unpack_from("<i", _location(Fix(lat, 0, 10, "SCELL"))) == (steps,)


@pytest.mark.contract("D8.2")
async def test_the_times_of_the_satellites_come_before_the_clock(standin: StandIn) -> None:
    header = standin.bearer("organization_auth_token")
    answer = await standin.client.post(url("agnss"), headers=header, json={"types": [7, 6, 1]})
    assert list(blocks(answer.content)) == [1, 6, 7]


EPHEMERIS = struct.Struct("<BBHHhbibBBHihiiIhIiihhhhhh")


def elevation_deg(fields: tuple[int, ...], week_s: float, lat: float, lon: float) -> float:
    """Return how high a satellite stands, as a receiver computes it: IS-GPS-200, 20.3.3.4.3."""
    earth_rate, gm, half_turn = 7.2921151467e-5, 3.986005e14, math.pi
    toe, perigee, delta_n, mean, omega_dot, e = (
        fields[10] * 16, fields[11] * 2**-31 * half_turn, fields[12] * 2**-43 * half_turn,
        fields[13] * 2**-31 * half_turn, fields[14] * 2**-43 * half_turn, fields[15] * 2**-33,
    )  # fmt: skip
    root, inclination, omega0 = fields[17] * 2**-19, fields[18] * 2**-31, fields[19] * 2**-31
    since = (week_s - toe + 302400) % 604800 - 302400
    mean += (math.sqrt(gm) / root**3 + delta_n) * since
    eccentric = mean
    for _ in range(10):
        eccentric = mean + e * math.sin(eccentric)
    true = math.atan2(math.sqrt(1 - e * e) * math.sin(eccentric), math.cos(eccentric) - e)
    radius, along = root**2 * (1 - e * math.cos(eccentric)), true + perigee
    node = omega0 * half_turn + (omega_dot - earth_rate) * since - earth_rate * toe
    x, y = radius * math.cos(along), radius * math.sin(along)
    tilt = inclination * half_turn
    satellite = (
        x * math.cos(node) - y * math.cos(tilt) * math.sin(node),
        x * math.sin(node) + y * math.cos(tilt) * math.cos(node),
        y * math.sin(tilt),
    )
    phi, lam = math.radians(lat), math.radians(lon)
    up = (math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi))
    ray = [s - 6.371e6 * u for s, u in zip(satellite, up, strict=True)]
    return math.degrees(
        math.asin(sum(r * u for r, u in zip(ray, up, strict=True)) / math.hypot(*ray))
    )


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize("hours", range(0, 200, 23))
async def test_a_receiver_finds_the_satellites_where_the_filter_saw_them(
    standin: StandIn, hours: int
) -> None:
    standin.clock.freeze()
    standin.clock.advance(hours * 3600)
    header = standin.bearer("organization_auth_token")
    cell = {"mcc": 1, "mnc": 1, "tac": 2305, "eci": 33703681}

    async def heights(**more: object) -> dict[int, float]:
        asked = {"types": [2], **cell, **more}
        answer = await standin.client.post(url("agnss"), headers=header, json=asked)
        count, content = blocks(answer.content)[2]
        assert len(content) == count * EPHEMERIS.size
        week_s = (standin.clock.time() + 18 - 315964800) % 604800
        found = list(EPHEMERIS.iter_unpack(content))
        return {one[0]: elevation_deg(one, week_s, 63.39, 10.34) for one in found}

    every, seen = await heights(), await heights(filtered=True, mask=10)
    assert len(every) == 32
    assert all(height > 9.9 for height in seen.values())
    missed = sorted((h for s, h in every.items() if s not in seen), reverse=True)
    assert len(seen) == 16 or missed[0] < 10.1


@pytest.mark.contract("D8.2")
async def test_pgps_names_a_file_of_the_documented_size(standin: StandIn) -> None:
    header = standin.bearer("organization_auth_token")
    answer = await standin.client.get(
        url("pgps"), headers=header, params={"startGpsDay": 15160, "startGpsTimeOfDaySeconds": 0}
    )
    link = answer.json()
    assert link["path"] == "public/15160-0_15166-72000.bin"
    file = await standin.client.get(f"{link['host']}/{link['path']}")
    assert len(file.content) == 84268
    assert struct.unpack_from("<BBHHHHhi", file.content) == (1, 10, 1, 42, 2006, 240, 15160, 0)
    for query in (
        {"predictionCount": "0"},
        {"predictionIntervalMinutes": "130"},
        {"startGpsDay": "65000"},
        {"predictionCount": "x"},
        {"predictionCount[more]": "1"},
    ):
        answer = await standin.client.get(url("pgps"), headers=header, params=query)
        assert answer.status_code == 422, query


async def test_the_data_is_found_in_a_split_stand_in_as_well(tmp_path) -> None:
    async with running_standin(tmp_path, split=True) as standin:
        link = (
            await standin.client.get(url("pgps"), headers=standin.bearer("organization_auth_token"))
        ).json()
        assert link["host"] == standin.urls["downloads"]
        assert (await standin.client.get(f"{link['host']}/{link['path']}")).status_code == 200
        assert (await standin.client.get(f"/{link['path']}")).status_code == 404
