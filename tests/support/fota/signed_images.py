"""Images as MCUboot's own signer makes them. The keys are made per run and guard nothing."""

import contextlib
import io
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from imgtool import version as imgtool_version
from imgtool.image import Image
from imgtool.keys import ECDSA256P1, RSA, Ed25519
from imgtool.main import sign as imgtool_sign

HEADER_BYTES = 0x200


@cache
def signing_key(kind: str = "ecdsa", number: int = 0) -> Any:
    """A test key of imgtool's; another number is another key."""
    if kind == "ecdsa":
        return ECDSA256P1.generate()
    return Ed25519.generate() if kind == "ed25519" else RSA.generate()


def public_pem(key: Any) -> bytes:
    return key.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def sign_file(key: Any, content: bytes) -> bytes:
    """A signature over a whole file, by an ECDSA key."""
    from cryptography.hazmat.primitives import hashes

    return key.key.sign(content, ec.ECDSA(hashes.SHA256()))


def signed_image(
    folder: Path,
    version: str = "2.0.1",
    *,
    body: bytes = bytes(range(256)) * 16,
    key: Any = None,
    protected: bool = False,
    pure: bool = False,
    encrypted_to: Any = None,
    sha: str = "auto",
    name: str = "app_update.bin",
) -> Path:
    """Write a signed image as a build does; without a key it only carries its hash."""
    plain = folder / f"{name}.plain.bin"
    plain.write_bytes(body)
    path = folder / name
    image = Image(
        version=imgtool_version.decode_version(version),
        header_size=HEADER_BYTES,
        pad_header=True,
        slot_size=0x100000,
        security_counter=3 if protected else None,
    )
    with contextlib.redirect_stdout(io.StringIO()):
        image.load(str(plain))
        image.create(key, "hash", encrypted_to, user_sha=sha, is_pure=pure)
        image.save(str(path))
    plain.unlink()
    return path


def compressed_image(folder: Path, version: str, *, body: bytes, key: Any) -> Path:
    """Write an image as a build for a small second slot does: its body compressed."""
    plain, pem, path = folder / "plain.bin", folder / "key.pem", folder / "compressed.bin"
    plain.write_bytes(body)
    key.export_private(str(pem))
    how = ["--pad-header", "-H", str(HEADER_BYTES), "-S", "0x100000", "-v", version]
    how += ["--compression", "lzma2armthumb", "-k", str(pem)]
    with contextlib.redirect_stdout(io.StringIO()):
        imgtool_sign.main([*how, str(plain), str(path)], standalone_mode=False)
    return path
