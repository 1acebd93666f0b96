"""Files and ranges of them at the stand-in."""

from __future__ import annotations

from tests.support.cloud.standin import StandIn
from tests.support.fota.fota_calls import IMAGE, bundle, current, job, upload


async def test_an_image_is_downloaded_whole_in_ranges_and_resumed(standin: StandIn) -> None:
    await job(standin, await upload(standin, bundle()))
    document = (await current(standin)).json()["jobDocument"]
    url = f"{document['host']}/{document['path']}"

    async def get(method: str = "GET", **headers: str):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await standin.client.request(method, url, headers=sent)

    whole = await get()
    assert (whole.status_code, whole.content) == (200, IMAGE)
    assert whole.headers["content-length"] == str(len(IMAGE))
    etag = whole.headers["etag"]
    head = await get("HEAD")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(IMAGE)))
    pieces = b""
    while len(pieces) < len(IMAGE):
        part = await get(Range=f"bytes={len(pieces)}-{len(pieces) + 1699}", If_Range=etag)
        assert part.status_code == 206
        last = min(len(pieces) + 1699, len(IMAGE) - 1)
        assert part.headers["content-range"] == f"bytes {len(pieces)}-{last}/{len(IMAGE)}"
        pieces += part.content
    assert pieces == IMAGE
    rest = await get(Range="bytes=10000-")
    assert (rest.status_code, rest.content) == (206, IMAGE[10000:])
    tail = await get(Range="bytes=-5")
    assert tail.content == IMAGE[-5:]
    changed = await get(Range="bytes=5-", If_Range='"other"')
    assert (changed.status_code, changed.content) == (200, IMAGE)
    beyond = await get(Range=f"bytes={len(IMAGE)}-")
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(IMAGE)}"
    odd = await get(Range="lines=1-2")
    assert odd.status_code == 200
