"""Answers of %KEYGEN and %ATTESTTOKEN, made with keys of this run."""

import hashlib
from base64 import urlsafe_b64encode

import cbor2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID

IDENTITY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
UUID = bytes(range(16))
NONCE = bytes(range(16, 32))
DESCRIBED = bytes.fromhex("d9d9f7")
PROTECTED = bytes.fromhex("a10126")
ECDSA_NULL = bytes.fromhex("300c06082a8648ce3d0403020500")
ECDSA_ABSENT = bytes.fromhex("300a06082a8648ce3d040302")


def raw(key, data):
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def text(data):
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def cose(payload, aad, key=IDENTITY, signer=-2):
    signed = cbor2.dumps(["Signature1", PROTECTED, aad, payload])
    parts = [PROTECTED, {4: cbor2.dumps(signer)}, payload, raw(key, signed)]
    return cbor2.dumps(cbor2.CBORTag(18, parts))


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def request(key=OTHER, name="a test device", *, null=True):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    der = made.public_bytes(serialization.Encoding.DER)
    if not null:
        return der
    # As the modem does: explicit NULL parameters, two bytes more, so the length grows.
    place, head = der.rindex(ECDSA_ABSENT), 2 + (der[1] & 0x7F)
    inner = der[head:place] + ECDSA_NULL + der[place + len(ECDSA_ABSENT) :]
    return (
        b"\x30\x82" + len(inner).to_bytes(2) + inner
        if len(inner) > 255
        else (b"\x30\x81" + bytes([len(inner)]) + inner)
    )


def keygen(body, *, tag=17, aad=None, key=IDENTITY, digest=None):
    items = [9, UUID, cbor2.dumps(tag), digest or hashlib.sha256(body).digest(), NONCE]
    payload = DESCRIBED + cbor2.dumps(items)
    return f"{text(body)}.{text(cose(payload, body if aad is None else aad, key))}"


def attest(kind=4, *, key=IDENTITY, payload=None):
    body = DESCRIBED + cbor2.dumps([1, UUID, kind, NONCE, NONCE])
    return f"{text(body)}.{text(cose(payload, body, key))}"
