"""A body that would take for ever to read."""

from __future__ import annotations

from tests.support.cloud.standin import StandIn


async def test_a_body_that_would_take_for_ever_to_read_is_read_at_once(standin: StandIn) -> None:
    key = {"Service-Project-Key": standin.credentials["project_key"]}
    client = standin.client
    told = {"kind": "MAR", "size": 5}
    prepared = (await client.post("/api/v0/upload", json=told, headers=key)).json()["data"]
    spaces = b"<PartNumber>1</PartNumber><ETag>" + b" " * 1_000_000 + b"x"
    answer = await client.post(prepared["upload_url"], content=spaces)
    assert answer.status_code == 400
    part = b"--x\r\n\r\n\x08a\xf5\x7c\r\n"
    many = await client.post(
        "/api/v0/chunks/kit-1",
        content=part * 100_000 + b"--x--",
        headers=key | {"Content-Type": "multipart/mixed; boundary=x"},
    )
    assert "parts" in many.json()["error"]["message"]
    rows = await client.post(
        "/v1/devices/public-keys",
        content=b"\n" * 4_000_000,
        headers=standin.bearer("api_key") | {"Content-Type": "text/csv"},
    )
    assert rows.status_code == 422
