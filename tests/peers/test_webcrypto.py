"""Tokens of ours by WebCrypto as Node.js has it, and its own tokens at the stand-in.

It has the ES256 of RFC 7518 itself: a signature of two numbers, 64 bytes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from agent.auth.key_files import DeviceKey, ServiceKeys
from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.location.calls import LocateWifi
from at.commands.functional_mode import SetFunctionalMode
from at.commands.identity import ReadDeviceUuid
from at.commands.keys import GenerateKey
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.cloud.device_tokens import DEVICE, fetch, upload
from tests.support.cloud.standin import StandIn
from tests.support.keys.openssl import openssl

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("node") is None, reason="no node: scripts/setup installs it"),
]
VERIFY = """
const [pem, token] = process.argv.slice(1)
const [head, body, signature] = token.split('.')
const spki = Buffer.from(pem.replace(/-----[^-]+-----|\\s/g, ''), 'base64')
const kind = { name: 'ECDSA', namedCurve: 'P-256' }
const key = await crypto.subtle.importKey('spki', spki, kind, false, ['verify'])
const plain = part => JSON.parse(Buffer.from(part, 'base64url').toString())
const valid = await crypto.subtle.verify(
  { name: 'ECDSA', hash: 'SHA-256' }, key, Buffer.from(signature, 'base64url'),
  Buffer.from(`${head}.${body}`))
console.log(JSON.stringify({ valid, head: plain(head), claims: plain(body) }))
"""
SIGN = """
const [algorithm, claims] = process.argv.slice(1)
const kind = algorithm === 'ES256' ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  : { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]),
      hash: 'SHA-256' }
const pair = await crypto.subtle.generateKey(kind, true, ['sign', 'verify'])
const part = value => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokens = []
for (const one of JSON.parse(claims)) {
  const signed = `${part({ alg: algorithm, typ: 'JWT' })}.${part(one)}`
  const made = await crypto.subtle.sign(kind, pair.privateKey, Buffer.from(signed))
  tokens.push(`${signed}.${Buffer.from(made).toString('base64url')}`)
}
const spki = Buffer.from(await crypto.subtle.exportKey('spki', pair.publicKey)).toString('base64')
console.log(JSON.stringify({
  tokens, pem: `-----BEGIN PUBLIC KEY-----\\n${spki}\\n-----END PUBLIC KEY-----` }))
"""


def node(program: str, *arguments: str) -> Any:
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", program, "--", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.contract("C4", "D10.2", "D10.3", "D10.5")
@pytest.mark.parametrize("device", ["", DEVICE], ids=["of the modem", "of another id"])
async def test_the_token_that_a_modem_signed_is_verified_with_the_key_it_told(device: str) -> None:
    modem = Modem(VirtualTransport(instant=True))
    await modem.open()
    key = await modem.send(GenerateKey(7, response_content=1))
    await modem.subscribe("AT+CEREG=1")
    with modem.notices("+CEREG") as heard:
        await modem.send(SetFunctionalMode(1))
        while not (await anext(heard)).line.startswith("+CEREG: 1"):
            pass
    uuid = (await modem.send(ReadDeviceUuid())).uuid
    read = node(VERIFY, key.public_key_pem, await ModemJwt(ask_modem(modem, 7), device).make())
    await modem.close()
    assert (read["valid"], read["head"]["alg"]) == (True, "ES256")
    assert read["claims"]["iss"].endswith(uuid)
    assert read["claims"].get("sub") == (device or None)
    assert "aud" not in read["claims"]


@pytest.mark.contract("D10.2", "D10.3", "D10.4")
async def test_the_tokens_of_keys_on_the_host_are_verified(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    openssl(tmp_path, "genpkey", *curve, "-out", path)
    path.chmod(0o600)
    public = openssl(tmp_path, "pkey", "-in", path, "-pubout").stdout
    now = time.time()
    device = node(VERIFY, public, await DeviceKey(path, DEVICE).make())
    assert (device["valid"], device["head"]["alg"]) == (True, "ES256")
    assert (device["claims"]["sub"], "aud" in device["claims"]) == (DEVICE, False)
    assert device["claims"]["exp"] > now >= device["claims"]["iat"] - 1
    call = LocateWifi(None, access_points=())
    sent = (await ServiceKeys({"location": str(path)}, "a-team").headers(call))["authorization"]
    service = node(VERIFY, public, sent.removeprefix("Bearer "))
    assert (service["valid"], service["claims"]["aud"]) == (True, "a-team")
    assert "sub" not in service["claims"]


@pytest.mark.contract("D10.2", "D10.3", "D10.5")
async def test_the_stand_in_takes_a_device_key_of_webcrypto_and_no_rsa(standin: StandIn) -> None:
    now = int(standin.clock.time())
    claims = [{"sub": DEVICE, "exp": now + 600}, {"exp": now + 600}, {"sub": "another"}]
    made = node(SIGN, "ES256", json.dumps(claims))
    subject, without, another = made["tokens"]
    assert await fetch(standin, subject) == 401, "its key is not registered yet"
    shown = await upload(standin, "public-keys", f'{DEVICE},"{made["pem"]}"\n')
    assert shown["status"] == "SUCCEEDED", shown
    assert await fetch(standin, subject) == 200
    assert await fetch(standin, without) == await fetch(standin, another) == 401
    rsa = node(SIGN, "RS256", json.dumps(claims[:1]))
    await upload(standin, "public-keys", f'{DEVICE},"{rsa["pem"]}"\n')
    assert await fetch(standin, rsa["tokens"][0]) == 401
