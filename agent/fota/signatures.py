"""Whose key an image, or a file, is signed with: ECDSA P-256, Ed25519 or RSA."""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from agent.errors import UsageError
from agent.files.private_files import read_plain
from agent.fota.image import SIGNATURE_TLVS, TLV_SIG_PURE, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    from agent.fota.image import McubootImage

    PublicKey: TypeAlias = EllipticCurvePublicKey | Ed25519PublicKey | RSAPublicKey


def load_public_key(path: Path) -> PublicKey:
    """Read the key that images are signed with. Raises UsageError, which names the file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    data = read_plain(path, "fota.public_key_file")
    load = (
        serialization.load_pem_public_key
        if b"-----BEGIN" in data
        else serialization.load_der_public_key
    )
    try:
        key = load(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"fota.public_key_file {path} holds no public key",
            hint="`imgtool getpub -k KEY -e pem` writes one; a private key does not belong here",
        ) from error
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1":
        return key
    if isinstance(key, ed25519.Ed25519PublicKey | rsa.RSAPublicKey):
        return key
    raise UsageError(f"fota.public_key_file {path}: no ECDSA P-256, Ed25519 or RSA key")


def signs_image(key: PublicKey, path: Path, image: McubootImage) -> bool:
    """Return whether a signature TLV of the image is by this key over what the image's hash covers.

    MCUboot signs the hash of header, body and protected TLVs; a "pure" Ed25519 signature is
    over these bytes themselves.
    """
    digest = hash_of(path, image.hashed_bytes, image.algorithm)
    pure = bool(image.values(TLV_SIG_PURE))
    for tlv in image.tlvs:
        if tlv.type not in SIGNATURE_TLVS or tlv.protected:
            continue
        if pure and _is_ed25519(key):
            with _mapped(path, image.hashed_bytes) as message:
                if _verify(key, tlv.value, message=message, digest=digest):
                    return True
        elif not pure and _verify(key, tlv.value, message=digest, digest=digest):
            return True
    return False


def signs_file(key: PublicKey, path: Path, signature: bytes) -> bool:
    """Return whether `signature` is by this key over the file (Ed25519: pure; else SHA-256)."""
    size = path.stat().st_size
    digest = hash_of(path, size)
    with _mapped(path, size) as message:
        return _verify(key, signature, message=message, digest=digest)


@contextmanager
def _mapped(path: Path, size_bytes: int) -> Iterator[memoryview]:
    """Yield a view of the file's first `size_bytes` (1 or more), mapped, not read at once."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), size_bytes, access=mmap.ACCESS_READ) as content,
        memoryview(content) as view,
    ):
        yield view


def _is_ed25519(key: PublicKey) -> bool:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return isinstance(key, Ed25519PublicKey)


def _verify(
    key: PublicKey, signature: bytes, *, message: bytes | memoryview, digest: bytes
) -> bool:
    """Verify over `digest` (ECDSA, RSA-PSS with a salt of 32) or `message` (Ed25519)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    by_size = {32: hashes.SHA256(), 48: hashes.SHA384(), 64: hashes.SHA512()}
    algorithm = by_size[len(digest)]
    prehashed = utils.Prehashed(algorithm)
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(_trimmed(signature), digest, ec.ECDSA(prehashed))
        elif isinstance(key, rsa.RSAPublicKey):
            pss = padding.PSS(mgf=padding.MGF1(algorithm), salt_length=32)
            key.verify(signature, digest, pss, prehashed)
        else:
            key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _trimmed(signature: bytes) -> bytes:
    """Return the DER sequence without the zero bytes that older imgtool padded it with."""
    end = 2 + int.from_bytes(signature[1:2], "big")
    return signature if signature[end:].strip(b"\0") else signature[:end]
