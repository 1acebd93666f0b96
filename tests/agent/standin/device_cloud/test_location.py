"""Location at the stand-in: both forms of the path, who may, where one is, assistance files."""

from __future__ import annotations

import math
import struct
import time

import pytest
from standin import StandIn, running_standin

from at.virtual.radio_world import Coordinates, load_world

CURRENT = "/v1/organizations/{}/projects/{}/location/{}"
LEGACY = "/v1/location/{}"


def url(suffix: str, organization: str = "acme", project: str = "kits") -> str:
    return CURRENT.format(organization, project, suffix)


def scan_at(where: Coordinates) -> dict:
    heard = load_world().access_points(where)
    return {
        "accessPoints": [
            {"macAddress": found.access_point.bssid, "signalStrength": found.rssi_dbm}
            for found in heard
        ]
    }


def cells_at(where: Coordinates) -> dict:
    serving, *others = load_world().cells(where)
    cell = serving.cell
    return {
        "lte": [
            {
                "mcc": int(cell.plmn[:3]),
                "mnc": cell.plmn[3:],
                "eci": cell.eci,
                "tac": cell.tac,
                "rsrp": serving.rsrp_dbm,
                "adv": 65535,
                "nmr": [
                    {"earfcn": n.cell.earfcn, "pci": n.cell.pci, "rsrp": n.rsrp_dbm}
                    for n in others[:5]
                ],
            }
        ]
    }


PLACES = [load_world().position(60.0 * step) for step in range(11)]


@pytest.mark.contract("D8.1", "D8.2")
@pytest.mark.parametrize("what", ["wifi", "cell", "ground-fix"])
async def test_a_scan_comes_back_as_the_place_where_it_was_taken(
    standin: StandIn, what: str
) -> None:
    for place in PLACES:
        scan = {
            "wifi": scan_at(place),
            "cell": cells_at(place),
            "ground-fix": {**cells_at(place), "wifi": scan_at(place)["accessPoints"]},
        }[what]
        answer = await standin.client.post(
            url(what), headers=standin.bearer("organization_auth_token"), json=scan
        )
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert place.distance_m(Coordinates(found["lat"], found["lon"])) <= found["uncertainty"]
        assert found["uncertainty"] < 500
        assert found["fulfilledWith"] == {"cell": "MCELL"}.get(what, "WIFI")


@pytest.mark.contract("D8.4", "D10.7", "O4.6")
async def test_each_wrong_way_in_has_its_status(standin: StandIn) -> None:
    scan = scan_at(PLACES[0])
    good = standin.credentials["organization_auth_token"]
    other = next(
        row["token"]
        for row in standin.cloud.table("organization_tokens").values()
        if row["organization"] != "acme"
    )
    cases = [
        (url("wifi"), f"Bearer {good}", 200),
        (url("wifi"), f"Basic {good}", 401),
        (url("wifi"), good, 401),
        (url("wifi"), f"Bearer {good[:-1]}", 401),
        (url("wifi"), f"Bearer {other}", 401),
        (url("wifi"), f"Bearer {standin.credentials['api_key']}", 401),
        (url("wifi"), f"Bearer {standin.credentials['service_token']}", 401),
        (url("wifi"), "", 401),
        (url("wifi", "nobody"), f"Bearer {good}", 401),
        (url("wifi", "acme", "nothing"), f"Bearer {good}", 401),
        (url("wifi", "umbrella"), f"Bearer {good}", 401),
        (url("wifi", "acme", "no-location"), f"Bearer {good}", 403),
        (url("wifis"), f"Bearer {good}", 404),
        ("/v1/organizations/acme/location/wifi", f"Bearer {good}", 404),
        ("/v1/organizations//projects/kits/location/wifi", f"Bearer {good}", 404),
        ("/v1/organizations/acme/projects//location/wifi", f"Bearer {good}", 404),
    ]
    for path, header, status in cases:
        headers = {"Authorization": header} if header else {}
        answer = await standin.client.post(path, headers=headers, json=scan)
        assert answer.status_code == status, (path, header[:12], answer.text)


