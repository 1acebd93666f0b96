"""Keys, signed tokens, signed commands: %KEYGEN %JWT %ATTESTTOKEN %XSUDO."""

import hashlib
import uuid

from at.virtual import signing
from at.virtual.command_line import BadRequest, Bare, CommandRequest, RequestForm
from at.virtual.families import credentials
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.options import firmware_uuid
from at.virtual.state import CredentialSlot

WRONG_PARAMETERS = 50
NOT_SUPPORTED = 0
LONGEST_LIFE_S = 2**31 - 1
PUBLIC_KEY_MESSAGE, REQUEST_MESSAGE, IDENTITY_MESSAGE = 8, 9, 1
_FIRST_WITH_KEYS = (1, 3, 0)
_KEY_TYPES = {credentials.SlotType.CLIENT_PRIVATE_KEY, credentials.SlotType.ENDORSEMENT_KEY}


def generate(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%KEYGEN: make a key; reply with its PKCS#10 or public key, signed by the identity key."""
    if not kit.at_least(*_FIRST_WITH_KEYS):
        return fail(NOT_SUPPORTED)
    if len(request.parameters) > 5:
        raise BadRequest
    tag = request.number(0, 0, credentials.HIGHEST_TAG)
    kind = request.number(1, min(_KEY_TYPES), max(_KEY_TYPES))
    content = request.number(2, 0, 1)
    if kind not in _KEY_TYPES or (kind == credentials.SlotType.ENDORSEMENT_KEY and content != 1):
        raise BadRequest
    attributes, usage = request.text(3, default=""), request.text(4, default="")
    code = kit.faults.whole("keygen-failed")
    if code is None:
        code = credentials.write_refusal(kit)
    if code is not None:
        return fail(code)
    store = kit.saved.credentials
    present = store.get(credentials.slot(tag, kind))
    if present is not None and kind == credentials.SlotType.CLIENT_PRIVATE_KEY:
        return fail(credentials.EXISTS)
    pem = present.private_key if present and present.private_key else signing.new_key()
    key = signing.load_key(pem)
    assert key is not None
    if content == 0:
        body = signing.signing_request(key, attributes, kit.saved.uuid, usage)
    else:
        body = signing.public_der(key)
    store[credentials.slot(tag, kind)] = CredentialSlot(
        hashlib.sha256(signing.public_der(key)).hexdigest().upper(), private_key=pem
    )
    kit.saved.writes += 1
    return ok(f'%KEYGEN: "{_attested(kit, tag, content, body)}"', takes_s=kit.delay(2.0))


def _attested(kit: VirtualKit, tag: int, content: int, body: bytes) -> str:
    import cbor2

    payload = signing.self_described(
        [
            REQUEST_MESSAGE if content == 0 else PUBLIC_KEY_MESSAGE,
            uuid.UUID(kit.saved.uuid).bytes,
            cbor2.dumps(tag),
            hashlib.sha256(body).digest(),
            signing.nonce(),
        ]
    )
    # The nRF9160 signs the body beside the payload; the newer chips sign the payload alone.
    external = body if kit.model.family == "nrf9160" else b""
    return signing.dotted(body, signing.sign1(signing.identity_key(kit), payload, external))


def web_token(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%JWT. Without a time the token has neither `iat` nor `exp`."""
    if not kit.at_least(*_FIRST_WITH_KEYS):
        return fail(NOT_SUPPORTED)
    if request.form not in {RequestForm.SET, RequestForm.RUN}:
        raise BadRequest
    if len(request.parameters) > 6:
        return fail(WRONG_PARAMETERS)
    refused = kit.faults.whole("jwt-failed")
    if refused is not None:
        return fail(refused)
    request.number(0, 0, 0, default=0, code=WRONG_PARAMETERS)
    life_s = request.number(1, 0, LONGEST_LIFE_S, default=0, code=WRONG_PARAMETERS)
    subject = request.text(2, default="", code=WRONG_PARAMETERS)
    audience = request.text(3, default="", code=WRONG_PARAMETERS)
    key = signing.identity_key(kit)
    if request.given(4) or request.given(5):
        tag = request.number(4, 0, credentials.HIGHEST_TAG, code=WRONG_PARAMETERS)
        kind = request.number(5, min(_KEY_TYPES), max(_KEY_TYPES), code=WRONG_PARAMETERS)
        if kind not in _KEY_TYPES:
            return fail(WRONG_PARAMETERS)
        credential = kit.saved.credentials.get(credentials.slot(tag, kind))
        if credential is None:
            return fail(credentials.NOT_FOUND)
        stored_key = signing.load_key(credential.private_key or credential.content or "")
        if stored_key is None:
            return fail(credentials.NO_ACCESS)
        key = stored_key
    claims = signing.device_claims(kit, life_s)
    if subject:
        claims["sub"] = _utf8(subject)
    if audience:
        claims["aud"] = _utf8(audience)
    return ok(f'%JWT: "{signing.web_token(key, claims)}"', takes_s=kit.delay(0.15))


def _utf8(text: str) -> str:
    """Return text whose bytes are UTF-8: on the line it is decoded as latin-1, byte for byte."""
    return text.encode("latin-1").decode("utf-8", "replace")


def attestation(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%ATTESTTOKEN: the device's identity, signed by its key over a nonce or a challenge."""
    if not kit.at_least(*_FIRST_WITH_KEYS):
        return fail(NOT_SUPPORTED)
    if request.form not in {RequestForm.SET, RequestForm.RUN} or len(request.parameters) > 1:
        raise BadRequest
    fresh = signing.nonce()
    if request.form is RequestForm.SET:
        challenge = request.text(0)
        try:
            fresh = bytes.fromhex(challenge)
        except ValueError as error:
            raise BadRequest from error
        if len(challenge) != 32 or len(fresh) != 16:
            raise BadRequest
    body = signing.self_described(
        [
            IDENTITY_MESSAGE,
            uuid.UUID(kit.saved.uuid).bytes,
            kit.model.attestation_type,
            uuid.UUID(firmware_uuid(kit.firmware)).bytes,
            fresh,
        ]
    )
    cose = signing.sign1(signing.identity_key(kit), None, body)
    return ok(f'%ATTESTTOKEN: "{signing.dotted(body, cose)}"', takes_s=kit.delay(0.15))


def authenticated_access(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XSUDO: refused, because the virtual modem accepts no key."""
    request.number(0, 1, 4096)
    if not request.given(1) or isinstance(request.parameters[1], Bare | int):
        raise BadRequest
    return fail(520)


COMMANDS = {
    "%KEYGEN": generate,
    "%JWT": web_token,
    "%ATTESTTOKEN": attestation,
    "%XSUDO": authenticated_access,
}
