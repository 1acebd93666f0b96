"""Calling the observability half of the stand-in from tests, as each kind of caller would."""

import base64
import hashlib
from typing import Any

import httpx

from agent.standin.state import USERS
from tests.support.cloud.standin import StandIn

KEY_HEADER = "Service-Project-Key"
OCTETS = {"Content-Type": "application/octet-stream"}
IDENTITY = {
    "device_serial": "kit-1",
    "hardware_version": "nrf9161dk",
    "software_type": "modem-app",
    "software_version": "2.4.1",
}


class Caller:
    """One caller: its base URL, its credential, and the project that its paths are below."""

    def __init__(self, standin: StandIn, headers: dict[str, str]) -> None:
        self.standin = standin
        self.headers = headers
        self.place = f"/api/v0/organizations/{standin.organization}/projects/{standin.project}"

    async def __call__(
        self, method: str, path: str, host: str = "api", **how: Any
    ) -> httpx.Response:
        """Send; a path that begins with "~" is below the project."""
        path = self.place + path.removeprefix("~") if path.startswith("~") else path
        headers = {**self.headers, **how.pop("headers", {})}
        url = self.standin.urls[host] + path
        return await self.standin.client.request(method, url, headers=headers, **how)

    async def data(self, path: str, **query: Any) -> Any:
        answer = await self("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


async def upload(
    caller: Caller,
    data: bytes,
    kind: str,
    commit: str,
    body: dict[str, Any],
    prepare: str = "/api/v0/upload",
) -> httpx.Response:
    """Prepare, put and commit; return the answer to the commit."""
    answer = await caller("POST", prepare, "files", json={"kind": kind, "size": len(data)})
    assert answer.status_code == 200, answer.text
    prepared = answer.json()["data"]
    put = await caller.standin.client.put(prepared["upload_url"], content=data)
    assert put.status_code == 200, put.text
    told = {"token": prepared["token"], "md5": hashlib.md5(data).hexdigest(), "name": "f.bin"}
    return await caller("POST", commit, "files", json={"file": told, **body})


def basic(email: str, secret: str) -> dict[str, str]:
    text = base64.b64encode(f"{email}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def with_token(standin: StandIn) -> Caller:
    return Caller(standin, standin.bearer("organization_auth_token"))


def with_password(standin: StandIn) -> Caller:
    given = standin.credentials
    return Caller(standin, basic(given["user_email"], given["user_password"]))


def with_user_key(standin: StandIn) -> Caller:
    given = standin.credentials
    return Caller(standin, basic(given["user_email"], given["user_api_key"]))


def with_project_key(standin: StandIn, header: str = KEY_HEADER) -> Caller:
    return Caller(standin, {header: standin.credentials["project_key"]})


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the published error body, which every refusal of this half carries."""
    assert answer.headers["content-type"] == "application/json"
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"code", "http_code", "type", "message"}
    assert error["http_code"] == answer.status_code
    return error


def an_event(serial: str = "kit-1", **more: Any) -> dict[str, Any]:
    return {
        "type": "heartbeat",
        "software_type": "modem-app",
        "software_version": "2.4.1",
        "device_serial": serial,
        "hardware_version": "nrf9161dk",
        "sdk_version": "0.5.0",
        "event_info": {"metrics": {"battery_pct": 77}},
    } | more


def a_trace(serial: str = "kit-1", reason: int = 0x8001, **more: Any) -> dict[str, Any]:
    info = {"reason": reason, "pc": 226_689, "lr": 226_574, "sp": 6712}
    return an_event(serial, type="trace", event_info=info) | more


async def push(standin: StandIn, body: object):
    """Push a JSON body as events; return the response."""
    return await with_project_key(standin)("POST", "/api/v0/events", "ingress", json=body)


async def push_events(standin: StandIn, *events: dict) -> None:
    """Push events that are accepted."""
    answer = await push(standin, list(events))
    assert answer.status_code == 202, answer.text


async def push_chunk(standin: StandIn, content: bytes, serial: str = "kit-1", **headers: str):
    """Push the body of a request for chunks; return the response."""
    return await with_project_key(standin)(
        "POST", f"/api/v0/chunks/{serial}", "chunks", content=content, headers=OCTETS | headers
    )


def in_parts(parts: list[bytes], boundary: str = "b", head: str | None = None) -> bytes:
    """Return chunks as one body; `head` stands where each part has its header."""
    body = b""
    for part in parts:
        usual = f"Content-Length: {len(part)}\r\nContent-Type: application/octet-stream"
        lines = usual if head is None else head
        lines = f"{lines}\r\n" if lines else ""
        body += f"--{boundary}\r\n{lines}\r\n".encode() + part + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


async def problems(standin: StandIn) -> list[str]:
    """Return the errors of the processing log."""
    lines = (await with_token(standin)("GET", "~/processing-log")).json()["data"]
    return [line["message"] for line in lines if line["level"] == "error"]


async def make_release(standin: StandIn, version: str, data: bytes = b"image", **more: object):
    """Upload a payload as a release."""
    body = {
        "software_version": {"version": version, "software_type": "modem-app"},
        "hardware_version": "nrf9161dk",
        **more,
    }
    caller = with_token(standin)
    answer = await upload(caller, data, "OTA_PAYLOAD", "~/releases/ota_payload", body, "~/upload")
    assert answer.status_code == 202, answer.text


async def deploy(standin: StandIn, version: str, **more: object):
    """Deploy a release to the default cohort; return the deployment."""
    body = {"release": version, "cohort": "default", **more}
    answer = await with_token(standin)("POST", "~/deployments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def person(standin: StandIn, email: str, role: str | None = None) -> Caller:
    """Return a user with a password, in a role where one is given."""
    users = standin.cloud.table(USERS)
    record = users[email]
    if role is not None:
        record.roles = {standin.organization: role}
        users.put(email, record)
    return Caller(standin, basic(email, record.password))
