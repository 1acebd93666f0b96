"""Assistance data over a real socket: ranges, another host, and a service that lies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.auth.bearer import OrganizationToken
from agent.auth.credential import Keyring
from agent.call import Host
from agent.config.project import ProjectSlugs
from agent.config.secrets import Secret
from agent.errors import AgentError, BadAnswer, InvalidRequest, NotFound, Unavailable, UsageError
from agent.http import HttpClient
from agent.http.download_targets import SourceRefused
from agent.location import agnss, pgps
from agent.location.agnss import MAX_PIECES, AgnssRequest, ServingCell, fetch_agnss
from agent.location.agnss_file import DamagedAssistance, parse_agnss
from agent.location.pgps import PredictionRequest, fetch_pgps
from agent.location.pgps_file import gps_day_and_second, parse_pgps
from agent.standin.device_cloud.location.assistance import predictions
from agent.standin.faults import set_faults
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import organization_token, speaking_for_kit

CELL = ServingCell(1, 1, 2305, 33703793, -90)
HERE = ProjectSlugs("acme", "kits")
CLOUD = "https://cloud.invalid"
NOW = datetime(2026, 1, 2, 4, tzinfo=UTC)


def nothing(_done: int, _total: int | None) -> None:
    pass


@pytest.fixture
async def client(standin: StandIn) -> AsyncIterator[HttpClient]:
    async with speaking_for_kit(standin, organization_token(standin)) as made:
        yield made


def lying(answer: Callable[[httpx.Request], httpx.Response], *, proxy: str = "") -> HttpClient:
    keyring = Keyring([OrganizationToken(Secret("oat_test"))])
    transport = answering_transport(answer, proxy=proxy)
    return HttpClient(transport, {Host.DEVICE_CLOUD: CLOUD}, keyring, kit_gate=open_gate)


# --- A-GNSS


@pytest.mark.contract("D8.2")
async def test_every_type_is_fetched_in_ranges_and_is_whole(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = [number for number in range(1, 18) if number != 10]
    wanted = AgnssRequest(types, CELL)
    whole = await fetch_agnss(client, HERE, wanted, nothing)
    assert [one.element.number for one in whole.blocks] == types
    monkeypatch.setattr(agnss.FetchAgnss, "request", _in_pieces_of(700))
    seen: list[tuple[int, int | None]] = []
    pieces = await fetch_agnss(client, HERE, wanted, lambda *told: seen.append(told))
    assert len(seen) == -(-len(whole.content) // 700) > 5
    assert seen[-1] == (len(whole.content), len(whole.content))
    assert len(pieces.content) == len(whole.content)


def _in_pieces_of(size: int) -> Callable[[agnss.FetchAgnss], object]:
    asked = agnss.FetchAgnss.request

    def request(call: agnss.FetchAgnss) -> object:
        return asked(agnss.FetchAgnss(call.project, call.wanted, call.start, size))

    return request


@pytest.mark.contract("D8.2")
async def test_a_filtered_set_holds_what_can_be_seen_from_the_cell(client: HttpClient) -> None:
    every = await fetch_agnss(client, HERE, AgnssRequest((2,), CELL), nothing)
    seen = await fetch_agnss(client, HERE, AgnssRequest((2,), CELL, True, 10), nothing)
    assert 0 < len(seen.blocks[0].values) <= 16 < len(every.blocks[0].values)


FILE = b"\x01" + b"\x09\x01\x00" + bytes(4) + b"\x04\x01\x00" + bytes(8)  # 19 bytes, by hand


def agnss_server(
    pieces: Callable[[int], httpx.Response], size: int | None = len(FILE)
) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "HEAD":
            return httpx.Response(
                200, headers={} if size is None else {"content-length": str(size)}
            )
        return pieces(int(request.headers["range"].split("=")[1].split("-")[0]))

    return answer


def part(start: int, end: int, total: int = len(FILE)) -> httpx.Response:
    told = {"Content-Range": f"bytes {start}-{end - 1}/{total}"}
    return httpx.Response(206, headers=told, content=FILE[start:end])


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize("size", [None, len(FILE), 0, 5, 500])
async def test_a_service_with_and_without_ranges_and_sizes_gives_the_same(size: int | None) -> None:
    whole = agnss_server(lambda _start: httpx.Response(200, content=FILE), size)
    by_five = agnss_server(lambda start: part(start, min(start + 5, len(FILE))), size)
    begun = agnss_server(
        lambda start: httpx.Response(200, content=FILE) if start else part(0, 5), size
    )
    for server in (whole, by_five, begun):
        assert (await fetch_agnss(lying(server), HERE, AgnssRequest(), nothing)).content == FILE


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (lambda start: part(start, start + 5, 19 + start), "changed while it was fetched"),
        (lambda start: part(start, start + 5, 2**40), "bytes are announced"),
        (lambda start: part(start + 1, start + 5), "was told bytes"),
        (lambda start: part(start, start), "was told bytes|legal"),
        (lambda start: part(start, start + 5, start + 4), "was told bytes"),
        (lambda _start: httpx.Response(206, content=b"x"), "without a legal Content-Range"),
        (lambda _start: httpx.Response(206, headers={"content-range": "bytes 0-0/" + "9" * 5000},
                                       content=b"x"), "without a legal Content-Range"),
        (lambda _start: httpx.Response(200, json={"code": 40400}), "JSON"),
        (lambda _start: httpx.Response(200, html="<html>"), "assistance data, got .* text/html"),
        (lambda _start: httpx.Response(200, content=bytes(2 * 1024 * 1024)), "at most"),
    ],
)  # fmt: skip
async def test_ranges_that_do_not_add_up_are_refused_by_name(
    pieces: Callable[[int], httpx.Response], words: str
) -> None:
    with pytest.raises(BadAnswer, match=words):
        await fetch_agnss(lying(agnss_server(pieces)), HERE, AgnssRequest(), nothing)


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize("status", [404, 405, 422])
async def test_a_service_without_sizes_is_asked_for_the_data_all_the_same(status: int) -> None:
    whole = agnss_server(lambda _start: httpx.Response(200, content=FILE))

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status) if request.method == "HEAD" else whole(request)

    assert (await fetch_agnss(lying(answer), HERE, AgnssRequest(), nothing)).content == FILE


async def test_a_service_that_drips_is_given_up() -> None:
    asked = []

    def drip(start: int) -> httpx.Response:
        asked.append(start)
        told = {"Content-Range": f"bytes {start}-{start}/1000"}
        return httpx.Response(206, headers=told, content=b"\x01")

    with pytest.raises(BadAnswer, match="not whole"):
        await fetch_agnss(lying(agnss_server(drip, 1000)), HERE, AgnssRequest(), nothing)
    assert len(asked) == MAX_PIECES


async def test_an_error_of_the_service_is_one(standin: StandIn, client: HttpClient) -> None:
    # The answer to a HEAD has no words.
    with pytest.raises(InvalidRequest, match="mcc: Must be greater"):
        await fetch_agnss(client, HERE, AgnssRequest((1, 8), ServingCell(0, 1, 1, 1)), nothing)
    set_faults(standin.cloud, ["html-error=404@POST /v1/*agnss"])
    with pytest.raises(NotFound):
        await fetch_agnss(client, HERE, AgnssRequest(), nothing)


# --- P-GPS


@pytest.mark.contract("D8.2")
async def test_predictions_come_from_the_other_host_with_no_credential(
    standin: StandIn, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    real = client.transport.open

    def watched(method: str, url: str, **more: object) -> object:
        opened.append((url, more))
        return real(method, url, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(client.transport, "open", watched)
    now = datetime.now(UTC)
    data = await fetch_pgps(client, HERE, PredictionRequest(42, 240), nothing, now=now)
    assert len(data.content) == 16 + 42 * 2006
    assert data.file.predictions[0].valid_from <= now < data.file.end
    url, more = opened[-1]
    assert url.startswith(standin.urls["downloads"])
    assert more.get("headers") is None
    assert more["addresses"] == ["127.0.0.1"]


@pytest.mark.contract("D8.2")
async def test_the_start_that_was_asked_for_is_the_one_that_comes(client: HttpClient) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    start = now + timedelta(days=3, hours=1)
    wanted = PredictionRequest(4, 120, start)
    data = await fetch_pgps(client, HERE, wanted, nothing, now=now)
    assert data.file.start == start
    assert [p.valid_from - start for p in data.file.predictions] == [
        timedelta(hours=2 * step - 2) for step in range(4)
    ]


@pytest.mark.contract("D8.2")
async def test_a_start_that_nobody_can_predict_is_not_asked_for(client: HttpClient) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    last = now + timedelta(days=14)
    beyond = PredictionRequest(1, 120, last + timedelta(seconds=1))
    with pytest.raises(UsageError, match=f"the last start is {last:%Y-%m-%dT%H:%M:%SZ}$"):
        await fetch_pgps(client, HERE, beyond, nothing, now=now)
    data = await fetch_pgps(client, HERE, PredictionRequest(1, 120, last), nothing, now=now)
    assert data.file.start == last


async def test_predictions_of_another_time_are_refused(
    standin: StandIn, client: HttpClient
) -> None:
    later = datetime.now(UTC) + timedelta(days=30)
    with pytest.raises(DamagedAssistance, match="is outside") as told:
        await fetch_pgps(client, HERE, PredictionRequest(2), nothing, now=later)
    assert "clock" in told.value.hint
    standin.clock.freeze()
    now = datetime.fromtimestamp(standin.clock.time(), UTC)
    file = (await fetch_pgps(client, HERE, PredictionRequest(1), nothing, now=now)).file
    assert timedelta(0) <= file.start - now < timedelta(hours=2)
    first, second = file.predictions[0].valid_from, timedelta(seconds=1)
    for inside in (first, file.start - second, file.start, file.end - second):
        data = await fetch_pgps(client, HERE, PredictionRequest(1), nothing, now=inside)
        assert data.file == file
    for outside in (file.end, first - second):
        with pytest.raises(DamagedAssistance, match="is outside"):
            await fetch_pgps(client, HERE, PredictionRequest(1), nothing, now=outside)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [(PredictionRequest(3, 240), "period 120"), (PredictionRequest(2, 120), "3 predictions")],
)
async def test_predictions_that_were_not_asked_for_are_refused(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, wanted: PredictionRequest, words: str
) -> None:
    ask = pgps.RequestPgps
    monkeypatch.setattr(pgps, "RequestPgps", lambda at, _: ask(at, PredictionRequest(3, 120)))
    with pytest.raises(DamagedAssistance, match=words):
        await fetch_pgps(client, HERE, wanted, nothing, now=datetime.now(UTC))


@pytest.mark.parametrize(
    ("host", "addresses", "words"),
    [
        ("http://pgps.example.com", ["93.184.215.14"], "https only"),
        ("https://user@pgps.example.com", ["93.184.215.14"], "user name"),
        ("https://169.254.169.254", ["169.254.169.254"], "link-local"),
        ("pgps.example.com", ["10.0.0.1"], "private address"),
        ("pgps.example.com", ["93.184.215.14", "127.0.0.1"], "this machine"),
        ("pgps.example.com", ["::ffff:192.168.1.1"], "private address"),
        ("pgps.example.com", [], "no address"),
        ("0x7f.1", ["127.0.0.1"], "not a host name"),
        ("0177.0.0.1", ["127.0.0.1"], "not a host name"),
    ],
)
async def test_predictions_are_not_fetched_from_inside(
    host: str, addresses: list[str], words: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.host == "cloud.invalid", "connected to where it may not"
        return httpx.Response(200, json={"host": host, "path": "public/a.bin"})

    async def resolve(_host: str, _port: int) -> list[str]:
        return addresses

    with pytest.raises(SourceRefused, match=words):
        await fetch_pgps(
            lying(answer), HERE, PredictionRequest(), nothing,
            now=datetime.now(UTC), resolve=resolve,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (httpx.Response(404), "answered 404"),
        (httpx.Response(302, headers={"location": "http://10.0.0.1/"}), "answered 302"),
        (httpx.Response(200, content=bytes(400_000)), "larger than"),
        (httpx.Response(200, content=b"<html>"), "no P-GPS file"),
    ],
)
async def test_a_download_that_is_none_is_refused_by_name(
    served: httpx.Response, words: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "cloud.invalid":
            return httpx.Response(200, json={"host": "pgps.example.com", "path": "public/a.bin"})
        assert request.url.host == "93.184.215.14"
        assert request.headers["host"] == "pgps.example.com"
        assert "authorization" not in request.headers
        return served

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.215.14"]

    with pytest.raises(AgentError, match=words):
        await fetch_pgps(
            lying(answer), HERE, PredictionRequest(), nothing,
            now=datetime.now(UTC), resolve=resolve,
        )  # fmt: skip


@pytest.mark.contract("D8.2")
async def test_by_a_proxy_predictions_are_asked_for_by_the_name_of_their_host() -> None:
    file = predictions(*gps_day_and_second(NOW), 2, 240)
    hosts = ["pgps.example.com", "10.0.0.1"]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "cloud.invalid":
            return httpx.Response(200, json={"host": hosts.pop(0), "path": "public/a.bin"})
        # A proxy connects to what is named here, and its certificate has to be for that.
        assert request.url.host == request.headers["host"] == "pgps.example.com"
        return httpx.Response(200, content=file)

    async def resolve(host: str, _port: int) -> list[str]:
        assert host == "10.0.0.1", "a name may be known to the proxy alone"
        return [host]

    client = lying(answer, proxy="http://proxy.example:3128")
    wanted = PredictionRequest(2, 240)
    data = await fetch_pgps(client, HERE, wanted, nothing, now=NOW, resolve=resolve)
    assert data.file.start == NOW
    with pytest.raises(SourceRefused, match="a private address"):
        await fetch_pgps(client, HERE, wanted, nothing, now=NOW, resolve=resolve)


@pytest.mark.contract("D8.2")
async def test_a_host_of_predictions_that_asks_for_a_later_try_is_away(
    standin: StandIn, client: HttpClient
) -> None:
    set_faults(standin.cloud, ["too-many-requests=70@/public/*"])
    with pytest.raises(Unavailable, match="answered 429") as told:
        await fetch_pgps(client, HERE, PredictionRequest(), nothing, now=datetime.now(UTC))
    assert told.value.retry_after_s == 70.0


# --- damage


@settings(max_examples=300)
@given(st.data())
def test_one_changed_byte_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    whole = bytearray(FILE)
    place = data.draw(st.integers(0, len(FILE) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    try:
        blocks = parse_agnss(bytes(whole))
    except DamagedAssistance as damage:
        assert "offset" in str(damage)  # noqa: PT017 - what is read is as good
        return
    assert sum(3 + len(b.values) * b.element.layout.size for b in blocks) == len(FILE) - 1


async def test_every_damage_to_the_frame_of_a_real_file_is_found(client: HttpClient) -> None:
    now = datetime.now(UTC)
    good = (await fetch_pgps(client, HERE, PredictionRequest(2, 240), nothing, now=now)).content
    # Each byte of the header, of a clock's head and time, and of the head of its table.
    for place in (*range(16), *range(16, 16 + 3 + 6), *range(35, 38), *range(16 + 2006, 16 + 2009)):
        damaged = bytearray(good)
        damaged[place] ^= 0xFF
        with pytest.raises(DamagedAssistance):
            parse_pgps(bytes(damaged), asked_count=2, asked_period_min=240)
    for size in (0, 15, 16, 17, 2022, len(good) - 1, len(good) + 1):
        with pytest.raises(DamagedAssistance):
            parse_pgps((good + b"\0")[:size], asked_count=2, asked_period_min=240)
