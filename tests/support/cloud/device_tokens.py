"""JWTs of devices, made without a library, and uploads of the keys that verify them."""

import base64
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.support.cloud.standin import StandIn

DEVICE = "nrf-352656109000002"


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key, claims: dict, *, header: dict | None = None, signature: bytes | None = None) -> str:
    head = header or {"alg": "ES256", "typ": "JWT"}
    body = f"{encode(json.dumps(head).encode())}.{encode(json.dumps(claims).encode())}"
    if signature is None:
        r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{body}.{encode(signature)}"


async def upload(standin: StandIn, what: str, rows: str) -> dict:
    answer = await standin.client.post(
        f"/v1/devices/{what}" if what else "/v1/devices",
        headers=standin.bearer("api_key") | {"Content-Type": "text/csv"},
        content=rows,
    )
    assert answer.status_code == 202, answer.text
    operation = answer.json()["bulkOpsRequestId"]
    assert len(operation) == 26
    standin.clock.advance(1)
    shown = await standin.client.get(
        f"/v1/bulk-ops-requests/{operation}", headers=standin.bearer("api_key")
    )
    return shown.json()


async def fetch(standin: StandIn, text: str, device: str = DEVICE) -> int:
    answer = await standin.client.get(
        f"/v1/devices/{device}", headers={"Authorization": f"Bearer {text}"}
    )
    return answer.status_code