@pytest.mark.contract("D8.3", "D8.5", "D8.4")
async def test_service_tokens_and_organization_tokens_work_side_by_side_until_migrated(
    standin: StandIn,
) -> None:
    scan = scan_at(PLACES[0])
    legacy = LEGACY.format("wifi")

    async def statuses() -> tuple[int, int]:
        old = await standin.client.post(legacy, headers=standin.bearer("service_token"), json=scan)
        new = await standin.client.post(
            url("wifi"), headers=standin.bearer("organization_auth_token"), json=scan
        )
        return old.status_code, new.status_code

    assert await statuses() == (200, 200)
    wrong = await standin.client.post(
        legacy, headers=standin.bearer("organization_auth_token"), json=scan
    )
    assert wrong.status_code == 401
    standin.cloud.settings.legacy_location = False
    assert await statuses() == (404, 200)


@pytest.mark.contract("D8.3")
@pytest.mark.parametrize("suffix", ["wifi", "cell", "ground-fix", "agnss", "pgps"])
async def test_every_legacy_path_is_there(standin: StandIn, suffix: str) -> None:
    place = PLACES[3]
    body = {"wifi": scan_at(place), "agnss": {}}.get(suffix, cells_at(place))
    method = "GET" if suffix == "pgps" else "POST"
    answer = await standin.client.request(
        method,
        LEGACY.format(suffix),
        headers=standin.bearer("service_token"),
        json=None if suffix == "pgps" else body,
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.contract("D10.6")
async def test_the_trial_of_an_evaluation_token_ends_after_thirty_days(standin: StandIn) -> None:
    legacy = LEGACY.format("wifi")
    scan = scan_at(PLACES[0])
    header = standin.bearer("evaluation_token")
    answer = await standin.client.post(legacy, headers=header, json=scan)
    assert (answer.status_code, answer.json()["fulfilledWith"]) == (200, "WIFI_EVAL")
    standin.clock.advance(30 * 86400 - 60)
    assert (await standin.client.post(legacy, headers=header, json=scan)).status_code == 200
    standin.clock.advance(120)
    answer = await standin.client.post(legacy, headers=header, json=scan)
    assert answer.status_code == 401
    assert "service key" in answer.json()["message"]
    elsewhere = await standin.client.get("/v1/devices", headers=header)
    assert elsewhere.status_code == 401


async def test_the_switches_of_a_location_call(standin: StandIn) -> None:
    header = standin.bearer("organization_auth_token")
    scan = scan_at(PLACES[0])

    async def ask(suffix: str, body: dict, **query: str):
        return await standin.client.post(url(suffix), headers=header, json=body, params=query)

    plain = (await ask("wifi", scan)).json()
    sure = (await ask("wifi", scan, hiConf="true")).json()
    assert sure["uncertainty"] > plain["uncertainty"]
    silent = await ask("wifi", scan, doReply="false")
    assert (silent.status_code, silent.content) == (200, b"")
    unknown = cells_at(PLACES[0])
    unknown["lte"][0]["eci"] = 268435455
    rough = await ask("cell", unknown)
    assert rough.status_code == 200
    assert rough.json()["uncertainty"] > 3000
    assert (await ask("cell", unknown, fallback="false")).status_code == 404
    one = {"accessPoints": scan["accessPoints"][:1]}
    assert (await ask("wifi", one)).status_code == 422
    nowhere = {"accessPoints": [{"macAddress": f"00:11:22:33:44:0{n}"} for n in range(3)]}
    assert (await ask("wifi", nowhere)).status_code == 404
    both = {**cells_at(PLACES[0]), "wifi": scan}
    assert "alt" in (await ask("ground-fix", both, alt="true")).json()


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"accessPoints": 3},
        {"accessPoints": [{}, {}]},
        {"accessPoints": [{"macAddress": "zz"}] * 2},
        {"accessPoints": [{"macAddress": "00:11:22:33:44:55", "signalStrength": 5}] * 2},
        {"accessPoints": [{"macAddress": "00:11:22:33:44:55", "channel": 1, "frequency": 2}] * 2},
    ],
)
async def test_a_malformed_scan_is_refused(standin: StandIn, body: object) -> None:
    answer = await standin.client.post(
        url("wifi"), headers=standin.bearer("organization_auth_token"), json=body
    )
    assert answer.status_code in {400, 422}


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
        url("pgps"),
        headers=header,
        params={"startGpsDay": 15160, "startGpsTimeOfDaySeconds": 0},
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
